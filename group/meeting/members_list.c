/* SPDX-License-Identifier: Apache-2.0 */
#include "group/meeting/members_list.h"

#include "core/base/memory.h"
#include "group/membership/membership.h"
#include "group/store/bytes.h"

#include <stdlib.h>
#include <string.h>

#define LIST_MAGIC 0x544d4c31u

static tenrec_status members_check_one(const struct generation *m, int32_t i,
                                       const struct member *one, tenrec_error *err)
{
    if (one->world != m->world || one->rank != i)
        return tenrec_fail(err, TENREC_EGROUP,
                           "worker \"%s\" joined group \"%s\" as rank %d with world size %d, "
                           "expected rank %d with world size %d",
                           one->name, m->group, one->rank, one->world, i, m->world);
    return member_check_backend(one, m->group, m->rank, m->backend, err);
}

/* `st`: of unpacking the record of rank `i`, which must be one of our group. */
static tenrec_status members_judge(const struct generation *m, int32_t i, tenrec_status st,
                                   const struct member *one, tenrec_error *err)
{
    if (st == TENREC_OK)
        return members_check_one(m, i, one, err);
    tenrec_error_prefix(err, "rank %d of group \"%s\"", i, m->group);
    return st;
}

tenrec_status members_unpack_one(const struct generation *m, int32_t i,
                                 const struct store_value *value, struct member *ret,
                                 tenrec_error *err)
{
    return members_judge(m, i, member_unpack(value, ret, err), ret, err);
}

/* ---- all members ----------------------------------------------------------------------- */

tenrec_status members_new(int32_t n, bool whole, struct members **ret, tenrec_error *err)
{
    struct members *members = memory_new(1, sizeof *members);

    if (members) {
        members->n = n;
        members->member = memory_new((size_t)n, sizeof *members->member);
        members->list = whole ? memory_new((size_t)n, sizeof *members->list) : NULL;
    }
    if (members && members->member && (members->list || !whole)) {
        *ret = members;
        return TENREC_OK;
    }
    members_drop(members);
    return tenrec_fail(err, TENREC_ENOMEM, "no memory for %d workers", n);
}

void members_drop(struct members *members)
{
    if (!members)
        return;
    for (int32_t i = 0; members->list && i < members->n; i++)
        free(members->list[i].texts);
    record_texts_drop(members->texts);
    free(members->list);
    free(members->member);
    free(members);
}

/* ---- the texts of all ---------------------------------------------------------------- */

enum { TEXTS_BLOCK = 16384 };

struct record_texts {
    struct record_texts *next;
    size_t used, room;
    char text[];
};

void record_texts_drop(struct record_texts *t)
{
    for (struct record_texts *next; t; t = next) {
        next = t->next;
        free(t);
    }
}

/* Returns room for `need` bytes. NULL: no memory.
 *
 * all  the bytes that may be needed from here on */
static char *texts_reserve(struct record_texts **t, size_t need, size_t all)
{
    const size_t some = all < TEXTS_BLOCK ? all : TEXTS_BLOCK, room = need > some ? need : some;
    struct record_texts *more;

    if (*t && (*t)->room - (*t)->used >= need)
        return (*t)->text + (*t)->used;
    if (!(more = malloc(sizeof *more + room)))
        return NULL;
    *more = (struct record_texts){ .next = *t, .room = room };
    *t = more;
    return more->text;
}

/* While the records are read, one rank after the other. */
struct reading {
    struct member_texts texts;
    struct member recent[2]; /* when they are not kept */
    bool more;               /* a record says more than the agents need */
};

/* Adds the record of the next rank.
 *
 * all  bytes of the records from this one on */
static tenrec_status members_add(const struct generation *m, int32_t i,
                                 const struct store_value *value, size_t all, struct reading *r,
                                 struct members *ret, tenrec_error *err)
{
    char *const room = texts_reserve(&ret->texts, value->len, all);
    struct member *const one = ret->list ? &ret->list[i] : &r->recent[i & 1];
    tenrec_status st;

    if (!room)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for the workers' records");
    r->texts.at = room;
    st = members_judge(m, i, member_unpack_into(value, &r->texts, one, err), one, err);
    ret->texts->used += (size_t)(r->texts.at - room);
    if (st != TENREC_OK)
        return st;
    ret->member[i] = (struct tenrec_member){ .size = sizeof ret->member[i],
                                             .id = i,
                                             .incarnation = (uint64_t)one->incarnation,
                                             .name = one->name,
                                             .address = one->address,
                                             .token = one->token };
    r->more = r->more || one->extra_len > 0;
    return TENREC_OK;
}

