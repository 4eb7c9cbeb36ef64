/* SPDX-License-Identifier: Apache-2.0 */
/* descriptors.c - the soft limit of open files. */
#include "agent/descriptors.h"
#include "agent/agent.h"

#include <sys/resource.h>

/* The program's own files, the store's, the loop's, and those that the listener keeps. */
#define NEEDED_ANYWAY 160
#define NEEDED_PER_PIPE 4

static rlim_t descriptors_needed(const struct agent *a, unsigned peers)
{
    const rlim_t over_tcp = 2 + (rlim_t)a->options->lanes;
    const rlim_t per_pipe = over_tcp > NEEDED_PER_PIPE ? over_tcp : NEEDED_PER_PIPE;

    return NEEDED_ANYWAY + 2 * per_pipe * peers;
}

void descriptors_reserve(struct agent *a, unsigned peers)
{
    const rlim_t needed = descriptors_needed(a, peers);
    struct rlimit limit;
    rlim_t before;

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= needed)
        return;
    before = limit.rlim_cur;
    limit.rlim_cur = needed < limit.rlim_max ? needed : limit.rlim_max;
    if (limit.rlim_cur < needed)
        agent_log(a, TENREC_LOG_WARN,
                  "calls with %u peers take up to %llu file descriptors, the hard limit is %llu; "
                  "raise it (ulimit -Hn)",
                  peers, (unsigned long long)needed, (unsigned long long)limit.rlim_max);
    if (limit.rlim_cur > before && setrlimit(RLIMIT_NOFILE, &limit) == 0)
        agent_log(a, TENREC_LOG_INFO,
                  "soft limit of file descriptors raised from %llu to %llu for %u peers",
                  (unsigned long long)before, (unsigned long long)limit.rlim_cur, peers);
}
