/* SPDX-License-Identifier: Apache-2.0 */
/* hooked_store.h - a store in memory at which something happens just before or after
 * an operation. */
#ifndef TENREC_TESTS_HOOKED_STORE_H
#define TENREC_TESTS_HOOKED_STORE_H

#include <tenrec/store.h>

enum hooked_op {
    HOOKED_GET,
    HOOKED_COMPARE_SET,
    HOOKED_CHECK,
    HOOKED_SET,
    HOOKED_ADD,
    HOOKED_REMOVE
};

struct hooks {
    struct tenrec_store *inner; /* what the hooks change; owned by the hooked one */
    /* `key` ends in what the caller calls it. Not OK: it fails so, and is not done. May
     * be NULL. */
    tenrec_status (*before)(enum hooked_op op, const char *key);
    /* Not OK: it is done, and fails so nevertheless. May be NULL. */
    tenrec_status (*after)(enum hooked_op op, const char *key);
};

/* The store, over `inner` (taken); its hooks are `h`, which is borrowed. */
struct tenrec_store *hooked_store(struct hooks *h, struct tenrec_store *inner);

#endif
