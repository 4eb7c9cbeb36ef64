/* SPDX-License-Identifier: Apache-2.0 */
#include "group/meeting/process_group_wave.h"

#include "core/base/clock.h"
#include "core/base/fail.h"
#include "core/base/memory.h"
#include "group/membership/membership.h"
#include "group/store/bytes.h"

#include <stdlib.h>
#include <string.h>

#define COUNTS_ROOM (PROCESS_GROUP_SUMS * 24)

/* A wait checks for lost members between two rounds, which are the longer the more ranks there are:
 * the store answers all of them. The leader, which waits for the others, checks more often than
 * they do. */
enum { LEADER_FIRST_MS = 25, LEADER_MOST_MS = 200, FIRST_MS = 50, MOST_MS = 400 };

/* Ranks that may stand in for the leader: after a round rank 1, after the next 2 and 3, and so on.
 */
enum { STAND_IN_ROUNDS = 5 };

/* Starts the next round. Counts the lives of a rank, so that a group that was dropped and made
 * again does not find keys of the former group. */
static tenrec_status begin_round(struct tenrec_process_group *pg, uint64_t deadline_ns,
                                 uint64_t *ret_round, tenrec_error *err)
{
    tenrec_status st = TENREC_OK;
    char key[PROCESS_GROUP_KEY_ROOM];

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

const char **process_group_round_keys(const struct tenrec_process_group *pg, uint64_t round)
{
    char prefix[PROCESS_GROUP_KEY_ROOM];

    snprintf(prefix, sizeof prefix, "%llu", (unsigned long long)round);
    return store_numbered_keys(prefix, (size_t)pg->world);
}

void process_group_round_done_key(char ret[PROCESS_GROUP_KEY_ROOM], uint64_t round)
{
    snprintf(ret, PROCESS_GROUP_KEY_ROOM, "%llu/done", (unsigned long long)round);
}

/* Removes what `rank` has written in a round. */
void process_group_round_remove(struct tenrec_store *s, int32_t rank, uint64_t round,
                                uint64_t deadline_ns)
{
    char own[PROCESS_GROUP_KEY_ROOM], done[PROCESS_GROUP_KEY_ROOM];
    const char *keys[] = { own, done };

    snprintf(own, sizeof own, "%llu/%d", (unsigned long long)round, rank);
    process_group_round_done_key(done, round);
    /* A key that cannot be removed is harmless. */
    store_remove_all(s, keys, rank == 0 ? 2 : 1, deadline_ns, NULL, NULL);
}

/* Makes the keys of all contributions, which most ranks never need. */
static tenrec_status wave_name(struct process_group_wave *w, tenrec_error *err)
{
    if (!w->keys && !(w->keys = process_group_round_keys(w->pg, w->round)))
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for %s of group \"%s\"", w->operation,
                           w->pg->name);
    return TENREC_OK;
}

static tenrec_status fail_missing(const struct process_group_wave *w, tenrec_error *err)
{
    char ranks[200];

    ranks_text(ranks, sizeof ranks, w->missing, w->pg->world, w->pg->member);
    return tenrec_fail(err, TENREC_ETIMEDOUT, "%s did not reach %s of group \"%s\" within %llu ms",
                       ranks, w->operation, w->pg->name,
                       (unsigned long long)((clock_now_ns() - w->since_ns) / 1000000u));
}

static tenrec_status fail_lost(const struct process_group_wave *w, const bool *lost,
                               tenrec_error *err)
{
    char ranks[200];

    ranks_text(ranks, sizeof ranks, lost, w->pg->world, w->pg->member);
    return tenrec_fail(err, TENREC_EPEER_LOST, "%s was lost before reaching %s", ranks,
                       w->operation);
}

/* ---- the result ----------------------------------------------------------------------------- */

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

static size_t counts_text(const int64_t *count, size_t n, char *ret, size_t room)
{
    size_t len = (size_t)snprintf(ret, room, "%s", n ? "" : "0");

    for (size_t i = 0; i < n; i++)
        len += (size_t)snprintf(ret + len, room - len, "%s%lld", i ? " " : "", (long long)count[i]);
    return len;
}

/* Writes the result, "<status> <counts or reason>", unless another rank has. */
static tenrec_status wave_publish(const struct process_group_wave *w, tenrec_status result,
                                  const char *text, struct store_value *ret, tenrec_error *err)
{
    char all[sizeof((tenrec_error *)0)->text + 16];
    const int len = snprintf(all, sizeof all, "%d %s", (int)result, text);

    return store_compare_set(w->pg->store, w->done, &(struct store_value){ NULL, 0 },
                             &(struct store_value){ all, (size_t)len }, w->deadline_ns, ret, err);
}

