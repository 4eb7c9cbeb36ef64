/* SPDX-License-Identifier: Apache-2.0 */
/* hash.h - uthash, configured not to exit when memory runs out, and with a hash that peers cannot
 * compute: they choose most keys. A HASH_ADD that fails leaves the table unchanged:
 *
 *     HASH_ADD(hh, table, key, sizeof e->key, e);
 *     if (!hash_has(e))
 *         return tenrec_fail(err, TENREC_ENOMEM, "no memory for ...");
 */
#ifndef TENREC_BASE_HASH_H
#define TENREC_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

#ifdef UTHASH_H
#error "include base/hash.h, not uthash.h"
#endif
#define HASH_NONFATAL_OOM 1
#define HASH_FUNCTION(key, len, ret) ((ret) = hash_keyed(key, len))
#include <uthash.h>

/* SipHash with a key of this process. */
unsigned hash_keyed(const void *data, size_t len);

/* Returns true if the preceding HASH_ADD added the entry. */
#define hash_has(e) ((e)->hh.tbl != NULL)

/* SipHash-2-4: a keyed hash for bytes from strangers, which cannot make them
 * collide without the key. */

struct siphash_key {
    uint64_t k[2];
};

/* Draws a key from the kernel. */
struct siphash_key siphash_draw(void);

uint64_t siphash(const struct siphash_key *key, const void *data, size_t len);

#endif
