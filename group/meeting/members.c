/* SPDX-License-Identifier: Apache-2.0 */
#include "group/meeting/meeting.h"

#include "core/base/clock.h"
#include "core/base/fail.h"
#include "core/base/memory.h"
#include "group/meeting/members_list.h"
#include "group/membership/group_directory.h"
#include "group/membership/membership.h"
#include "group/store/store.h"

#include <stdlib.h>
#include <string.h>

#define KEY_ROOM 32

/* The more ranks wait for the list, the longer they do so before they ask for more. */
enum { FIRST_ROUND_MS = 100, LONGEST_ROUND_MS = 2000, STAND_IN_ROUNDS = 5 };

/* Another process has published the record `there` for our rank. */
static tenrec_status members_fail_taken(const struct generation *m, const struct store_value *there,
                                        tenrec_error *err)
{
    struct member other;
    tenrec_status st = member_unpack(there, &other, err);

    if (st != TENREC_OK) {
        tenrec_error_prefix(err, "rank %d of group \"%s\"", m->rank, m->group);
        return st;
    }
    st = tenrec_fail(err, TENREC_EGROUP,
                     "rank %d of group \"%s\" was taken by worker \"%s\" (process %lld on %s)",
                     m->rank, m->group, other.name, (long long)other.pid, other.host);
    member_free(&other);
    return st;
}

static tenrec_status members_publish(struct generation *m, const char *name, const char *address,
                                     const struct store_value *extra, uint64_t deadline_ns,
                                     tenrec_error *err)
{
    struct member me = { .rank = m->rank,
                         .world = m->world,
                         .incarnation = m->incarnation,
                         .token = m->token,
                         .name = name,
                         .backend = m->backend };
    struct store_value there = { 0 };
    tenrec_status st;
    char key[KEY_ROOM];

    snprintf(key, sizeof key, "member/%d", m->rank);
    st = member_publish(&me, address, extra, m->store, key, deadline_ns, &there, err);
    if (st == TENREC_OK && there.data)
        st = members_fail_taken(m, &there, err);
    free(there.data);
    return st;
}

/* ---- the wait -------------------------------------------------------------------------------- */

/* The state of one wait. */
struct members_wait {
    struct generation *m;
    uint64_t since_ns, deadline_ns;
    const char **keys;          /* owns; of the records, by rank; NULL before the first use */
    struct store_value *record; /* owns; n */
    bool *missing, *seen;       /* own one block; n each */
    unsigned rounds;            /* that have ended */
    bool whole;                 /* their records are kept */
    struct members *members;    /* owns */
};

static tenrec_status members_wait_init(struct members_wait *w, tenrec_error *err)
{
    const size_t n = (size_t)w->m->world;

    w->since_ns = clock_now_ns();
    w->record = memory_new(n, sizeof *w->record);
    w->missing = memory_new(n, 2 * sizeof *w->missing);
    if (!w->record || !w->missing)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for %zu workers", n);
    w->seen = w->missing + n;
    return members_new(w->m->world, w->whole, &w->members, err);
}

/* Makes the keys of all records, which most ranks never need. */
static tenrec_status members_wait_name(struct members_wait *w, tenrec_error *err)
{
    if (!w->keys && !(w->keys = store_numbered_keys("member", (size_t)w->m->world)))
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for %d workers", w->m->world);
    return TENREC_OK;
}

static void members_wait_finish(struct members_wait *w)
{
    free(w->record);
    free(w->missing);
    free(w->keys);
    members_drop(w->members);
}

/* Checks the records that appeared since the last round. */
static tenrec_status members_check_new(void *arg, const bool *missing, tenrec_error *err)
{
    struct members_wait *w = arg;
    tenrec_status st = TENREC_OK;

    for (int32_t i = 0; i < w->m->world && st == TENREC_OK; i++) {
        struct store_value value = { 0 };
        struct member one = { 0 };
        if (missing[i] || w->seen[i])
            continue;
        w->seen[i] = true;
        if (tenrec_store_get(w->m->store, w->keys[i], 0, &value.data, &value.len, NULL) !=
            TENREC_OK)
            continue; /* that rank has given up already */
        st = members_unpack_one(w->m, i, &value, &one, err);
        member_free(&one);
        free(value.data);
    }
    return st;
}

/* Reads and checks all records, and publishes the list, or why the group cannot meet. */
static tenrec_status members_gather(struct members_wait *w, struct members *ret, tenrec_error *err)
{
    tenrec_status st = members_wait_name(w, err);

    if (st == TENREC_OK)
        st = members_read_each(w->m, w->keys, w->deadline_ns, ret, w->record, err);
    if (st == TENREC_OK)
        st = members_check_names(w->m, ret, err);
    if (st == TENREC_OK)
        st = members_publish_list(w->m, w->record, w->deadline_ns, err);
    store_values_free(w->record, (size_t)w->m->world);
    memset(w->record, 0, (size_t)w->m->world * sizeof *w->record);
    return st;
}

