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

static bool is_neighbour(const struct member *one, const struct member *before)
{
    return strcmp(one->host, before->host) == 0 && strcmp(one->boot, before->boot) == 0 &&
           strcmp(one->backend, before->backend) == 0;
}

/* Most members are of the host of the one before, whose texts serve both. Returns the bytes of
 * `room` that stay in use. */
static size_t members_share_texts(struct member *one, const struct member *before, char *room)
{
    const size_t own = strlen(one->name) + 1 + strlen(one->address) + 1;

    one->host = before->host;
    one->boot = before->boot;
    one->backend = before->backend;
    if (one->extra_len)
        one->extra = memmove(room + own, one->extra, one->extra_len);
    return own + one->extra_len;
}

tenrec_status members_unpack(const struct generation *m, const struct store_value *values,
                             struct members *ret, tenrec_error *err)
{
    tenrec_status st = TENREC_OK;
    size_t all = 0;

    for (int32_t i = 0; i < m->world; i++)
        all += values[i].len;
    for (int32_t i = 0; i < m->world && st == TENREC_OK; i++) {
        struct member *one = &ret->list[i];
        const size_t len = values[i].len;
        char *room = texts_reserve(&ret->texts, len, all);

        if (!room)
            return tenrec_fail(err, TENREC_ENOMEM, "no memory for the workers' records");
        st = members_judge(m, i, member_unpack_into(&values[i], room, one, err), one, err);
        if (st == TENREC_OK)
            ret->texts->used +=
                i > 0 && is_neighbour(one, one - 1) ? members_share_texts(one, one - 1, room) : len;
        all -= len;
    }
    return st;
}

static int by_name(const void *a, const void *b)
{
    const struct member *const *x = a, *const *y = b;
    int order = strcmp((*x)->name, (*y)->name);

    return order ? order : (*x)->rank - (*y)->rank;
}

tenrec_status members_check_names(const struct generation *m, const struct members *members,
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

/* The records borrow from `list`. *ret_n: 0 when everyone reads each */
tenrec_status members_open_list(const struct generation *m, const struct store_value *list,
                                struct store_value *record, size_t *ret_n, tenrec_error *err)
{
    struct bytes_reader r = { .data = list->data, .len = list->len };
    const bool ours = bytes_read_u32(&r) == LIST_MAGIC;
    const int32_t result = (int32_t)bytes_read_u32(&r);
    char why[sizeof err->text];

    bytes_read_text(&r, why, sizeof why);
    *ret_n = bytes_read_count(&r, (size_t)m->world, 8);
    for (size_t i = 0; i < *ret_n; i++)
        record[i].data =
            (void *)(uintptr_t)bytes_read_blob(&r, TENREC_STORE_MAX_VALUE, &record[i].len);
    if (!ours || r.bad || result > TENREC_OK)
        return members_fail_list(m, err);
    if (result != TENREC_OK)
        return tenrec_fail(err, (tenrec_status)result, "%s", why);
    return *ret_n == 0 || *ret_n == (size_t)m->world ? TENREC_OK : members_fail_list(m, err);
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
    struct store_value *record = memory_new((size_t)m->world, sizeof *record);
    struct member us;
    bool has = false;
    size_t n = 0;

    if (record && members_open_list(m, list, record, &n, NULL) == TENREC_OK && n > 0 &&
        member_unpack(&record[m->rank], &us, NULL) == TENREC_OK) {
        has = us.token == m->token;
        member_free(&us);
    }
    free(record);
    return has;
}

tenrec_status members_get_list(struct generation *m, uint64_t deadline_ns, struct host_value *ret,
                               tenrec_error *err)
{
    const struct host_copy copy = { list_fetch, list_has_us, m };

    return m->copies ? host_copy_read(&copy, deadline_ns, ret, err)
                     : list_fetch(m, deadline_ns, &ret->value, err);
}