static tenrec_status wave_add(const struct process_group_wave *w, const struct store_value *value,
                              int64_t *sum, tenrec_error *err)
{
    for (int32_t i = 0; i < w->pg->world; i++)
        if (w->n > 0 && !add_counts(value[i].data, value[i].len, w->n, sum))
            return tenrec_fail(err, TENREC_EPROTOCOL,
                               "rank %d gave \"%.*s\" as its counts of calls", i,
                               (int)(value[i].len < 32 ? value[i].len : 32), (char *)value[i].data);
    return TENREC_OK;
}

/* Adds up the contributions of all, and publishes the sums. */
static tenrec_status wave_sum(const struct process_group_wave *w, const struct store_value *value,
                              struct store_value *ret, tenrec_error *err)
{
    int64_t sum[PROCESS_GROUP_SUMS] = { 0 };
    char text[COUNTS_ROOM];
    tenrec_error why;
    tenrec_status st = wave_add(w, value, sum, &why);

    counts_text(sum, w->n, text, sizeof text);
    if (st == TENREC_OK && w->before)
        st = w->before->fn(w->before->arg, sum, w->deadline_ns, &why);
    return wave_publish(w, st, st == TENREC_OK ? text : why.text, ret, err);
}

static tenrec_status wave_read_result(const struct process_group_wave *w,
                                      const struct store_value *result, int64_t *ret,
                                      tenrec_error *err)
{
    const char *text = result->data;
    char *end;
    const long st = strtol(text, &end, 10);

    if (st == TENREC_OK && *end == ' ') {
        if (w->n == 0)
            return TENREC_OK;
        memset(ret, 0, w->n * sizeof *ret);
        if (add_counts((uint8_t *)end + 1, strlen(end + 1), w->n, ret))
            return TENREC_OK;
    } else if (st < TENREC_OK && *end == ' ') {
        return tenrec_fail(err, (tenrec_status)st, "%s", end + 1);
    }
    return tenrec_fail(err, TENREC_EPROTOCOL, "malformed result \"%.40s\"", text);
}

/* ---- waits ---------------------------------------------------------------------------------- */

/* Fails if one of the missing is lost, and tells the others. */
static tenrec_status wave_check_lost(void *arg, const bool *missing, tenrec_error *err)
{
    const struct process_group_wave *w = arg;
    const struct group_lost *known = &w->pg->lost;
    const uint64_t waited_ms = (clock_now_ns() - w->since_ns) / 1000000u;
    bool any = false, *lost = memory_new((size_t)w->pg->world, sizeof *lost);
    tenrec_error why;
    tenrec_status st = TENREC_OK;

    for (int32_t i = 0; lost && known->is_lost && i < w->pg->world; i++) {
        lost[i] = missing[i] && known->is_lost(known->arg, i, waited_ms);
        any = any || lost[i];
    }
    if (any) {
        st = fail_lost(w, lost, &why);
        wave_publish(w, st, why.text, NULL, NULL);
        fail_with(err, &why);
    }
    free(lost);
    return st;
}

/* All have contributed. */
static tenrec_status wave_stand_in(struct process_group_wave *w, struct store_value *ret,
                                   tenrec_error *err)
{
    const size_t n = (size_t)w->pg->world;
    struct store_value *value = memory_new(n, sizeof *value);
    tenrec_status st;

    if (!value)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for the counts of %zu workers", n);
    st = store_get_all(w->pg->store, w->keys, n, w->deadline_ns, value, NULL, err);
    if (st == TENREC_OK)
        st = wave_sum(w, value, ret, err);
    store_values_free(value, n);
    free(value);
    return st;
}

/* Checks which ranks are missing. */
static tenrec_status wave_look(struct process_group_wave *w, bool *ret_any, tenrec_error *err)
{
    const size_t n = (size_t)w->pg->world;
    tenrec_status st = wave_name(w, err);

    if (st == TENREC_OK)
        st = store_check_all(w->pg->store, w->keys, n, w->deadline_ns, w->missing, err);
    *ret_any = false;
    for (size_t i = 0; i < n && st == TENREC_OK; i++)
        *ret_any = *ret_any || w->missing[i];
    return st;
}

