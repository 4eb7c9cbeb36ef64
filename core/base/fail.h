/* SPDX-License-Identifier: Apache-2.0 */
/* fail.h - the rare path: conditions that seldom hold, and an error that is passed on. */
#ifndef TENREC_BASE_FAIL_H
#define TENREC_BASE_FAIL_H

#include <tenrec/error.h>

#define likely(condition) __builtin_expect(!!(condition), 1)
#define unlikely(condition) __builtin_expect(!!(condition), 0)

/* Copies `why` to *err, which may be NULL, and returns its status. */
static inline tenrec_status fail_with(tenrec_error *err, const tenrec_error *why)
{
    if (err)
        *err = *why;
    return why->code;
}

#endif