/* Returns true if all records must be read once more, to keep them; rarely so, without devices. */
static bool members_read_again(const struct reading *r, struct members *ret, tenrec_status *st,
                               tenrec_error *err)
{
    if (*st != TENREC_OK || !r->more || ret->list)
        return false;
    record_texts_drop(ret->texts);
    ret->texts = NULL;
    ret->list = memory_new((size_t)ret->n, sizeof *ret->list);
    if (!ret->list)
        *st = tenrec_fail(err, TENREC_ENOMEM, "no memory for %d workers", ret->n);
    return ret->list != NULL;
}

static tenrec_status members_unpack(const struct generation *m, const struct store_value *values,
                                    struct members *ret, tenrec_error *err)
{
    struct reading r;
    tenrec_status st = TENREC_OK;

    do {
        size_t all = 0;

        r = (struct reading){ .more = false };
        for (int32_t i = 0; i < m->world; i++)
            all += values[i].len;
        for (int32_t i = 0; i < m->world && st == TENREC_OK; i++) {
            st = members_add(m, i, &values[i], all, &r, ret, err);
            all -= values[i].len;
        }
    } while (members_read_again(&r, ret, &st, err));
    return st;
}

static int by_name(const void *a, const void *b)
{
    const struct tenrec_member *const *x = a, *const *y = b;
    int order = strcmp((*x)->name, (*y)->name);

    return order ? order : (*x)->id - (*y)->id;
}

tenrec_status members_check_names(const struct generation *m, const struct members *members,
                                  tenrec_error *err)
{
    size_t n = (size_t)members->n;
    const struct tenrec_member **sorted = memory_new(n, sizeof *sorted);
    tenrec_status st = TENREC_OK;

    if (!sorted)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for %zu workers", n);
    for (size_t i = 0; i < n; i++)
        sorted[i] = &members->member[i];
    qsort(sorted, n, sizeof *sorted, by_name);
    for (size_t i = 1; i < n && st == TENREC_OK; i++)
        if (strcmp(sorted[i - 1]->name, sorted[i]->name) == 0)
            st = tenrec_fail(err, TENREC_EGROUP,
                             "name \"%s\" is used by ranks %d and %d of group \"%s\"",
                             sorted[i]->name, sorted[i - 1]->id, sorted[i]->id, m->group);
    free(sorted);
    return st;
}

/* All records in one value, or why the group cannot meet. Without records: they are too many for a
 * value, and everyone reads each. */
static void members_pack(tenrec_status result, const char *why, const struct store_value *record,
                         size_t n, struct bytes *ret)
{
    bytes_add_u32(ret, LIST_MAGIC);
    bytes_add_u32(ret, (uint32_t)result);
    bytes_add_text(ret, why);
    bytes_add_u64(ret, n);
    for (size_t i = 0; i < n; i++)
        bytes_add_blob(ret, record[i].data, record[i].len);
}

/* Writes the list, unless another rank has. ret: the list that exists; or NULL */
static tenrec_status members_put(struct generation *m, struct bytes *list, uint64_t deadline_ns,
                                 struct store_value *ret, tenrec_error *err)
{
    const struct store_value value = { list->data, list->len };

    if (list->failed)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for the list of %d workers", m->world);
    return store_compare_set(m->store, MEMBERS_LIST_KEY, &(struct store_value){ NULL, 0 }, &value,
                             deadline_ns, ret, err);
}

tenrec_status members_publish_list(struct generation *m, const struct store_value *record,
                                   uint64_t deadline_ns, tenrec_error *err)
{
    struct bytes list = { 0 };
    tenrec_status st;

    members_pack(TENREC_OK, "", record, (size_t)m->world, &list);
    if (!list.failed && list.len > TENREC_STORE_MAX_VALUE) {
        bytes_free(&list);
        members_pack(TENREC_OK, "", NULL, 0, &list);
    }
    st = members_put(m, &list, deadline_ns, NULL, err);
    bytes_free(&list);
    return st;
}

