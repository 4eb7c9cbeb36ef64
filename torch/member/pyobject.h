/* SPDX-License-Identifier: Apache-2.0 */
/* pyobject.h - a pickled Python object as plain data: a tree in an arena. The name of a function or
 * a class is two texts, and no code runs. */
#ifndef TENREC_MEMBER_PYOBJECT_H
#define TENREC_MEMBER_PYOBJECT_H

#include "core/base/memory.h"
#include "group/store/bytes.h"
#include "rpc/value/value.h"

#include <tenrec/error.h>
#include <tenrec/value.h>

struct arrivals;

enum pyobject_kind {
    PY_NONE,
    PY_BOOL,
    PY_INT,
    PY_FLOAT,
    PY_TEXT,
    PY_BYTES,
    PY_LIST, /* also a set */
    PY_TUPLE,
    PY_DICT,     /* items: keys and values in turn */
    PY_GLOBAL,   /* items: the texts of module and name */
    PY_OBJECT,   /* items: the class, a GLOBAL, and its fields */
    PY_TENSOR,   /* integer: its place in the message's list of tensors */
    PY_RREF,     /* items: a fork: owner, id (two), fork (two), parent, the type's text */
    PY_RECEIVER, /* torch's function that makes a TENSOR */
    PY_RREF_RECEIVER,
};

struct pyobject {
    enum pyobject_kind kind;
    uint32_t n, room; /* items; BUILD appends to an OBJECT, so that a tree may hold a list twice */
    union {
        bool boolean;
        int64_t integer;
        double number;
        struct bytes_slice text; /* BYTES: borrowed from the pickle; TEXT: UTF-8, a NUL behind it */
        struct pyobject **item;
    } u;
};

/* Objects in one pickle, and items that they hold: the rest is refused. */
#define PYOBJECT_MAX (1u << 20)
/* Bytes of all objects of a pickle, and of their value with all its texts: so many for each byte of
 * the pickle, the most that a pickle needs in which no object stands at two places, and some more
 * for those that do. The rest is refused: a few bytes recall a list of any size. */
#define PYOBJECT_BYTES_EACH 128
#define PYOBJECT_BYTES_MORE ((size_t)1 << 20)
#define PYOBJECT_DEPTH_MAX 64

/* Reads one pickle of protocol 2 to 5, by Python's pickler or torch's C++ one, to its STOP. Of the
 * calls that a pickle may ask for, only those that make tensors, lists, devices and the objects of
 * torch's RPC are known; they make plain data.
 *
 * data     borrowed as long as the objects
 * arena    has the objects, also after an error
 * errors   EPROTOCOL, EUNSUPPORTED (an operation or a call that is not known), ETOOBIG, ENOMEM; all
 *          with the place: "pickle at byte 12: ..."
 */
tenrec_status unpickle(const void *data, size_t len, struct arena *arena,
                       const struct pyobject **ret, tenrec_error *err);

/* The same for a pickle of torch's C++ one, where a text that is no UTF-8 is of kind BYTES: that is
 * how it carries a pickle of Python's. */
tenrec_status unpickle_jit(const void *data, size_t len, struct arena *arena,
                           const struct pyobject **ret, tenrec_error *err);

/* The bytes that a pickle of `len` bytes may become. */
static inline size_t pyobject_budget(size_t len)
{
    return len > SIZE_MAX / PYOBJECT_BYTES_EACH / 2
               ? SIZE_MAX
               : PYOBJECT_BYTES_EACH * len + PYOBJECT_BYTES_MORE;
}

/* Is `o` an OBJECT of that class with `n` fields? */
bool pyobject_is(const struct pyobject *o, const char *module, const char *name, uint32_t n);
/* Is `o` a pair of integers of 0 or more, the id of a reference? */
bool pyobject_rref_id(const struct pyobject *o, struct rref_id *ret);
bool pyobject_is_text(const struct pyobject *o, const char *text);

#define PY_INTERNAL "torch.distributed.rpc.internal"
#define PY_RPC "torch._C._distributed_rpc"
#define PY_JIT "torch.jit._pickle"

/* ---- values: lists, tuples and sets become arrays, dicts maps ---- */

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
