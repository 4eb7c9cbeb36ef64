/* SPDX-License-Identifier: Apache-2.0 */
#include "group/meeting/process_group_wave.h"

#include "core/base/clock.h"
#include "core/base/memory.h"
#include "group/membership/membership.h"
#include "group/store/store.h"

#include <stdlib.h>
#include <string.h>

#define DROP_MS 1000 /* to clean up behind a group */

/* Of a group's last keys; more only where the termination was counted more often, which leaves some
 * bytes behind. */
enum { TIDY_ROUNDS = 4 };

tenrec_status process_group_new_once(struct tenrec_store *s, int32_t rank, int32_t world,
                                     const char *name, const struct tenrec_member *member,
                                     struct tenrec_process_group **ret, tenrec_error *err)
{
    struct tenrec_process_group *pg;
    tenrec_status st;
    char prefix[160];

    if (!s || !ret)
        return tenrec_fail(err, TENREC_EINVAL, "a process group needs a store and a result");
    if ((st = ranks_check_name("process group", name, err)) != TENREC_OK ||
        (st = ranks_check(rank, world, err)) != TENREC_OK)
        return st;
    if (!(pg = memory_new(1, sizeof *pg + strlen(name) + 1)))
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for process group \"%s\"", name);
    snprintf(prefix, sizeof prefix, "pg/%s", name);
    if ((st = tenrec_store_open_prefix(s, prefix, &pg->base, err)) != TENREC_OK) {
        free(pg);
        return st;
    }
    memcpy(pg->name, name, strlen(name) + 1);
    pg->once = true;
    pg->member = member;
    pg->rank = rank;
    pg->world = world;
    pthread_mutex_init(&pg->lock, NULL);
    *ret = pg;
    return TENREC_OK;
}

tenrec_status tenrec_process_group_new(struct tenrec_store *s, int32_t rank, int32_t world,
                                       const char *name, struct tenrec_process_group **ret,
                                       tenrec_error *err)
{
    tenrec_status st;

    *ret = NULL;
    st = process_group_new_once(s, rank, world, name, NULL, ret, err);
    if (st == TENREC_OK)
        (*ret)->once = false;
    return st;
}

void process_group_set_lost(struct tenrec_process_group *pg, const struct group_lost *lost)
{
    pg->lost = *lost;
}

tenrec_status process_group_barrier(struct tenrec_process_group *pg, uint64_t deadline_ns,
                                    tenrec_error *err)
{
    struct process_group_wave w = {
        .pg = pg, .operation = "a barrier", .since_ns = clock_now_ns(), .deadline_ns = deadline_ns
    };

    return process_group_wave_run(&w, NULL, NULL, err);
}

tenrec_status tenrec_process_group_barrier(struct tenrec_process_group *pg, int64_t ms,
                                           tenrec_error *err)
{
    uint64_t deadline_ns;
    tenrec_status st = store_deadline(ms, &deadline_ns, err);

    if (st == TENREC_OK && !pg)
        st = tenrec_fail(err, TENREC_EINVAL, "a barrier needs a process group");
    return st == TENREC_OK ? process_group_barrier(pg, deadline_ns, err) : st;
}

tenrec_status process_group_sum(struct tenrec_process_group *pg, const int64_t *mine, size_t n,
                                const struct process_group_summed *before, uint64_t deadline_ns,
                                int64_t *ret, tenrec_error *err)
{
    struct process_group_wave w = { .pg = pg,
                                    .operation = "the counts of calls",
                                    .n = n,
                                    .before = before,
                                    .since_ns = clock_now_ns(),
                                    .deadline_ns = deadline_ns };

    return process_group_wave_run(&w, mine, ret, err);
}

static void delete_round(struct tenrec_process_group *pg, uint64_t round, uint64_t deadline_ns)
{
    const char **keys = process_group_round_keys(pg, round);
    char done[PROCESS_GROUP_KEY_ROOM];

    process_group_round_done_key(done, round);
    if (keys)
        store_remove_all(pg->store, keys, (size_t)pg->world, deadline_ns, NULL, NULL);
    store_remove(pg->store, done, deadline_ns, NULL);
    free(keys);
}

/* The last rank to leave removes the keys of the last two rounds. */
static void process_group_leave(struct tenrec_process_group *pg, uint64_t deadline_ns)
{
    int64_t n;

    if (store_add(pg->store, "left", 1, deadline_ns, &n, NULL) != TENREC_OK || n < pg->world)
        return;
    delete_round(pg, pg->round - 1, deadline_ns);
    if (pg->round > 1)
        delete_round(pg, pg->round - 2, deadline_ns);
    store_remove(pg->store, "left", deadline_ns, NULL);
}

void process_group_tidy(struct tenrec_store *s, int32_t rank, const char *name,
                        uint64_t deadline_ns)
{
    struct tenrec_store *life;
    char prefix[160];

    snprintf(prefix, sizeof prefix, "pg/%s/0", name);
    if (tenrec_store_open_prefix(s, prefix, &life, NULL) != TENREC_OK)
        return;
    for (uint64_t round = 0; round < TIDY_ROUNDS; round++)
        process_group_round_remove(life, rank, round, deadline_ns);
    tenrec_store_close(life);
}

void process_group_close(struct tenrec_process_group *pg, uint64_t deadline_ns)
{
    if (!pg)
        return;
    if (pg->store && pg->round > 0 && !pg->once)
        process_group_leave(pg, deadline_ns);
    tenrec_store_close(pg->store);
    tenrec_store_close(pg->base);
    pthread_mutex_destroy(&pg->lock);
    free(pg);
}

void tenrec_process_group_drop(struct tenrec_process_group *pg)
{
    process_group_close(pg, clock_deadline_ms(DROP_MS));
}
