/* SPDX-License-Identifier: Apache-2.0 */
#include "group/store/store_table.h"

#include "core/base/memory.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#define FIRST_BUCKETS 64

static bool table_has_room(const struct store_table *t, size_t n)
{
    return !t->limit || (t->bytes < t->limit && n <= t->limit - t->bytes);
}

/* Counts `n` more bytes; refuses at the limit. */
static bool table_charge(struct store_table *t, size_t n)
{
    if (!table_has_room(t, n))
        return false;
    t->bytes += n;
    return true;
}

/* `n` zeroed bytes that count; NULL at the limit or without memory. */
static void *table_new(struct store_table *t, size_t n)
{
    void *p = table_has_room(t, n) ? memory_new(1, n) : NULL;

    if (p)
        t->bytes += n;
    return p;
}

static tenrec_status table_why(const struct store_table *t, size_t n)
{
    return table_has_room(t, n) ? TENREC_ENOMEM : TENREC_ETOOBIG;
}

tenrec_status store_table_init(struct store_table *t, size_t limit)
{
    *t = (struct store_table){ .limit = limit,
                               .n_buckets = FIRST_BUCKETS,
                               .hash_key = siphash_draw() };
    t->bucket = memory_new(FIRST_BUCKETS, sizeof(struct store_entry *));
    return t->bucket ? TENREC_OK : TENREC_ENOMEM;
}

static void entry_drop(struct store_entry *e)
{
    struct store_item *item, *next_item;
    struct store_link *link, *next_link;

    for (item = e->first_item; item; item = next_item) {
        next_item = item->next;
        free(item);
    }
    for (int kind = 0; kind < STORE_LINK_KINDS; kind++)
        for (link = e->links[kind]; link; link = next_link) {
            next_link = link->next;
            free(link);
        }
    free(e->value);
    free(e);
}

void store_table_finish(struct store_table *t)
{
    struct store_entry *e, *next;

    for (size_t i = 0; t->bucket && i < t->n_buckets; i++)
        for (e = t->bucket[i]; e; e = next) {
            next = e->chain;
            entry_drop(e);
        }
    free(t->bucket);
    *t = (struct store_table){ 0 };
}

/* Doubles the buckets. Without memory the chains only grow longer. */
static void table_widen(struct store_table *t)
{
    struct store_entry **wide = memory_new(t->n_buckets * 2, sizeof(struct store_entry *));
    struct store_entry *e, *next;

    if (!wide)
        return;
    for (size_t i = 0; i < t->n_buckets; i++)
        for (e = t->bucket[i]; e; e = next) {
            next = e->chain;
            LL_PREPEND2(wide[e->hash & (t->n_buckets * 2 - 1)], e, chain);
        }
    free(t->bucket);
    t->bucket = wide;
    t->n_buckets *= 2;
    t->n_changes++;
}

struct store_entry *store_table_find(const struct store_table *t, struct bytes_slice key)
{
    const uint64_t hash = siphash(&t->hash_key, key.data, key.len);

    for (struct store_entry *e = t->bucket[hash & (t->n_buckets - 1)]; e; e = e->chain)
        if (e->hash == hash && e->key_len == key.len &&
            (key.len == 0 || memcmp(e->key, key.data, key.len) == 0))
            return e;
    return NULL;
}

tenrec_status store_table_make(struct store_table *t, struct bytes_slice key,
                               struct store_entry **ret)
{
    struct store_entry *e = store_table_find(t, key);

    *ret = e;
    if (e)
        return TENREC_OK;
    if (!(e = table_new(t, sizeof *e + key.len)))
        return table_why(t, sizeof *e + key.len);
    if (t->n_entries >= t->n_buckets)
        table_widen(t);
    e->hash = siphash(&t->hash_key, key.data, key.len);
    e->key_len = key.len;
    if (key.len)
        memcpy(e->key, key.data, key.len);
    e->last_item = &e->first_item;
    LL_PREPEND2(t->bucket[e->hash & (t->n_buckets - 1)], e, chain);
    t->n_entries++;
    *ret = e;
    return TENREC_OK;
}

void store_table_tidy(struct store_table *t, struct store_entry *e)
{
    if (!e || e->present || e->first_item)
        return;
    for (int kind = 0; kind < STORE_LINK_KINDS; kind++)
        if (e->links[kind])
            return;
    LL_DELETE2(t->bucket[e->hash & (t->n_buckets - 1)], e, chain);
    t->n_entries--;
    t->bytes -= sizeof *e + e->key_len;
    entry_drop(e);
}

static void entry_clear(struct store_table *t, struct store_entry *e)
{
    if (!e->present)
        return;
    t->bytes -= e->value_len;
    free(e->value);
    e->value = NULL;
    e->value_len = 0;
    e->present = false;
    t->n_keys--;
}

