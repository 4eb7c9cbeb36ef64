/* SPDX-License-Identifier: Apache-2.0 */
/* handle.h - references as values see them: a value shares and drops its handles through
 * their ops. */
#ifndef TENREC_VALUE_HANDLE_H
#define TENREC_VALUE_HANDLE_H

#include <stdbool.h>

struct tenrec_rref;
struct tenrec_value;

struct handle_ops {
    struct tenrec_rref *(*share)(struct tenrec_rref *r);
    void (*drop)(struct tenrec_rref *r); /* not NULL */
};

/* The beginning of each reference. */
struct handle {
    const struct handle_ops *ops;
};

static inline const struct handle_ops *handle_ops_of(struct tenrec_rref *r)
{
    return ((const struct handle *)(const void *)r)->ops;
}

/* Returns true if `v` has references or objects in it. */
bool value_has_handles(const struct tenrec_value *v);

#endif
