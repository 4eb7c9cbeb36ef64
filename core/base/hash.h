/* SPDX-License-Identifier: Apache-2.0 */
/* hash.h - uthash, which ends the process when memory runs out unless told not
 * to. An entry that finds no room is not added, and the table is as before:
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

/* Was the entry added by the HASH_ADD before? */
#define hash_has(e) ((e)->hh.tbl != NULL)

#endif
