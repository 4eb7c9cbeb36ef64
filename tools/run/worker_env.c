/* SPDX-License-Identifier: Apache-2.0 */
#include "run/workers_run.h"

#include "core/base/clock.h"
#include "group/store/host_copy.h"
#include "security/secret/secret_handover.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#define MOST 32   /* variables to set */
#define TEXT 8192 /* bytes of all variables */

struct worker_env {
    char **all;
    size_t n, used;
    bool full;
    char *set[MOST];
    char text[TEXT];
};

/* Sets "NAME=value"; "NAME" alone removes the variable. */
TENREC_PRINTF(2, 3)
static void worker_env_put(struct worker_env *e, const char *fmt, ...)
{
    size_t room = TEXT - e->used;
    va_list ap;
    int n;

    va_start(ap, fmt);
    n = vsnprintf(e->text + e->used, room, fmt, ap);
    va_end(ap);
    e->full |= e->n == MOST || n < 0 || (size_t)n >= room;
    if (e->full)
        return;
    e->set[e->n++] = e->text + e->used;
    e->used += (size_t)n + 1;
}

static void put_store(struct worker_env *e, const struct workers_plan *plan,
                      const struct worker_store *store)
{
    worker_env_put(e, "TENREC_RUN_ID=%s", store->run_id);
    if (plan->elastic.join) {
        worker_env_put(e, "TENREC_INIT_METHOD=%s", plan->elastic.join);
        return;
    }
    worker_env_put(e, "MASTER_ADDR=%s", store->host);
    worker_env_put(e, "MASTER_PORT=%u", (unsigned)store->port);
    worker_env_put(e, "TORCHELASTIC_USE_AGENT_STORE=True");
}

/* A variable from outside names a secret that this run may not have. */
static void put_secret(struct worker_env *e, const struct worker_store *store)
{
    worker_env_put(e, SECRET_FILE_VARIABLE);
    if (!store->secret_fd) {
        worker_env_put(e, SECRET_FD_VARIABLE);
        worker_env_put(e, SECRET_SOCKET_VARIABLE);
        return;
    }
    worker_env_put(e, SECRET_FD_VARIABLE "=%d", store->secret_fd);
    worker_env_put(e, SECRET_SOCKET_VARIABLE "=%s", store->secret_socket);
}

static void put_host(struct worker_env *e, const struct worker_store *store)
{
    if (store->host_fd)
        worker_env_put(e, HOST_COPY_VARIABLE "=%d", store->host_fd);
    else
        worker_env_put(e, HOST_COPY_VARIABLE);
}

/* torch uses the store only if these variables are set as well. */
static void put_life(struct worker_env *e, const struct worker_store *store, int life,
                     int max_restarts)
{
    worker_env_put(e, "TORCHELASTIC_RUN_ID=%s", store->run_id);
    worker_env_put(e, "TORCHELASTIC_RESTART_COUNT=%d", life);
    worker_env_put(e, "TORCHELASTIC_MAX_RESTARTS=%d", max_restarts);
}

/* One group on one host, whose workers all have the same role. */
static void put_static(struct worker_env *e, const struct workers_plan *plan, int rank)
{
    worker_env_put(e, "WORLD_SIZE=%d", plan->n);
    worker_env_put(e, "GROUP_RANK=0");
    worker_env_put(e, "GROUP_WORLD_SIZE=1");
    worker_env_put(e, "ROLE_NAME=default");
    worker_env_put(e, "ROLE_RANK=%d", rank);
    worker_env_put(e, "ROLE_WORLD_SIZE=%d", plan->n);
}

/* Without a world size the group is dynamic. */
static void put_elastic(struct worker_env *e, const struct workers_plan *plan)
{
    worker_env_put(e, "WORLD_SIZE");
    worker_env_put(e, "TENREC_WORLD_SIZE");
    worker_env_put(e, "TENREC_RANK");
    if (plan->elastic.join)
        worker_env_put(e, "RANK"); /* a member may have it already: the group assigns ids */
    worker_env_put(e, "TENREC_MIN_WORKERS=%d", plan->elastic.min);
    worker_env_put(e, "TENREC_MAX_WORKERS=%d", plan->elastic.max);
}

static void put_all(struct worker_env *e, const struct workers_plan *plan,
                    const struct worker_id *id, const struct worker_store *store)
{
    if (!plan->elastic.join)
        worker_env_put(e, "RANK=%d", id->rank);
    worker_env_put(e, "LOCAL_RANK=%d", id->rank);
    worker_env_put(e, "LOCAL_WORLD_SIZE=%d", plan->n);
    put_store(e, plan, store);
    put_secret(e, store);
    put_host(e, store);
    put_life(e, store, id->life, plan->elastic.max ? plan->elastic.restarts : 0);
    if (plan->elastic.max)
        put_elastic(e, plan);
    else
        put_static(e, plan, id->rank);
    if (plan->config)
        worker_env_put(e, "TENREC_CONFIG=%s", plan->config);
    if (plan->set)
        worker_env_put(e, "%s", plan->set);
}

struct worker_env *worker_env_new(const struct workers_plan *plan, const struct worker_id *id,
                                  const struct worker_store *store)
{
    struct worker_env *e = calloc(1, sizeof *e);

    if (!e)
        return NULL;
    put_all(e, plan, id, store);
    if (!e->full)
        e->all = spawn_environment(e->set, e->n);
    if (e->all)
        return e;
    free(e);
    return NULL;
}

char *const *worker_env_all(const struct worker_env *e)
{
    return e->all;
}

void worker_env_drop(struct worker_env *e)
{
    if (e)
        free(e->all);
    free(e);
}

void worker_env_run_id(const struct workers_plan *plan, char ret[RUN_ID_MAX])
{
    const char *given = secure_getenv("TENREC_RUN_ID");
    unsigned char b[8];

    if (plan->elastic.max) {
        snprintf(ret, RUN_ID_MAX, "%s", given && *given ? given : "elastic");
        return;
    }
    if (getrandom(b, sizeof b, 0) != sizeof b) {
        uint64_t now = clock_now_ns() ^ ((uint64_t)getpid() << 40);

        memcpy(b, &now, sizeof b);
    }
    for (size_t i = 0; i < sizeof b; i++)
        snprintf(ret + 2 * i, 3, "%02x", b[i]);
}
