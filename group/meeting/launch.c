/* SPDX-License-Identifier: Apache-2.0 */
#include "group/meeting/launch.h"

#include "group/membership/membership.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

const char *launch_variable(const char *name)
{
    const char *value = secure_getenv(name);

    return value && *value ? value : NULL;
}

tenrec_status launch_number(const char *name, const char *text, int64_t min, int64_t max,
                            int64_t *ret, tenrec_error *err)
{
    char *end;
    long long n;

    errno = 0;
    n = strtoll(text, &end, 10);
    if (errno || end == text || *end || n < min || n > max || *text == ' ' || *text == '+')
        return tenrec_fail(err, TENREC_EINVAL,
                           "%s=\"%.40s\" must be a whole number within %lld..%lld", name, text,
                           (long long)min, (long long)max);
    *ret = n;
    return TENREC_OK;
}

tenrec_status launch_host_rank(int32_t *ret, tenrec_error *err)
{
    const char *given = launch_variable("HOSTNAME");
    char name[256] = "", *digits;
    int64_t n = 0;
    tenrec_status st;

    if (given)
        snprintf(name, sizeof name, "%s", given);
    else if (gethostname(name, sizeof name - 1) != 0)
        name[0] = '\0';
    name[strcspn(name, ".")] = '\0';
    digits = name + strlen(name);
    while (digits > name && digits[-1] >= '0' && digits[-1] <= '9')
        digits--;
    if (!*digits)
        return tenrec_fail(err, TENREC_EINVAL,
                           "rank=host: the name \"%.80s\" of this host ends with no number, "
                           "expected one such as \"worker-3\"",
                           name);
    st = launch_number("the number of this host", digits, 0, RANKS_MAX - 1, &n, err);
    *ret = (int32_t)n;
    return st;
}

/* The number in variable `name`; *ret stays when it is unset. */
static tenrec_status launch_variable_number(const char *name, int64_t min, int64_t max,
                                            int32_t *ret, tenrec_error *err)
{
    const char *text = launch_variable(name);
    int64_t n = 0;
    tenrec_status st;

    if (!text)
        return TENREC_OK;
    if ((st = launch_number(name, text, min, max, &n, err)) == TENREC_OK)
        *ret = (int32_t)n;
    return st;
}

/* Rank and world of one launcher. Alternatives are tried in order. */
struct launcher {
    const char *source;
    const char *rank;          /* set by this launcher */
    const char *rank_needs;    /* also set by it, when not NULL */
    const char *world[5];      /* alternatives */
    const char *local_rank[3]; /* alternatives */
    const char *local_world[3];
};

static const struct launcher launchers[] = {
    { "TENREC_RANK",
      "TENREC_RANK",
      NULL,
      { "TENREC_WORLD_SIZE" },
      { "LOCAL_RANK" },
      { "LOCAL_WORLD_SIZE" } },
    { "torchrun's variables",
      "RANK",
      NULL,
      { "WORLD_SIZE" },
      { "LOCAL_RANK" },
      { "LOCAL_WORLD_SIZE" } },
    { "PMIx",
      "PMIX_RANK",
      NULL,
      { "OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS", "PMI_SIZE" },
      { "OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID" },
      { "OMPI_COMM_WORLD_LOCAL_SIZE" } },
    { "PMI", "PMI_RANK", "PMI_FD", { "PMI_SIZE" }, { "SLURM_LOCALID" }, { NULL } },
    { "Slurm",
      "SLURM_PROCID",
      NULL,
      { "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS" },
      { "SLURM_LOCALID" },
      { NULL } },
    { "Open MPI",
      "OMPI_COMM_WORLD_RANK",
      NULL,
      { "OMPI_COMM_WORLD_SIZE" },
      { "OMPI_COMM_WORLD_LOCAL_RANK" },
      { "OMPI_COMM_WORLD_LOCAL_SIZE" } },
};

