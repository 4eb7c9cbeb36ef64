/* SPDX-License-Identifier: Apache-2.0 */
/* store_table.h - the keys of a store in this process: of the TCP server and of
 * the in-process store. Not locked: its owner is one thread or holds a lock. */
#ifndef TENREC_STORE_STORE_TABLE_H
#define TENREC_STORE_STORE_TABLE_H

#include "core/base/hash.h"
#include "group/store/bytes.h"

#include <stdbool.h>
#include <tenrec/error.h>

/* The kind of interest in a key. */
enum store_link_kind {
    STORE_LINK_WAIT,    /* until it exists */
    STORE_LINK_WATCH,   /* every change */
    STORE_LINK_BARRIER, /* until enough workers have arrived */
    STORE_LINK_KINDS,
};

#define STORE_MAX_VALUE ((size_t)64 << 20) /* bytes, of the TCP server and its client */

struct store_entry;

/* One interest of `owner` in one key. */
struct store_link {
    enum store_link_kind kind;
    void *owner;
    struct store_entry *entry;
    struct store_link *prev, *next;             /* of the entry and that kind, oldest first */
    struct store_link *owner_prev, *owner_next; /* for its owner */
};

struct store_item {
    struct store_item *next;
    size_t len;
    uint8_t data[];
};

struct store_entry {
    struct store_entry *chain;
    uint64_t hash;
    uint8_t *value; /* owns */
    size_t value_len;
    bool present;
    struct store_link *links[STORE_LINK_KINDS];
    struct store_item *first_item, **last_item; /* of a queue */
    size_t n_items;
    size_t key_len;
    uint8_t key[];
};

struct store_table {
    struct siphash_key hash_key; /* keys are from strangers */
    struct store_entry **bucket;
    size_t n_buckets; /* a power of two */
    size_t n_entries;
    size_t n_keys;      /* entries that are present */
    uint64_t n_changes; /* of the set of keys, and of the order in which the buckets have them */
    size_t bytes;       /* memory in use, about */
    size_t limit;       /* of bytes; 0 for none */
};

tenrec_status store_table_init(struct store_table *t, size_t limit);
void store_table_finish(struct store_table *t);

struct store_entry *store_table_find(const struct store_table *t, struct bytes_slice key);
/* The entry of `key`, made when missing; store_table_tidy frees it again when it stayed empty.
 * errors: ETOOBIG (the limit), ENOMEM; *ret is NULL then */
tenrec_status store_table_make(struct store_table *t, struct bytes_slice key,
                               struct store_entry **ret);
/* Frees an entry that is empty. */
void store_table_tidy(struct store_table *t, struct store_entry *e);

/* ETOOBIG at the limit, ENOMEM; the old value stays then. */
tenrec_status store_entry_set(struct store_table *t, struct store_entry *e,
                              struct bytes_slice value);
tenrec_status store_entry_append(struct store_table *t, struct store_entry *e,
                                 struct bytes_slice value);
/* Adds to the decimal number. EINVAL when the value is no number or the sum overflows. */
tenrec_status store_entry_add(struct store_table *t, struct store_entry *e, int64_t delta,
                              int64_t *ret);
/* Stores `desired` if the value is `expected`; *ret borrows the answer of COMPARE_SET, *ret_changed
 * is true if `desired` was stored. */
tenrec_status store_entry_compare_set(struct store_table *t, struct store_entry *e,
                                      struct bytes_slice expected, struct bytes_slice desired,
                                      struct bytes_slice *ret, bool *ret_changed);
/* Removes the value; the entry stays until it is tidied. */
void store_entry_unset(struct store_table *t, struct store_entry *e);

tenrec_status store_entry_push(struct store_table *t, struct store_entry *e,
                               struct bytes_slice value);
struct store_item *store_entry_pop(struct store_table *t, struct store_entry *e); /* free() it */

/* Returns true if WAIT and CHECK find the key: it has a value or a queue. */
bool store_entry_there(const struct store_entry *e);

/* Returns the number of missing keys, and sets ret_missing[i] for each key. */
size_t store_table_missing(const struct store_table *t, const char *const *keys, size_t n,
                           bool *ret_missing);

/* NULL at the limit or without memory. */
struct store_link *store_entry_link(struct store_table *t, struct store_entry *e,
                                    enum store_link_kind kind, void *owner);
/* Unhangs and frees the link; the entry is not tidied. */
void store_link_drop(struct store_table *t, struct store_link *link);

#endif
