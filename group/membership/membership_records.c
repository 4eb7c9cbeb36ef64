/* SPDX-License-Identifier: Apache-2.0 */
#include "group/membership/membership.h"

#include "core/base/memory.h"

#include <stdlib.h>
#include <string.h>

void membership_record_key(char ret[LEASE_KEY], int64_t incarnation)
{
    snprintf(ret, LEASE_KEY, "member/%lld", (long long)incarnation);
}

/* The keys of records, and what is under them. */
struct record_read {
    char (*text)[LEASE_KEY];
    const char **key;
    struct store_value *value; /* without data: none */
};

static void record_read_finish(struct record_read *r, size_t n)
{
    if (r->value)
        store_values_free(r->value, n);
    free(r->text);
    free(r->key);
    free(r->value);
}

static tenrec_status record_read_init(struct record_read *r, const struct membership_view_entry *e,
                                      size_t n, tenrec_error *err)
{
    *r = (struct record_read){ .text = memory_new(n, sizeof *r->text),
                               .key = memory_new(n, sizeof *r->key),
                               .value = memory_new(n, sizeof *r->value) };
    if (!r->text || !r->key || !r->value)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for the records of %zu workers", n);
    for (size_t i = 0; i < n; i++) {
        membership_record_key(r->text[i], e[i].incarnation);
        r->key[i] = r->text[i];
    }
    return TENREC_OK;
}

tenrec_status membership_list_records(struct membership_list *r,
                                      const struct membership_view_entry *e, size_t n,
                                      uint64_t deadline_ns, struct member *ret, tenrec_error *err)
{
    struct record_read read;
    tenrec_status st;

    if (n == 0)
        return TENREC_OK;
    st = record_read_init(&read, e, n, err);
    for (size_t i = 0; i < n; i++)
        ret[i] = (struct member){ .rank = -1 };
    if (st == TENREC_OK)
        st = store_read_all(r->store, read.key, n, deadline_ns, read.value, err);
    for (size_t i = 0; i < n && st == TENREC_OK; i++) {
        if (!read.value[i].data)
            continue;
        st = member_unpack(&read.value[i], &ret[i], err);
        if (st == TENREC_OK && (ret[i].rank != e[i].id || strcmp(ret[i].name, e[i].name) != 0))
            st = tenrec_fail(err, TENREC_EPROTOCOL,
                             "the record of worker \"%s\" belongs to another worker", e[i].name);
    }
    for (size_t i = 0; i < n && st != TENREC_OK; i++)
        member_free(&ret[i]);
    record_read_finish(&read, n);
    return st;
}