/* Tells the others why the group cannot meet. */
void members_publish_failure(struct generation *m, const tenrec_error *why, uint64_t deadline_ns)
{
    struct bytes list = { 0 };

    members_pack(why->code, why->text, NULL, 0, &list);
    members_put(m, &list, deadline_ns, NULL, NULL);
    bytes_free(&list);
}

/* Reads all records, which exist. */
tenrec_status members_read_each(struct generation *m, const char **keys, uint64_t deadline_ns,
                                struct members *ret, struct store_value *record, tenrec_error *err)
{
    const size_t n = (size_t)m->world;
    tenrec_status st = store_get_all(m->store, keys, n, deadline_ns, record, NULL, err);

    return st == TENREC_OK ? members_unpack(m, record, ret, err) : st;
}

static tenrec_status members_fail_list(const struct generation *m, tenrec_error *err)
{
    return tenrec_fail(err, TENREC_EPROTOCOL, "malformed list of the workers of group \"%s\"",
                       m->group);
}

/* Reads what is before the records. *ret_n: 0 when everyone reads each */
static tenrec_status list_begin(const struct generation *m, const struct store_value *list,
                                struct bytes_reader *ret, size_t *ret_n, tenrec_error *err)
{
    struct bytes_reader r = { .data = list->data, .len = list->len };
    const bool ours = bytes_read_u32(&r) == LIST_MAGIC;
    const int32_t result = (int32_t)bytes_read_u32(&r);
    char why[sizeof err->text];

    bytes_read_text(&r, why, sizeof why);
    *ret_n = bytes_read_count(&r, (size_t)m->world, 8);
    if (!ours || r.bad || result > TENREC_OK)
        return members_fail_list(m, err);
    if (result != TENREC_OK)
        return tenrec_fail(err, (tenrec_status)result, "%s", why);
    *ret = r;
    return *ret_n == 0 || *ret_n == (size_t)m->world ? TENREC_OK : members_fail_list(m, err);
}

/* Returns the next record, borrowed from the list, or false at a malformed one. */
static bool list_next(struct bytes_reader *r, struct store_value *ret)
{
    ret->data = (void *)(uintptr_t)bytes_read_blob(r, TENREC_STORE_MAX_VALUE, &ret->len);
    return !r->bad;
}

tenrec_status members_unpack_list(const struct generation *m, const struct store_value *list,
                                  struct members *ret, size_t *ret_n, tenrec_error *err)
{
    struct store_value record;
    struct bytes_reader b;
    struct reading r;
    tenrec_status st;

    do {
        r = (struct reading){ .more = false };
        st = list_begin(m, list, &b, ret_n, err);
        for (size_t i = 0; st == TENREC_OK && i < *ret_n; i++)
            st = list_next(&b, &record) ? members_add(m, (int32_t)i, &record,
                                                      list->len - b.at + record.len, &r, ret, err)
                                        : members_fail_list(m, err);
    } while (members_read_again(&r, ret, &st, err));
    return st;
}

/* ---- the list in the store ----------------------------------------------------------- */

static tenrec_status list_fetch(void *arg, uint64_t deadline_ns, struct store_value *ret,
                                tenrec_error *err)
{
    const struct generation *m = arg;
    const char *key = MEMBERS_LIST_KEY;

    return store_get_all(m->store, &key, 1, deadline_ns, ret, NULL, err);
}

/* A list with our token is that of this life of the group. */
static bool list_has_us(void *arg, const struct store_value *list)
{
    const struct generation *m = arg;
    struct store_value record = { .data = NULL };
    struct bytes_reader r;
    struct member us;
    size_t n;
    bool has;

    if (list_begin(m, list, &r, &n, NULL) != TENREC_OK || n == 0)
        return false;
    for (int32_t i = 0; i <= m->rank; i++)
        if (!list_next(&r, &record))
            return false;
    if (member_unpack(&record, &us, NULL) != TENREC_OK)
        return false;
    has = us.token == m->token;
    member_free(&us);
    return has;
}

tenrec_status members_get_list(struct generation *m, uint64_t deadline_ns, struct host_value *ret,
                               tenrec_error *err)
{
    const struct host_copy copy = { list_fetch, list_has_us, m };

    return m->copies ? host_copy_read(&copy, deadline_ns, ret, err)
                     : list_fetch(m, deadline_ns, &ret->value, err);
}
