/* SPDX-License-Identifier: Apache-2.0 */
#include "group/membership/generation.h"

#include "core/base/clock.h"
#include "core/base/log.h"
#include "group/membership/member_record.h"
#include "group/membership/membership.h"
#include "group/store/host_copy.h"

#include <stdlib.h>
#include <string.h>
#include <tenrec/store.h>
#include <tenrec/types.h>

/* Keys below tenrec/<group>[/<run>]:
 *   rank/<r>           number of starts of rank r
 *   left/<r>           the last life that rank r has left in good order
 *   left               the last life that all have left together
 *   <n>/member/<r>     the record of rank r (members.c), kept for one more life, as
 *                      slow members may still be reading it */
#define KEY_ROOM 64
#define ALL_LEFT "left"
#define RECORD_MS 2000 /* a rank that has just started publishes within this */

static void rank_key(char *ret, const char *prefix, int32_t rank)
{
    snprintf(ret, KEY_ROOM, "%s/%d", prefix, rank);
}

/* Returns true if the number under `key` is at least `n`. */
static bool has_reached(struct tenrec_store *base, const char *key, int64_t n, uint64_t deadline_ns)
{
    struct store_value text;
    bool reached;

    if (store_read(base, key, deadline_ns, &text, NULL) != TENREC_OK || !text.data)
        return false;
    reached = strtoll(text.data, NULL, 10) >= n;
    free(text.data);
    return reached;
}

bool generation_rank_left(struct tenrec_store *base, int32_t rank, int64_t n, uint64_t deadline_ns)
{
    char key[KEY_ROOM];

    rank_key(key, "left", rank);
    return has_reached(base, ALL_LEFT, n, deadline_ns) || has_reached(base, key, n, deadline_ns);
}

tenrec_status generation_mark_left(const struct generation *m, uint64_t deadline_ns,
                                   tenrec_error *err)
{
    char text[KEY_ROOM];

    snprintf(text, sizeof text, "%lld", (long long)m->incarnation);
    return store_set(m->base, ALL_LEFT, text, strlen(text), deadline_ns, err);
}

/* Reads the record of this rank's life `n`, if it appears within the limit. */
static bool former_record(struct generation *m, int64_t n, uint64_t deadline_ns, struct member *ret)
{
    uint64_t limit_ns = clock_deadline_ms(RECORD_MS);
    struct store_value value;
    char key[KEY_ROOM];
    const char *keys[] = { key };
    bool found;

    snprintf(key, sizeof key, "%lld/member/%d", (long long)n, m->rank);
    if (store_get_all(m->base, keys, 1, deadline_ns < limit_ns ? deadline_ns : limit_ns, &value,
                      NULL, NULL) != TENREC_OK)
        return false;
    found = member_unpack(&value, ret, NULL) == TENREC_OK;
    free(value.data);
    return found;
}

static void generation_undo_start(struct generation *m, uint64_t deadline_ns)
{
    char key[KEY_ROOM];

    rank_key(key, "rank", m->rank);
    store_add(m->base, key, -1, deadline_ns, NULL, NULL);
}

/* Returns true if this rank has taken part in its life `n`, or the store fails. */
static bool life_was_used(struct generation *m, int64_t n, uint64_t deadline_ns)
{
    struct store_value record;
    char key[KEY_ROOM];
    bool used;

    snprintf(key, sizeof key, "%lld/member/%d", (long long)n, m->rank);
    if (store_read(m->base, key, deadline_ns, &record, NULL) != TENREC_OK)
        return true;
    used = record.data != NULL;
    free(record.data);
    return used || generation_rank_left(m->base, m->rank, n, deadline_ns);
}

/* The life before has no record of this rank: a start was counted, and its process ended, or never
 * got the answer, or could not take it back. The others still wait in that life, so this start
 * takes part in it. */
static void generation_resume(struct generation *m, uint64_t deadline_ns)
{
    do {
        generation_undo_start(m, deadline_ns);
        m->incarnation--;
    } while (m->incarnation > 1 && !life_was_used(m, m->incarnation - 1, deadline_ns));
}

