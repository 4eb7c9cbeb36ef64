/* SPDX-License-Identifier: Apache-2.0 */
/* pyobject_value.h - values from a pickle: lists, tuples and sets become arrays, dicts maps. */
#ifndef TENREC_MEMBER_PYOBJECT_VALUE_H
#define TENREC_MEMBER_PYOBJECT_VALUE_H

#include "torch/member/pyobject.h"

#include <tenrec/value.h>

struct arrivals;

/* The message that a pickle is from. */
struct pyobject_source {
    struct tenrec_tensor *const *tensor; /* borrowed as long as the value */
    size_t n_tensors;
    struct arrivals *refs; /* receives the references, borrowed likewise; NULL: they are refused */
    size_t bytes;          /* of the pickle; pyobject_budget of them limits the value */
};

/* Fills `ret` with the value of `o`.
 *
 * arena    has the arrays of the value, and `o`, whose texts the value borrows
 * errors   EUNSUPPORTED (a function, a class, a key that is no text), EPROTOCOL (a tensor that the
 *          message lacks), ETOOBIG (nested deeper than 64, too many values or bytes), ENOMEM
 */
tenrec_status pyobject_value(const struct pyobject *o, struct arena *arena,
                             const struct pyobject_source *from, struct tenrec_value *ret,
                             tenrec_error *err);

/* The same for the `n` objects at `o`; *ret: an array of them. */
tenrec_status pyobject_values(struct pyobject *const *o, uint32_t n, struct arena *arena,
                              const struct pyobject_source *from, const struct tenrec_value **ret,
                              tenrec_error *err);

#endif
