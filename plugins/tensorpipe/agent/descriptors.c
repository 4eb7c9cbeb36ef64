/* SPDX-License-Identifier: Apache-2.0 */
/* descriptors.c - the soft limit of open files. */
#include "agent/agent.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/resource.h>

#define NEEDED_ANYWAY 128   /* the program's own files, and those that listeners keep */
#define NEEDED_PER_AGENT 32 /* ports, loop and store */
#define NEEDED_PER_PIPE 4

/* Descriptors that all agents of the process need for themselves and their peers. */
static atomic_ullong descriptors_of_agents;
static atomic_bool descriptors_told; /* that the hard limit is too low, which is so for all */

static unsigned long long descriptors_needed(const struct agent *a, unsigned peers)
{
    const unsigned long long over_tcp = 2 + (unsigned long long)a->ep.options->lanes;
    const unsigned long long per_pipe = over_tcp > NEEDED_PER_PIPE ? over_tcp : NEEDED_PER_PIPE;

    return NEEDED_PER_AGENT + 2 * per_pipe * peers;
}

/* Counts `n` descriptors for the agent instead of those counted so far. Returns the new sum. */
static unsigned long long descriptors_count(struct agent *a, unsigned long long n)
{
    const unsigned long long more = n - atomic_exchange(&a->descriptors, n); /* may wrap */

    return atomic_fetch_add(&descriptors_of_agents, more) + more;
}

void descriptors_release(struct agent *a)
{
    descriptors_count(a, 0);
}

/* Raises the soft limit to `needed`, as far as the hard limit allows. Returns false if that is
 * the last word: the limit is high enough, or there is no higher one. */
static bool descriptors_raise(const struct agent *a, unsigned peers, rlim_t needed)
{
    struct rlimit limit;
    rlim_t before;

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= needed)
        return false;
    before = limit.rlim_cur;
    limit.rlim_cur = needed < limit.rlim_max ? needed : limit.rlim_max;
    if (limit.rlim_cur < needed && !atomic_exchange(&descriptors_told, true))
        agent_log(a, TENREC_LOG_WARN,
                  "the workers of this process, this one with %u peers, take up to %llu file "
                  "descriptors, the hard limit is %llu; raise it (ulimit -Hn)",
                  peers, (unsigned long long)needed, (unsigned long long)limit.rlim_max);
    if (limit.rlim_cur <= before || setrlimit(RLIMIT_NOFILE, &limit) < 0)
        return false;
    agent_log(a, TENREC_LOG_INFO,
              "soft limit of file descriptors raised from %llu to %llu for %u peers",
              (unsigned long long)before, (unsigned long long)limit.rlim_cur, peers);
    return limit.rlim_cur == needed;
}

void descriptors_reserve(struct agent *a, unsigned peers)
{
    rlim_t needed = NEEDED_ANYWAY + descriptors_count(a, descriptors_needed(a, peers));

    /* Another agent may have set a higher limit, which this agent has undone. So the sum is read
     * again after each change: the last agent to set the limit has seen all. */
    while (descriptors_raise(a, peers, needed))
        needed = NEEDED_ANYWAY + atomic_load(&descriptors_of_agents);
}