tenrec_status store_entry_set(struct store_table *t, struct store_entry *e,
                              struct bytes_slice value)
{
    uint8_t *copy;

    if (!table_charge(t, value.len))
        return TENREC_ETOOBIG;
    if (!(copy = bytes_copy(value.data, value.len))) {
        t->bytes -= value.len;
        return TENREC_ENOMEM;
    }
    t->n_changes += !e->present;
    entry_clear(t, e);
    e->value = copy;
    e->value_len = value.len;
    e->present = true;
    t->n_keys++;
    return TENREC_OK;
}

tenrec_status store_entry_append(struct store_table *t, struct store_entry *e,
                                 struct bytes_slice value)
{
    uint8_t *grown;

    if (!e->present)
        return store_entry_set(t, e, value);
    if (e->value_len + value.len > STORE_MAX_VALUE)
        return TENREC_ETOOBIG;
    if (!table_charge(t, value.len))
        return TENREC_ETOOBIG;
    if (!(grown = memory_resize(e->value, e->value_len + value.len + 1, 1))) {
        t->bytes -= value.len;
        return TENREC_ENOMEM;
    }
    if (value.len)
        memcpy(grown + e->value_len, value.data, value.len);
    e->value = grown;
    e->value_len += value.len;
    grown[e->value_len] = 0;
    return TENREC_OK;
}

tenrec_status store_entry_add(struct store_table *t, struct store_entry *e, int64_t delta,
                              int64_t *ret)
{
    int64_t n = 0;
    tenrec_status st;
    char text[32];
    int len;

    if (e->present && !bytes_number((struct bytes_slice){ e->value, e->value_len }, &n))
        return TENREC_EINVAL;
    if (__builtin_add_overflow(n, delta, &n))
        return TENREC_EINVAL;
    len = snprintf(text, sizeof text, "%" PRId64, n);
    st = store_entry_set(t, e, (struct bytes_slice){ (const uint8_t *)text, (size_t)len });
    if (st == TENREC_OK)
        *ret = n;
    return st;
}

tenrec_status store_entry_compare_set(struct store_table *t, struct store_entry *e,
                                      struct bytes_slice expected, struct bytes_slice desired,
                                      struct bytes_slice *ret, bool *ret_changed)
{
    bool equal = e->present
                     ? e->value_len == expected.len &&
                           (expected.len == 0 || memcmp(e->value, expected.data, expected.len) == 0)
                     : expected.len == 0;
    tenrec_status st;

    *ret_changed = equal;
    if (equal && (st = store_entry_set(t, e, desired)) != TENREC_OK)
        return st;
    *ret = e->present ? (struct bytes_slice){ e->value, e->value_len } : expected;
    return TENREC_OK;
}

void store_entry_unset(struct store_table *t, struct store_entry *e)
{
    t->n_changes += e->present;
    entry_clear(t, e);
}

tenrec_status store_entry_push(struct store_table *t, struct store_entry *e,
                               struct bytes_slice value)
{
    struct store_item *item = table_new(t, sizeof *item + value.len);

    if (!item)
        return table_why(t, sizeof *item + value.len);
    item->len = value.len;
    if (value.len)
        memcpy(item->data, value.data, value.len);
    *e->last_item = item;
    e->last_item = &item->next;
    e->n_items++;
    return TENREC_OK;
}

struct store_item *store_entry_pop(struct store_table *t, struct store_entry *e)
{
    struct store_item *item = e->first_item;

    if (!item)
        return NULL;
    e->first_item = item->next;
    if (!e->first_item)
        e->last_item = &e->first_item;
    e->n_items--;
    t->bytes -= sizeof *item + item->len;
    return item;
}

bool store_entry_there(const struct store_entry *e)
{
    return e && (e->present || e->first_item);
}

size_t store_table_missing(const struct store_table *t, const char *const *keys, size_t n,
                           bool *ret_missing)
{
    size_t count = 0;

    for (size_t i = 0; i < n; i++) {
        ret_missing[i] = !store_entry_there(store_table_find(t, bytes_of_text(keys[i])));
        count += ret_missing[i];
    }
    return count;
}

struct store_link *store_entry_link(struct store_table *t, struct store_entry *e,
                                    enum store_link_kind kind, void *owner)
{
    struct store_link *link = table_new(t, sizeof *link);

    if (!link)
        return NULL;
    link->kind = kind;
    link->owner = owner;
    link->entry = e;
    DL_APPEND(e->links[kind], link);
    return link;
}

void store_link_drop(struct store_table *t, struct store_link *link)
{
    DL_DELETE(link->entry->links[link->kind], link);
    t->bytes -= sizeof *link;
    free(link);
}
