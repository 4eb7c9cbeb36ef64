/* SPDX-License-Identifier: Apache-2.0 */
/* membership_records.c - the records of members: each under a key of its own, and those of many in
 * one value, which the worker that enters many joiners writes. They read it instead of all keys: it
 * may lack records of members that came later, and have some of members that have left. */
#include "group/membership/membership_inside.h"

#include "core/base/memory.h"
#include "group/store/bytes.h"
#include "group/store/host_copy.h"

#include <stdlib.h>
#include <string.h>

#define RECORDS_KEY "records"
#define RECORDS_MAGIC 0x31525254u /* "TRR1" */

void membership_record_key(char ret[LEASE_KEY], int64_t incarnation)
{
    snprintf(ret, LEASE_KEY, "member/%lld", (long long)incarnation);
}

/* The keys of records, and what is under them. */
struct record_read {
    char (*text)[LEASE_KEY];
    const char **key;
    struct store_value *value; /* without data: none */
    size_t n;
};

static void record_read_finish(struct record_read *r)
{
    if (r->value)
        store_values_free(r->value, r->n);
    free(r->text);
    free(r->key);
    free(r->value);
}

static tenrec_status record_read_init(struct record_read *r, size_t most, tenrec_error *err)
{
    *r = (struct record_read){ .text = memory_new(most, sizeof *r->text),
                               .key = memory_new(most, sizeof *r->key),
                               .value = memory_new(most, sizeof *r->value) };
    if (!r->text || !r->key || !r->value)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for the records of %zu workers", most);
    return TENREC_OK;
}

static void record_read_add(struct record_read *r, const struct membership_view_entry *e)
{
    membership_record_key(r->text[r->n], e->incarnation);
    r->key[r->n] = r->text[r->n];
    r->n++;
}

/* Unpacks the record of `e`. */
static tenrec_status record_unpack(const struct store_value *value,
                                   const struct membership_view_entry *e, struct member *ret,
                                   tenrec_error *err)
{
    tenrec_status st = member_unpack(value, ret, err);

    if (st == TENREC_OK && (ret->rank != e->id || strcmp(ret->name, e->name) != 0))
        st = tenrec_fail(err, TENREC_EPROTOCOL,
                         "the record of worker \"%s\" belongs to another worker", e->name);
    return st;
}

/* Reads each of the records that `ret` lacks. */
static tenrec_status records_read_each(struct membership_list *r,
                                       const struct membership_view_entry *e, size_t n,
                                       uint64_t deadline_ns, struct member *ret, tenrec_error *err)
{
    struct record_read read;
    tenrec_status st = record_read_init(&read, n, err);
    size_t at = 0;

    for (size_t i = 0; i < n && st == TENREC_OK; i++)
        if (!ret[i].name)
            record_read_add(&read, &e[i]);
    if (st == TENREC_OK && read.n)
        st = store_read_all(r->store, read.key, read.n, deadline_ns, read.value, err);
    for (size_t i = 0; i < n && st == TENREC_OK; i++)
        if (!ret[i].name && read.value[at++].data)
            st = record_unpack(&read.value[at - 1], &e[i], &ret[i], err);
    record_read_finish(&read);
    return st;
}

/* ---- all in one value ---------------------------------------------------------------- */

static void pack_one(struct bytes *b, const struct member *m)
{
    struct store_value packed = { 0 };

    member_pack(m, &packed);
    bytes_add_u64(b, (uint64_t)m->rank);
    bytes_add_u64(b, (uint64_t)m->incarnation);
    bytes_add_blob(b, packed.data, packed.len);
    b->failed = b->failed || !packed.data;
    free(packed.data);
}

void membership_records_pack(struct membership_list *r, const struct member *m, size_t n,
                             uint64_t deadline_ns)
{
    struct bytes b = { 0 };

    bytes_add_u32(&b, RECORDS_MAGIC);
    for (size_t i = 0; i < n; i++)
        if (m[i].name)
            pack_one(&b, &m[i]);
    if (!b.failed)
        store_set(r->store, RECORDS_KEY, b.data, b.len, deadline_ns, NULL);
    bytes_free(&b);
}