static bool launched_by(const struct launcher *l)
{
    if (!launch_variable(l->rank) || (l->rank_needs && !launch_variable(l->rank_needs)))
        return false;
    return strcmp(l->source, "Slurm") != 0 || slurm_is_task();
}

static tenrec_status first_number(const char *const *names, size_t n, int64_t min, int64_t max,
                                  int32_t *ret, tenrec_error *err)
{
    for (size_t i = 0; i < n && names[i]; i++)
        if (launch_variable(names[i]))
            return launch_variable_number(names[i], min, max, ret, err);
    return TENREC_OK;
}

static tenrec_status launch_read(const struct launcher *l, struct launch *ret, tenrec_error *err)
{
    tenrec_status st;

    snprintf(ret->source, sizeof ret->source, "%s", l->source);
    if ((st = launch_variable_number(l->rank, 0, RANKS_MAX - 1, &ret->rank, err)) != TENREC_OK ||
        (st = first_number(l->world, 5, 1, RANKS_MAX, &ret->world, err)) != TENREC_OK ||
        (st = first_number(l->local_rank, 3, 0, RANKS_MAX - 1, &ret->local_rank, err)) !=
            TENREC_OK ||
        (st = first_number(l->local_world, 3, 1, RANKS_MAX, &ret->local_world, err)) != TENREC_OK)
        return st;
    return TENREC_OK;
}

/* Copies with '_' for characters that a key or a file name may not have. */
static void copy_plain(char *ret, size_t room, const char *text)
{
    size_t n = 0;

    for (; *text && n + 1 < room; text++)
        ret[n++] =
            strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-", *text)
                ? *text
                : '_';
    ret[n] = '\0';
}

/* Finds the text that distinguishes one start of all processes from the next. */
static void find_run(struct launch *ret)
{
    const char *id = launch_variable("TORCHELASTIC_RUN_ID"),
               *more = launch_variable("TORCHELASTIC_RESTART_COUNT");
    const char *given = launch_variable("TENREC_RUN_ID");
    char text[sizeof ret->run];

    if (given) {
        copy_plain(ret->run, sizeof ret->run, given);
        return;
    }
    if (!id && strcmp(ret->source, "Slurm") == 0) {
        id = launch_variable("SLURM_JOB_ID");
        more = launch_variable("SLURM_STEP_ID");
    }
    if (!id && strcmp(ret->source, "PMIx") == 0)
        id = launch_variable("PMIX_NAMESPACE");
    if (!id && !more)
        return;
    snprintf(text, sizeof text, "%.80s.%.30s", id ? id : "", more ? more : "0");
    copy_plain(ret->run, sizeof ret->run, text);
}

tenrec_status launch_detect(int32_t rank, int32_t world, struct launch *ret, tenrec_error *err)
{
    bool given = rank >= 0 && world > 0;
    const struct launcher *l = NULL;
    tenrec_status st;

    *ret = (struct launch){ .rank = -1, .world = -1, .local_rank = -1, .local_world = -1 };
    snprintf(ret->source, sizeof ret->source, "single process");
    for (size_t i = 0; i < sizeof launchers / sizeof launchers[0] && !l; i++)
        if (launched_by(&launchers[i]))
            l = &launchers[i];
    /* With both given, wrong values of a launcher are ignored. */
    if (l && (st = launch_read(l, ret, given ? NULL : err)) != TENREC_OK && !given)
        return st;
    find_run(ret);
    if (rank >= 0)
        ret->rank = rank;
    if (world > 0)
        ret->world = world;
    if (given)
        snprintf(ret->source, sizeof ret->source, "the configuration");
    /* A rank alone, of TENREC_RANK or RANK, is that of a dynamic group; other launchers
     * always know the world size. */
    if (l && ret->world < 0 && l >= &launchers[2])
        return tenrec_fail(err, TENREC_EINVAL,
                           "%s is set but not %s: set it, or TENREC_RANK and TENREC_WORLD_SIZE",
                           l->rank, l->world[0]);
    for (size_t i = 0; i < 2; i++) {
        const char *size = launchers[i].world[0];
        if (ret->rank < 0 && launch_variable(size))
            return tenrec_fail(err, TENREC_EINVAL, "%s is set but not %s: set both or none", size,
                               launchers[i].rank);
        /* The rank is configured, the world size is a variable. */
        if (ret->rank >= 0 && ret->world < 0 &&
            (st = launch_variable_number(size, 1, RANKS_MAX, &ret->world, err)) != TENREC_OK)
            return st;
    }
    if (ret->local_world < 0 && slurm_is_task())
        ret->local_world = slurm_local_tasks();
    return TENREC_OK;
}