/* Names the missing ranks after an error. Ranks that give up before us remove their records, so
 * only ranks that were never seen count as missing. */
static tenrec_status members_blame(struct members_wait *w, tenrec_status st, tenrec_error *err)
{
    const struct generation *m = w->m;
    bool any = false;
    char ranks[160];

    for (int32_t i = 0; i < m->world; i++)
        any = any || !w->seen[i];
    for (int32_t i = 0; i < m->world && any; i++)
        w->missing[i] = !w->seen[i];
    ranks_text(ranks, sizeof ranks, w->missing, m->world, NULL);
    if (st == TENREC_ETIMEDOUT)
        return tenrec_fail(err, st, "%s did not join group \"%s\" within %llu ms (%.80s)%s", ranks,
                           m->group,
                           (unsigned long long)((clock_now_ns() - w->since_ns) / 1000000u),
                           tenrec_store_name(m->store), m->hint);
    /* Rank 0 gives up first and closes its store. */
    if (any && m->rank >= 0 && w->seen[m->rank])
        tenrec_error_prefix(err, "%s did not join group \"%s\" while its store answered", ranks,
                            m->group);
    else
        tenrec_error_prefix(err, "waiting for the workers of group \"%s\"", m->group);
    return st;
}

/* ---- rank 0 ---------------------------------------------------------------------------------- */

/* Waits for the records of all ranks, in rounds: a rank that disagrees is reported at once, even if
 * others never join. */
static tenrec_status members_lead(struct members_wait *w, tenrec_error *err)
{
    const uint32_t world = (uint32_t)w->m->world;
    const struct store_rounds rounds = { FIRST_ROUND_MS + world / 2, LONGEST_ROUND_MS,
                                         members_check_new, w };
    tenrec_status st = members_wait_name(w, err);

    if (st != TENREC_OK)
        return st;
    st = store_get_rounds(w->m->store, w->keys, world, w->deadline_ns, &rounds, NULL, w->missing,
                          err);
    if (st == TENREC_OK)
        st = members_gather(w, w->members, err);
    else if (st != TENREC_EGROUP && st != TENREC_EPROTOCOL)
        return members_blame(w, st, err);
    return st;
}

/* The group is static, and visitors find it. */
static tenrec_status members_claim(struct generation *m, const char *name, uint64_t deadline_ns,
                                   tenrec_error *err)
{
    tenrec_status st = group_kind_claim_static(m->whole, m->group, m->run, deadline_ns, err);

    if (st != TENREC_OK)
        tenrec_error_prefix(err, "worker \"%s\" (rank %d)", name, m->rank);
    else
        st = group_directory_announce(m->whole, m->group, m->run, m->world, m->incarnation,
                                      deadline_ns, err);
    return st;
}

/* ---- the others ------------------------------------------------------------------------------ */

/* Checks which ranks are missing. */
static tenrec_status members_look(struct members_wait *w, bool *ret_any, tenrec_error *err)
{
    const size_t n = (size_t)w->m->world;
    tenrec_status st = members_wait_name(w, err);

    if (st == TENREC_OK)
        st = store_check_all(w->m->store, w->keys, n, w->deadline_ns, w->missing, err);
    *ret_any = false;
    for (size_t i = 0; i < n && st == TENREC_OK; i++) {
        w->seen[i] = w->seen[i] || !w->missing[i];
        *ret_any = *ret_any || w->missing[i];
    }
    return st;
}

/* All ranks are there, but no list: rank 0 has died, or given up before the last came. */
static tenrec_status members_stand_in(struct members_wait *w, tenrec_error *err)
{
    struct members *all = NULL;
    tenrec_status st = members_new(w->m->world, false, &all, err);

    if (st == TENREC_OK)
        st = members_gather(w, all, err);
    if (st == TENREC_EGROUP || st == TENREC_EPROTOCOL)
        members_publish_failure(w->m, err, w->deadline_ns);
    members_drop(all);
    return st;
}

/* After each round of the wait for the list. Ranks stand in for rank 0 one after the other, the
 * second after a round, two more after the next. The others look only after several rounds, to know
 * later which ranks were missing: the store answers all of them. */
static tenrec_status members_between(void *arg, const bool *unused, tenrec_error *err)
{
    struct members_wait *w = arg;
    bool any, stands_in;
    tenrec_status st;

    (void)unused;
    w->rounds += w->rounds < STAND_IN_ROUNDS;
    stands_in = w->m->rank >= 0 && w->m->rank >> w->rounds == 0;
    if (!stands_in && w->rounds < STAND_IN_ROUNDS)
        return TENREC_OK;
    st = members_look(w, &any, err);
    return st == TENREC_OK && !any && stands_in ? members_stand_in(w, err) : st;
}

