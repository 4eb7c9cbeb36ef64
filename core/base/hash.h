/* SPDX-License-Identifier: Apache-2.0 */
/* hash.h - uthash, configured not to exit when memory runs out. A HASH_ADD that
 * fails leaves the table unchanged:
 *
 *     HASH_ADD(hh, table, key, sizeof e->key, e);
 *     if (!hash_has(e))
 *         return tenrec_fail(err, TENREC_ENOMEM, "no memory for ...");
 */
#ifndef TENREC_BASE_HASH_H
#define TENREC_BASE_HASH_H

#ifdef UTHASH_H
#error "include base/hash.h, not uthash.h"
#endif
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

/* Returns true if the preceding HASH_ADD added the entry. */
#define hash_has(e) ((e)->hh.tbl != NULL)

#endif