/* Checks the former holder of this rank, which has not left: it lives, or has crashed. */
static tenrec_status generation_check_former(struct generation *m, uint64_t deadline_ns,
                                             tenrec_error *err)
{
    struct member other = { 0 };
    tenrec_status st = TENREC_OK;

    if (generation_rank_left(m->base, m->rank, m->incarnation - 1, deadline_ns))
        return TENREC_OK;
    if (!former_record(m, m->incarnation - 1, deadline_ns, &other)) {
        snprintf(m->hint, sizeof m->hint,
                 "; rank %d was started twice, or died before: remove a store of an earlier run",
                 m->rank);
        generation_resume(m, deadline_ns);
        return TENREC_OK;
    }
    if (member_runs_here(&other))
        st = tenrec_fail(err, TENREC_EGROUP,
                         "rank %d of group \"%s\" is taken by worker \"%s\" (process %lld on %s)",
                         m->rank, m->group, other.name, (long long)other.pid, other.host);
    else
        snprintf(
            m->hint, sizeof m->hint,
            "; rank %d was worker \"%.40s\" (process %lld on %.32s) before, which did not leave",
            m->rank, other.name, (long long)other.pid, other.host);
    member_free(&other);
    return st;
}

/* Removes our record of the life before the last. */
static void generation_tidy(struct generation *m, uint64_t deadline_ns)
{
    char record[KEY_ROOM];

    if (m->incarnation < 3)
        return;
    snprintf(record, sizeof record, "%lld/member/%d", (long long)m->incarnation - 2, m->rank);
    store_remove(m->base, record, deadline_ns, NULL);
}

static void close_views(struct generation *m)
{
    tenrec_store_close(m->store);
    tenrec_store_close(m->base);
    m->store = m->base = NULL;
}

/* Opens the view of the group. */
static tenrec_status open_base(struct generation *m, struct tenrec_store *s, const char *group,
                               const char *run, tenrec_error *err)
{
    snprintf(m->group, sizeof m->group, "%s", group);
    snprintf(m->run, sizeof m->run, "%s", run);
    m->whole = s;
    return group_directory_part(s, group, run, &m->base, err);
}

/* Opens the view of this life, once `incarnation` is known. */
static tenrec_status open_life(struct generation *m, tenrec_error *err)
{
    char text[KEY_ROOM];

    snprintf(text, sizeof text, "%lld", (long long)m->incarnation);
    return tenrec_store_open_prefix(m->base, text, &m->store, err);
}

tenrec_status generation_open(struct tenrec_store *s, const char *group, const char *run,
                              int32_t rank, int32_t world, uint64_t deadline_ns,
                              struct generation *ret, tenrec_error *err)
{
    struct generation m = {
        .rank = rank, .world = world, .end = GENERATION_GIVEN_UP, .copies = world >= HOST_COPY_FROM
    };
    char key[KEY_ROOM];
    tenrec_status st;

    if ((st = ranks_check(rank, world, err)) != TENREC_OK ||
        (st = member_draw_token(&m.token, err)) != TENREC_OK ||
        (st = open_base(&m, s, group, run, err)) != TENREC_OK)
        return st;
    rank_key(key, "rank", rank);
    st = store_add(m.base, key, 1, deadline_ns, &m.incarnation, err);
    if (st != TENREC_OK)
        goto err_views;
    if (m.incarnation > 1 && (st = generation_check_former(&m, deadline_ns, err)) != TENREC_OK) {
        generation_undo_start(&m, deadline_ns);
        goto err_views;
    }
    generation_tidy(&m, deadline_ns);
    if ((st = open_life(&m, err)) != TENREC_OK)
        goto err_views;
    *ret = m;
    return TENREC_OK;

err_views:
    close_views(&m);
    return st;
}

tenrec_status generation_visit(struct tenrec_store *s, const struct group_directory_entry *e,
                               struct generation *ret, tenrec_error *err)
{
    struct generation m = {
        .rank = TENREC_ANONYMOUS, .over = true, .world = e->world, .incarnation = e->incarnation
    };
    tenrec_status st = open_base(&m, s, e->name, e->run, err);

    if (st == TENREC_OK)
        st = open_life(&m, err);
    if (st == TENREC_OK)
        *ret = m;
    else
        close_views(&m);
    return st;
}

void generation_leave(struct generation *m, uint64_t deadline_ns)
{
    char key[KEY_ROOM], text[KEY_ROOM];

    if (!m->base || m->over)
        return;
    m->over = true;
    if (m->end == GENERATION_LEFT) {
        rank_key(key, "left", m->rank);
        snprintf(text, sizeof text, "%lld", (long long)m->incarnation);
        store_set(m->base, key, text, strlen(text), deadline_ns, NULL);
    } else {
        rank_key(key, "member", m->rank);
        store_remove(m->store, key, deadline_ns, NULL);
        generation_undo_start(m, deadline_ns);
    }
}

void generation_close(struct generation *m, uint64_t deadline_ns)
{
    generation_leave(m, deadline_ns);
    close_views(m);
}