static tenrec_status members_read_list(struct members_wait *w, const struct store_value *list,
                                       tenrec_error *err)
{
    size_t n;
    tenrec_status st = members_unpack_list(w->m, list, w->members, &n, err);

    if (st != TENREC_OK || n > 0)
        return st;
    if ((st = members_wait_name(w, err)) == TENREC_OK)
        st = members_read_each(w->m, w->keys, w->deadline_ns, w->members, w->record, err);
    store_values_free(w->record, (size_t)w->m->world);
    return st;
}

static tenrec_status members_follow(struct members_wait *w, tenrec_error *err)
{
    const uint32_t world = (uint32_t)w->m->world;
    const struct store_rounds rounds = { FIRST_ROUND_MS + 2 * world, LONGEST_ROUND_MS + 2 * world,
                                         members_between, w };
    const char *key = MEMBERS_LIST_KEY;
    struct host_value list = { .mapped = NULL };
    bool any = false;
    tenrec_status st =
        store_get_rounds(w->m->store, &key, 1, w->deadline_ns, &rounds, NULL, &any, err);

    if (st == TENREC_OK)
        st = members_get_list(w->m, w->deadline_ns, &list, err);
    if (st == TENREC_ETIMEDOUT && members_look(w, &any, NULL) == TENREC_OK && !any &&
        w->m->rank >= 0)
        st = members_gather(w, w->members, err);
    else if (st == TENREC_OK)
        st = members_read_list(w, &list.value, err);
    else if (st != TENREC_EGROUP)
        st = members_blame(w, st, err);
    host_value_drop(&list);
    return st;
}

/* ---- both ------------------------------------------------------------------------------------ */

static tenrec_status members_wait_run(struct members_wait *w,
                                      tenrec_status (*run)(struct members_wait *, tenrec_error *),
                                      struct members **ret, tenrec_error *err)
{
    tenrec_status st = members_wait_init(w, err);

    if (st == TENREC_OK)
        st = run(w, err);
    if (st == TENREC_OK) {
        *ret = w->members;
        w->members = NULL;
    }
    members_wait_finish(w);
    return st;
}

tenrec_status members_await(struct generation *m, uint64_t deadline_ns, struct members **ret,
                            tenrec_error *err)
{
    struct members_wait w = { .m = m, .deadline_ns = deadline_ns, .whole = true };

    return members_wait_run(&w, members_follow, ret, err);
}

/* Removes what this rank has left behind two lives ago. */
static void members_tidy(struct generation *m, uint64_t deadline_ns)
{
    struct tenrec_store *life;
    char text[KEY_ROOM];

    if (m->incarnation < 3)
        return;
    snprintf(text, sizeof text, "%lld", (long long)m->incarnation - 2);
    if (tenrec_store_open_prefix(m->base, text, &life, NULL) != TENREC_OK)
        return;
    if (m->rank == 0)
        store_remove(life, MEMBERS_LIST_KEY, deadline_ns, NULL);
    process_group_tidy(life, m->rank, PROCESS_GROUP_SHUTDOWN, deadline_ns);
    tenrec_store_close(life);
}

/* A group that cannot meet fails at once for all ranks, and not at their deadlines. */
static tenrec_status members_enter(struct generation *m, const char *name, const char *address,
                                   const struct store_value *extra, uint64_t deadline_ns,
                                   struct members **ret, tenrec_error *err)
{
    struct members_wait w = { .m = m, .deadline_ns = deadline_ns };
    const bool leads = m->rank == 0;
    tenrec_error why;
    tenrec_status st = leads ? members_claim(m, name, deadline_ns, &why) : TENREC_OK;

    if (st == TENREC_OK) {
        st = members_publish(m, name, address, extra, deadline_ns, err);
        if (st != TENREC_OK)
            return st; /* no other rank is concerned */
        st = members_wait_run(&w, leads ? members_lead : members_follow, ret, &why);
    }
    if (leads && (st == TENREC_EGROUP || st == TENREC_EPROTOCOL))
        members_publish_failure(m, &why, deadline_ns);
    return st == TENREC_OK ? st : fail_with(err, &why);
}

tenrec_status members_join(struct generation *m, const char *name, const char *address,
                           const struct store_value *extra, uint64_t deadline_ns,
                           struct members **ret, tenrec_error *err)
{
    tenrec_status st = member_check(name, address, extra, err);

    if (st != TENREC_OK)
        return st;
    members_tidy(m, deadline_ns);
    st = members_enter(m, name, address, extra, deadline_ns, ret, err);
    if (st == TENREC_OK || st == TENREC_EGROUP)
        m->end = GENERATION_LEFT;
    return st;
}
