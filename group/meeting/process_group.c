/* SPDX-License-Identifier: Apache-2.0 */
#include "group/meeting/process_group.h"

#include "core/base/clock.h"
#include "core/base/memory.h"
#include "group/membership/membership.h"
#include "group/store/bytes.h"
#include "group/store/store.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define KEY_ROOM 48  /* "<round>/<rank>" */
#define DROP_MS 1000 /* to clean up behind a group */

/* A wait checks for lost members between two rounds. */
enum { FIRST_ROUND_MS = 25, LONGEST_ROUND_MS = 200 };

/* Each rank writes its contribution under <round>/<rank> and waits for those of the other ranks. A
 * rank that has finished a round knows that all ranks have begun that round, and so finished the
 * one before: then it removes its own key of the one before. */
struct tenrec_process_group {
    struct tenrec_store *base;  /* owns; view of the group's name */
    struct tenrec_store *store; /* owns; view of this life of it, NULL before */
    bool once;                  /* base is new: the group has one life only */
    int32_t rank, world;
    const char *const *names;
    struct group_lost lost; /* is_lost NULL: not checked */
    pthread_mutex_t lock;   /* guards store, life and round */
    int64_t life;
    uint64_t round; /* of the next operation */
    char name[];
};

tenrec_status process_group_new_once(struct tenrec_store *s, int32_t rank, int32_t world,
                                     const char *name, const char *const *names,
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
    pg->names = names;
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

/* Starts the next round. Counts the lives of a rank, so that a group that was dropped and made
 * again does not find keys of the former group. */
static tenrec_status begin_round(struct tenrec_process_group *pg, uint64_t deadline_ns,
                                 uint64_t *ret_round, tenrec_error *err)
{
    tenrec_status st = TENREC_OK;
    char key[KEY_ROOM];

    pthread_mutex_lock(&pg->lock);
    if (!pg->store) {
        snprintf(key, sizeof key, "rank/%d", pg->rank);
        if (!pg->once && pg->life == 0)
            st = store_add(pg->base, key, 1, deadline_ns, &pg->life, err);
        snprintf(key, sizeof key, "%lld", (long long)pg->life);
        if (st == TENREC_OK)
            st = tenrec_store_open_prefix(pg->base, key, &pg->store, err);
    }
    if (st == TENREC_OK)
        *ret_round = pg->round++;
    pthread_mutex_unlock(&pg->lock);
    return st;
}

static const char **round_keys(const struct tenrec_process_group *pg, uint64_t round)
{
    char prefix[KEY_ROOM];

    snprintf(prefix, sizeof prefix, "%llu", (unsigned long long)round);
    return store_numbered_keys(prefix, (size_t)pg->world);
}

static tenrec_status fail_missing(const struct tenrec_process_group *pg, const char *operation,
                                  const bool *missing, uint64_t since_ns, tenrec_error *err)
{
    char ranks[200];

    ranks_text(ranks, sizeof ranks, missing, pg->world, pg->names);
    return tenrec_fail(err, TENREC_ETIMEDOUT, "%s did not reach %s of group \"%s\" within %llu ms",
                       ranks, operation, pg->name,
                       (unsigned long long)((clock_now_ns() - since_ns) / 1000000u));
}

/* One wait for the other ranks. */
struct process_group_wait {
    const struct tenrec_process_group *pg;
    const char *operation;
    uint64_t since_ns;
};

static tenrec_status fail_lost(const struct process_group_wait *w, const bool *lost,
                               tenrec_error *err)
{
    char ranks[200];

    ranks_text(ranks, sizeof ranks, lost, w->pg->world, w->pg->names);
    return tenrec_fail(err, TENREC_EPEER_LOST, "%s was lost before reaching %s", ranks,
                       w->operation);
}

static tenrec_status process_group_check_lost(void *arg, const bool *missing, tenrec_error *err)
{
    const struct process_group_wait *w = arg;
    const struct group_lost *known = &w->pg->lost;
    const uint64_t waited_ms = (clock_now_ns() - w->since_ns) / 1000000u;
    bool any = false, *lost = memory_new((size_t)w->pg->world, sizeof *lost);
    tenrec_status st = TENREC_OK;

    for (int32_t i = 0; lost && i < w->pg->world; i++) {
        lost[i] = missing[i] && known->is_lost(known->arg, i, waited_ms);
        any = any || lost[i];
    }
    if (any)
        st = fail_lost(w, lost, err);
    free(lost);
    return st;
}

static tenrec_status process_group_wait(struct process_group_wait *w, const char **keys,
                                        uint64_t deadline_ns, struct store_value *ret,
                                        bool *missing, tenrec_error *err)
{
    const struct store_rounds rounds = { FIRST_ROUND_MS, LONGEST_ROUND_MS, process_group_check_lost,
                                         w };
    struct tenrec_store *s = w->pg->store;
    const size_t n = (size_t)w->pg->world;

    if (w->pg->lost.is_lost)
        return store_get_rounds(s, keys, n, deadline_ns, &rounds, ret, missing, err);
    return store_get_all(s, keys, n, deadline_ns, ret, missing, err);
}

/* Runs one round: writes `data`, waits for all, reads into `ret` unless it is NULL. */
static tenrec_status run_round(struct tenrec_process_group *pg, const char *operation,
                               const void *data, size_t len, uint64_t deadline_ns,
                               struct store_value *ret, tenrec_error *err)
{
    struct process_group_wait w = { pg, operation, clock_now_ns() };
    uint64_t round;
    bool *missing = memory_new((size_t)pg->world, sizeof *missing);
    const char **keys = NULL;
    char old_key[KEY_ROOM];
    tenrec_status st = begin_round(pg, deadline_ns, &round, err);

    if (st != TENREC_OK)
        goto out;
    if (!missing || !(keys = round_keys(pg, round))) {
        st = tenrec_fail(err, TENREC_ENOMEM, "no memory for %s of group \"%s\"", operation,
                         pg->name);
        goto out;
    }
    st = store_set(pg->store, keys[pg->rank], data, len, deadline_ns, err);
    if (st != TENREC_OK)
        goto out;
    st = process_group_wait(&w, keys, deadline_ns, ret, missing, err);
    if (st == TENREC_ETIMEDOUT)
        fail_missing(pg, operation, missing, w.since_ns, err);
    if (st == TENREC_OK && round > 0) {
        snprintf(old_key, sizeof old_key, "%llu/%d", (unsigned long long)(round - 1), pg->rank);
        /* A key that cannot be removed is harmless. */
        store_remove(pg->store, old_key, deadline_ns, NULL);
    }
out:
    if (st != TENREC_OK && st != TENREC_ETIMEDOUT)
        tenrec_error_prefix(err, "%s of group \"%s\"", operation, pg->name);
    free(keys);
    free(missing);
    return st;
}

tenrec_status process_group_barrier(struct tenrec_process_group *pg, uint64_t deadline_ns,
                                    tenrec_error *err)
{
    return run_round(pg, "a barrier", NULL, 0, deadline_ns, NULL, err);
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

tenrec_status process_group_gather(struct tenrec_process_group *pg, const char *operation,
                                   const void *data, size_t len, uint64_t deadline_ns,
                                   struct store_value **ret, tenrec_error *err)
{
    struct store_value *values = memory_new((size_t)pg->world, sizeof *values);
    tenrec_status st;

    if (!values)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for %s of group \"%s\"", operation,
                           pg->name);
    st = run_round(pg, operation, data, len, deadline_ns, values, err);
    if (st == TENREC_OK)
        *ret = values;
    else
        free(values);
    return st;
}

/* Adds the n numbers of "1 -2 3" to `sum`. */
static bool add_counts(const uint8_t *text, size_t len, size_t n, int64_t *sum)
{
    for (size_t i = 0; i < n; i++) {
        const bool last = i + 1 == n;
        const uint8_t *end = len == 0 ? NULL : last ? text + len : memchr(text, ' ', len);
        const size_t used = end ? (size_t)(end - text) : 0;
        int64_t one;

        if (!end || !bytes_number((struct bytes_slice){ text, used }, &one))
            return false;
        sum[i] = (int64_t)((uint64_t)sum[i] + (uint64_t)one);
        text += used + 1;
        len -= used + !last;
    }
    return true;
}

tenrec_status process_group_sum(struct tenrec_process_group *pg, const int64_t *mine, size_t n,
                                uint64_t deadline_ns, int64_t *ret, tenrec_error *err)
{
    struct store_value *values = NULL;
    int64_t sum[PROCESS_GROUP_SUMS] = { 0 };
    char text[PROCESS_GROUP_SUMS * 24];
    size_t len = 0;
    tenrec_status st;

    for (size_t i = 0; i < n; i++)
        len += (size_t)snprintf(text + len, sizeof text - len, "%s%lld", i ? " " : "",
                                (long long)mine[i]);
    st = process_group_gather(pg, "the counts of calls", text, len, deadline_ns, &values, err);
    if (st != TENREC_OK)
        return st;
    for (int32_t i = 0; i < pg->world && st == TENREC_OK; i++)
        if (!add_counts(values[i].data, values[i].len, n, sum))
            st = tenrec_fail(err, TENREC_EPROTOCOL, "rank %d gave \"%.*s\" as its counts of calls",
                             i, (int)(values[i].len < 32 ? values[i].len : 32),
                             (char *)values[i].data);
    store_values_free(values, (size_t)pg->world);
    free(values);
    if (st == TENREC_OK)
        memcpy(ret, sum, n * sizeof sum[0]);
    return st;
}

static void delete_round(struct tenrec_process_group *pg, uint64_t round, uint64_t deadline_ns)
{
    const char **keys = round_keys(pg, round);

    if (keys)
        store_remove_all(pg->store, keys, (size_t)pg->world, deadline_ns, NULL, NULL);
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

void process_group_close(struct tenrec_process_group *pg, uint64_t deadline_ns)
{
    if (!pg)
        return;
    if (pg->store && pg->round > 0)
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