/* Finds the records of `e`, which is ordered by id as the value is. */
static tenrec_status records_find(const struct store_value *all,
                                  const struct membership_view_entry *e, size_t n,
                                  struct member *ret, tenrec_error *err)
{
    struct bytes_reader b = { .data = all->data, .len = all->len };
    tenrec_status st = TENREC_OK;
    size_t i = 0;

    if (bytes_read_u32(&b) != RECORDS_MAGIC)
        return TENREC_OK;
    while (st == TENREC_OK && i < n && b.at < b.len) {
        const uint64_t id = bytes_read_u64(&b), incarnation = bytes_read_u64(&b);
        struct store_value one = { .data = NULL };

        one.data = (void *)(uintptr_t)bytes_read_blob(&b, TENREC_STORE_MAX_VALUE, &one.len);
        if (b.bad)
            break;
        while (i < n && (uint64_t)e[i].id < id)
            i++;
        if (i < n && (uint64_t)e[i].id == id && (uint64_t)e[i].incarnation == incarnation &&
            !ret[i].name)
            st = record_unpack(&one, &e[i], &ret[i], err);
    }
    return st;
}

/* The entries whose records are read together. */
struct records_together {
    struct membership_list *list;
    const struct membership_view_entry *entry;
    size_t n;
};

static tenrec_status together_fetch(void *arg, uint64_t deadline_ns, struct store_value *ret,
                                    tenrec_error *err)
{
    const struct records_together *t = arg;

    return store_read(t->list->store, RECORDS_KEY, deadline_ns, ret, err);
}

/* Returns true if a copy is of this group, and as new as the newest entry. */
static bool together_fits(void *arg, const struct store_value *copy)
{
    const struct records_together *t = arg;
    const struct membership_view_entry us = { .id = t->list->id,
                                              .incarnation = t->list->incarnation,
                                              .name = t->list->name };
    const struct membership_view_entry *newest = t->entry;
    struct member found[2] = { { .rank = -1 }, { .rank = -1 } };
    bool fits;

    for (size_t i = 1; i < t->n; i++)
        if (t->entry[i].incarnation > newest->incarnation)
            newest = &t->entry[i];
    fits = records_find(copy, &us, 1, &found[0], NULL) == TENREC_OK && found[0].name &&
           found[0].token == t->list->token &&
           records_find(copy, newest, 1, &found[1], NULL) == TENREC_OK && found[1].name;
    member_free(&found[0]);
    member_free(&found[1]);
    return fits;
}

static tenrec_status records_read_together(struct membership_list *r,
                                           const struct membership_view_entry *e, size_t n,
                                           uint64_t deadline_ns, struct member *ret,
                                           tenrec_error *err)
{
    struct records_together t = { r, e, n };
    const struct host_copy copy = { together_fetch, together_fits, &t };
    struct host_value all = { .mapped = NULL };
    tenrec_status st = r->id >= 0 && n >= HOST_COPY_FROM
                           ? host_copy_read(&copy, deadline_ns, &all, err)
                           : together_fetch(&t, deadline_ns, &all.value, err);

    if (st == TENREC_OK && all.value.data)
        st = records_find(&all.value, e, n, ret, err);
    host_value_drop(&all);
    return st;
}

tenrec_status membership_list_records(struct membership_list *r,
                                      const struct membership_view_entry *e, size_t n,
                                      uint64_t deadline_ns, struct member *ret, tenrec_error *err)
{
    tenrec_status st = TENREC_OK;

    for (size_t i = 0; i < n; i++)
        ret[i] = (struct member){ .rank = -1 };
    if (n >= MEMBERSHIP_MANY)
        st = records_read_together(r, e, n, deadline_ns, ret, err);
    if (st == TENREC_OK && n)
        st = records_read_each(r, e, n, deadline_ns, ret, err);
    for (size_t i = 0; i < n && st != TENREC_OK; i++)
        member_free(&ret[i]);
    return st;
}
