/* SPDX-License-Identifier: Apache-2.0 */
#include "group/meeting/meeting.h"

#include "core/base/clock.h"
#include "core/base/memory.h"
#include "group/membership/group_directory.h"
#include "group/membership/membership.h"
#include "group/store/store.h"

#include <stdlib.h>
#include <string.h>

#define KEY_ROOM 32

enum { FIRST_ROUND_MS = 100, LONGEST_ROUND_MS = 2000 };

void members_drop(struct members *members)
{
    if (!members)
        return;
    for (int32_t i = 0; i < members->n; i++)
        member_free(&members->list[i]);
    free(members);
}

/* Agrees on the kind and size of the group: the first rank writes them, the others must match. */
static tenrec_status members_agree(struct generation *m, const char *name, uint64_t deadline_ns,
                                   tenrec_error *err)
{
    char mine[32], *theirs;
    tenrec_status st = group_kind_claim_static(m->whole, m->group, m->run, deadline_ns, err);

    if (st != TENREC_OK) {
        tenrec_error_prefix(err, "worker \"%s\" (rank %d)", name, m->rank);
        return st;
    }
    snprintf(mine, sizeof mine, "static %d", m->world);
    st = store_swap_text(m->store, "kind", "", mine, deadline_ns, &theirs, err);
    if (st != TENREC_OK)
        return st;
    if (strcmp(theirs, mine) == 0)
        st = TENREC_OK;
    else if (strncmp(theirs, "static ", 7) == 0)
        st = tenrec_fail(err, TENREC_EGROUP,
                         "world size %d of worker \"%s\" (rank %d) is not that of group \"%s\", "
                         "which was started with %.16s",
                         m->world, name, m->rank, m->group, theirs + 7);
    else
        st = tenrec_fail(err, TENREC_EGROUP,
                         "group \"%s\" mixes static and dynamic workers: \"%s\" (rank %d) has a "
                         "world size, others have none",
                         m->group, name, m->rank);
    free(theirs);
    return st;
}

static tenrec_status members_publish(struct generation *m, const char *name, const char *address,
                                     const struct store_value *extra, uint64_t deadline_ns,
                                     tenrec_error *err)
{
    struct member me = {
        .rank = m->rank, .world = m->world, .incarnation = m->incarnation, .token = m->token
    };
    char key[KEY_ROOM];

    snprintf(me.name, sizeof me.name, "%s", name);
    snprintf(me.backend, sizeof me.backend, "%s", m->backend ? m->backend : "");
    snprintf(key, sizeof key, "member/%d", m->rank);
    return member_publish(&me, address, extra, m->store, key, deadline_ns, err);
}

/* Reads the record of rank `i`, which must be one of our group. */
static tenrec_status members_unpack_one(const struct generation *m, int32_t i,
                                        const struct store_value *value, struct member *ret,
                                        tenrec_error *err)
{
    tenrec_status st = member_unpack(value, ret, err);

    if (st != TENREC_OK) {
        tenrec_error_prefix(err, "rank %d of group \"%s\"", i, m->group);
        return st;
    }
    if (ret->world != m->world || ret->rank != i)
        return tenrec_fail(err, TENREC_EGROUP,
                           "worker \"%s\" joined as rank %d of %d, expected rank %d of %d of "
                           "group \"%s\"",
                           ret->name, ret->rank, ret->world, i, m->world, m->group);
    if (i == m->rank && ret->token != m->token)
        return tenrec_fail(
            err, TENREC_EGROUP,
            "rank %d of group \"%s\" was taken by worker \"%s\" (process %lld on %s)", i, m->group,
            ret->name, (long long)ret->pid, ret->host);
    return member_check_backend(ret, m->group, m->rank, m->backend, err);
}

static tenrec_status members_unpack(const struct generation *m, const struct store_value *values,
                                    struct members *ret, tenrec_error *err)
{
    for (int32_t i = 0; i < m->world; i++) {
        tenrec_status st = members_unpack_one(m, i, &values[i], &ret->list[i], err);
        if (st != TENREC_OK)
            return st;
    }
    return TENREC_OK;
}

static int by_name(const void *a, const void *b)
{
    const struct member *const *x = a, *const *y = b;
    int order = strcmp((*x)->name, (*y)->name);

    return order ? order : (*x)->rank - (*y)->rank;
}

static tenrec_status check_names(const struct generation *m, const struct members *members,
                                 tenrec_error *err)
{
    size_t n = (size_t)members->n;
    const struct member **sorted = memory_new(n, sizeof *sorted);
    tenrec_status st = TENREC_OK;

    if (!sorted)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for %zu workers", n);
    for (size_t i = 0; i < n; i++)
        sorted[i] = &members->list[i];
    qsort(sorted, n, sizeof *sorted, by_name);
    for (size_t i = 1; i < n && st == TENREC_OK; i++)
        if (strcmp(sorted[i - 1]->name, sorted[i]->name) == 0)
            st = tenrec_fail(err, TENREC_EGROUP,
                             "name \"%s\" is used by ranks %d and %d of group \"%s\"",
                             sorted[i]->name, sorted[i - 1]->rank, sorted[i]->rank, m->group);
    free(sorted);
    return st;
}

/* Checks the records that appeared since the last round. */
static tenrec_status members_check_new(struct generation *m, const char **keys, const bool *missing,
                                       bool *seen, tenrec_error *err)
{
    tenrec_status st = TENREC_OK;

    for (int32_t i = 0; i < m->world && st == TENREC_OK; i++) {
        struct store_value value = { 0 };
        struct member one = { 0 };
        if (missing[i] || seen[i])
            continue;
        seen[i] = true;
        if (tenrec_store_get(m->store, keys[i], 0, &value.data, &value.len, NULL) != TENREC_OK)
            continue; /* that rank has given up already */
        st = members_unpack_one(m, i, &value, &one, err);
        member_free(&one);
        free(value.data);
    }
    return st;
}