static uint64_t launch_hash(uint64_t h, const char *text)
{
    for (; text && *text; text++)
        h = (h ^ (uint8_t)*text) * 0x100000001b3u;
    return h;
}

/* Finds a file named after the job, for Open MPI and PMIx on one host. */
static bool find_file(struct launch *launch)
{
    static const char *const job[] = { "PMIX_NAMESPACE", "PMIX_SERVER_URI2", "PMIX_SERVER_URI21",
                                       "OMPI_MCA_ess_base_jobid", "OMPI_MCA_orte_hnp_uri" };
    uint64_t h = 0xcbf29ce484222325u;
    bool any = false;

    if (launch->world < 1 || launch->local_world != launch->world)
        return false;
    for (size_t i = 0; i < sizeof job / sizeof job[0]; i++) {
        const char *value = launch_variable(job[i]);
        any |= value != NULL;
        h = launch_hash(h, value) * 31;
    }
    if (!any)
        return false;
    snprintf(launch->file, sizeof launch->file, "/tmp/tenrec-%u-%016llx", (unsigned)geteuid(),
             (unsigned long long)h);
    snprintf(launch->store_source, sizeof launch->store_source,
             "a file of this job, as all are on one host");
    return true;
}

tenrec_status launch_find_store(struct launch *launch, tenrec_error *err)
{
    const char *host = launch_variable("MASTER_ADDR"), *port = launch_variable("MASTER_PORT");
    const char *agent = launch_variable("TORCHELASTIC_USE_AGENT_STORE");
    tenrec_status st;
    int64_t n = 0;

    if (host && port) {
        if (strlen(host) >= sizeof launch->host)
            return tenrec_fail(err, TENREC_EINVAL, "MASTER_ADDR of %zu characters is too long",
                               strlen(host));
        if ((st = launch_number("MASTER_PORT", port, 1, 65535, &n, err)) != TENREC_OK)
            return st;
        snprintf(launch->host, sizeof launch->host, "%s", host);
        launch->port = (uint16_t)n;
        snprintf(launch->store_source, sizeof launch->store_source, "MASTER_ADDR and MASTER_PORT");
        launch->agent_store = agent && (strcasecmp(agent, "true") == 0 || strcmp(agent, "1") == 0);
        return TENREC_OK;
    }
    if (host || port)
        return tenrec_fail(err, TENREC_EINVAL, "%s is set but not %s: set both or none",
                           host ? "MASTER_ADDR" : "MASTER_PORT",
                           host ? "MASTER_PORT" : "MASTER_ADDR");
    if (slurm_is_task() && slurm_store(launch->host, sizeof launch->host, &launch->port)) {
        snprintf(launch->store_source, sizeof launch->store_source, "Slurm's node list and job id");
        return TENREC_OK;
    }
    if (find_file(launch))
        return TENREC_OK;
    if (launch->world < 0)
        return tenrec_fail(err, TENREC_EINVAL,
                           "there is a rank (%s) but no world size, so the group is dynamic: "
                           "set MASTER_ADDR and MASTER_PORT, or init_method to tcp://host:port or "
                           "file://path; or TENREC_WORLD_SIZE or WORLD_SIZE for a static group",
                           launch->source);
    return tenrec_fail(err, TENREC_EINVAL,
                       "no store for rank %d of %d (%s): set MASTER_ADDR and MASTER_PORT, or "
                       "init_method to tcp://host:port or file://path",
                       launch->rank, launch->world, launch->source);
}