/* After each round of the wait for the result. */
static tenrec_status wave_between(void *arg, const bool *unused, tenrec_error *err)
{
    struct process_group_wave *w = arg;
    bool any;
    tenrec_status st;

    (void)unused;
    w->rounds += w->rounds < STAND_IN_ROUNDS;
    if (w->pg->rank >> w->rounds > 0)
        return TENREC_OK;
    st = wave_look(w, &any, err);
    if (st != TENREC_OK)
        return st;
    return any ? wave_check_lost(w, w->missing, err) : wave_stand_in(w, NULL, err);
}

static tenrec_status wave_follow(struct process_group_wave *w, struct store_value *ret,
                                 tenrec_error *err)
{
    const uint32_t world = (uint32_t)w->pg->world;
    const struct store_rounds rounds = { FIRST_MS + world, MOST_MS + 2 * world, wave_between, w };
    const char *key = w->done;
    bool any = false;
    tenrec_status st =
        store_get_rounds(w->pg->store, &key, 1, w->deadline_ns, &rounds, ret, &any, err);

    if (st != TENREC_ETIMEDOUT || (st = wave_look(w, &any, err)) != TENREC_OK)
        return st;
    return any ? fail_missing(w, err) : wave_stand_in(w, ret, err);
}

static tenrec_status wave_lead(struct process_group_wave *w, struct store_value *ret,
                               tenrec_error *err)
{
    const uint32_t world = (uint32_t)w->pg->world;
    const struct store_rounds rounds = { LEADER_FIRST_MS + world / 4, LEADER_MOST_MS + world / 4,
                                         wave_check_lost, w };
    struct store_value *value = memory_new(world, sizeof *value);
    tenrec_status st;

    if (!value)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for the counts of %u workers", world);
    if ((st = wave_name(w, err)) != TENREC_OK) {
        free(value);
        return st;
    }
    if (w->pg->lost.is_lost)
        st = store_get_rounds(w->pg->store, w->keys, world, w->deadline_ns, &rounds, value,
                              w->missing, err);
    else
        st = store_get_all(w->pg->store, w->keys, world, w->deadline_ns, value, w->missing, err);
    if (st == TENREC_ETIMEDOUT)
        fail_missing(w, err);
    if (st == TENREC_OK)
        st = wave_sum(w, value, ret, err);
    store_values_free(value, world);
    free(value);
    return st;
}

/* ---- operations ----------------------------------------------------------------------------- */

static tenrec_status wave_contribute(const struct process_group_wave *w, const int64_t *mine,
                                     tenrec_error *err)
{
    char text[COUNTS_ROOM];
    const size_t len = counts_text(mine, w->n, text, sizeof text);
    char key[PROCESS_GROUP_KEY_ROOM];

    /* Unlike a SET this has an answer, and so takes one request. */
    snprintf(key, sizeof key, "%llu/%d", (unsigned long long)w->round, w->pg->rank);
    return store_compare_set(w->pg->store, key, &(struct store_value){ NULL, 0 },
                             &(struct store_value){ text, len }, w->deadline_ns, NULL, err);
}

static tenrec_status wave_begin(struct process_group_wave *w, tenrec_error *err)
{
    struct tenrec_process_group *pg = w->pg;
    bool tidy = pg->succeeded;
    tenrec_status st = begin_round(pg, w->deadline_ns, &w->round, err);

    if (st != TENREC_OK)
        return st;
    process_group_round_done_key(w->done, w->round);
    w->missing = memory_new((size_t)pg->world, sizeof *w->missing);
    if (!w->missing)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for %s of group \"%s\"", w->operation,
                           pg->name);
    if (tidy && w->round >= 2)
        process_group_round_remove(pg->store, pg->rank, w->round - 2, w->deadline_ns);
    return TENREC_OK;
}

tenrec_status process_group_wave_run(struct process_group_wave *w, const int64_t *mine,
                                     int64_t *ret, tenrec_error *err)
{
    struct store_value result = { 0 };
    tenrec_status st = wave_begin(w, err);

    if (st == TENREC_OK)
        st = wave_contribute(w, mine, err);
    if (st == TENREC_OK)
        st = w->pg->rank == 0 ? wave_lead(w, &result, err) : wave_follow(w, &result, err);
    if (st == TENREC_OK)
        st = wave_read_result(w, &result, ret, err);
    if (st != TENREC_OK && st != TENREC_ETIMEDOUT)
        tenrec_error_prefix(err, "%s of group \"%s\"", w->operation, w->pg->name);
    w->pg->succeeded = st == TENREC_OK;
    free(result.data);
    free(w->keys);
    free(w->missing);
    return st;
}