/* The state of one wait for all records. */
struct members_wait {
    struct generation *m;
    const char **keys;
    bool *seen;
};

static tenrec_status members_check_between(void *arg, const bool *missing, tenrec_error *err)
{
    const struct members_wait *w = arg;

    return members_check_new(w->m, w->keys, missing, w->seen, err);
}

/* Waits for the records of all ranks, in rounds: a rank that disagrees is reported at once, even if
 * others never join. Other ranks that give up before us remove their records, so only ranks that
 * were never seen count as missing. */
static tenrec_status members_get(struct generation *m, const char **keys, uint64_t deadline_ns,
                                 struct store_value *ret, bool *missing, bool *seen,
                                 tenrec_error *err)
{
    struct members_wait w = { m, keys, seen };
    const struct store_rounds rounds = { FIRST_ROUND_MS, LONGEST_ROUND_MS, members_check_between,
                                         &w };
    const size_t n = (size_t)m->world;
    size_t n_missing = 0;
    tenrec_status st = store_get_rounds(m->store, keys, n, deadline_ns, &rounds, ret, missing, err);

    if (st == TENREC_OK)
        return st;
    for (size_t i = 0; i < n; i++)
        n_missing += !seen[i];
    for (size_t i = 0; i < n && n_missing; i++)
        missing[i] = !seen[i];
    return st;
}

/* Returns true if a round ended before the store failed, so that `seen` is valid, and a rank was
 * missing then. */
static bool members_has_polled(const struct generation *m, const bool *seen)
{
    bool all = true;

    for (int32_t i = 0; i < m->world; i++)
        all = all && seen[i];
    return m->rank >= 0 && seen[m->rank] && !all;
}

/* Waits for the records of all ranks. */
static tenrec_status members_collect(struct generation *m, uint64_t since_ns, uint64_t deadline_ns,
                                     struct store_value *ret, tenrec_error *err)
{
    size_t n = (size_t)m->world;
    bool *missing = memory_new(n, 2 * sizeof *missing);
    const char **keys = store_numbered_keys("member", n);
    char ranks[160];
    tenrec_status st;

    if (!missing || !keys) {
        st = tenrec_fail(err, TENREC_ENOMEM, "no memory for %zu workers", n);
        goto out;
    }
    st = members_get(m, keys, deadline_ns, ret, missing, missing + n, err);
    if (st == TENREC_ETIMEDOUT) {
        ranks_text(ranks, sizeof ranks, missing, m->world, NULL);
        tenrec_fail(err, st, "%s did not join group \"%s\" within %llu ms (%.80s)%s", ranks,
                    m->group, (unsigned long long)((clock_now_ns() - since_ns) / 1000000u),
                    tenrec_store_name(m->store), m->hint);
    } else if (st != TENREC_OK && members_has_polled(m, missing + n)) {
        /* Rank 0 gives up first and closes its store. */
        ranks_text(ranks, sizeof ranks, missing, m->world, NULL);
        tenrec_error_prefix(err, "%s did not join group \"%s\" while its store answered", ranks,
                            m->group);
    } else if (st != TENREC_OK) {
        tenrec_error_prefix(err, "waiting for the workers of group \"%s\"", m->group);
    }
out:
    free(keys);
    free(missing);
    return st;
}

tenrec_status members_await(struct generation *m, uint64_t deadline_ns, struct members **ret,
                            tenrec_error *err)
{
    const uint64_t since_ns = clock_now_ns();
    const size_t n = (size_t)m->world;
    struct store_value *values = memory_new(n, sizeof *values);
    struct members *members = memory_new(1, sizeof *members + n * sizeof *members->list);
    tenrec_status st = TENREC_OK;

    if (!values || !members) {
        st = tenrec_fail(err, TENREC_ENOMEM, "no memory for %d workers", m->world);
        goto out;
    }
    members->n = m->world;
    if ((st = members_collect(m, since_ns, deadline_ns, values, err)) != TENREC_OK)
        goto out;
    if ((st = members_unpack(m, values, members, err)) == TENREC_OK)
        st = check_names(m, members, err);
out:
    if (values)
        store_values_free(values, n);
    free(values);
    if (st == TENREC_OK)
        *ret = members;
    else
        members_drop(members);
    return st;
}

tenrec_status members_join(struct generation *m, const char *name, const char *address,
                           const struct store_value *extra, uint64_t deadline_ns,
                           struct members **ret, tenrec_error *err)
{
    tenrec_status st, published;

    if ((st = member_check(name, address, extra, err)) != TENREC_OK)
        return st;
    st = members_agree(m, name, deadline_ns, err);
    if (st == TENREC_OK && m->rank == 0)
        st = group_directory_announce(m->whole, m->group, m->run, m->world, m->incarnation,
                                      deadline_ns, err);
    /* Publish a rank that disagrees as well: the others then fail now and not at their deadline. */
    if (st == TENREC_OK || st == TENREC_EGROUP) {
        published =
            members_publish(m, name, address, extra, deadline_ns, st == TENREC_OK ? err : NULL);
        st = st == TENREC_OK ? published : st;
    }
    if (st == TENREC_OK)
        st = members_await(m, deadline_ns, ret, err);
    if (st == TENREC_OK || st == TENREC_EGROUP)
        m->end = GENERATION_LEFT;
    return st;
}
