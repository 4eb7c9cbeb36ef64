/* SPDX-License-Identifier: Apache-2.0 */
/* pickler.h - writes pickles: those of Python's pickler (protocol 3) or of torch's C++ one
 * (protocol 2, "JIT"). Remembers the first failure, so that a whole pickle is written before it is
 * checked. */
#ifndef TENREC_MEMBER_PICKLER_H
#define TENREC_MEMBER_PICKLER_H

#include "group/store/bytes.h"

#include <tenrec/value.h>

struct outgoing;
struct rref_id;
struct tenrec_msg;

struct pickler {
    bool jit;
    struct bytes out;
    struct tenrec_tensor **tensor; /* owns the array; shares its tensors */
    size_t n_tensors, room;
    struct outgoing *refs; /* borrows; receives the references; NULL: they are refused */
    tenrec_status status;
    tenrec_error why;
};

/* Begins a pickle behind what is written already. */
void pickler_begin(struct pickler *p);
void pickler_end(struct pickler *p);

void pickler_op(struct pickler *p, char op); /* an operation without operands */
void pickler_int(struct pickler *p, int64_t v);
void pickler_bool(struct pickler *p, bool v);
void pickler_text(struct pickler *p, const char *text, size_t len);
void pickler_global(struct pickler *p, const char *module, size_t len, const char *name);

/* Writes a value: an array as a list, a map as a dict, a reference as a fork. Fails for what Python
 * would not know: an object; in JIT form also bytes. */
void pickler_value(struct pickler *p, const struct tenrec_value *v);
/* A tuple of values. */
void pickler_tuple(struct pickler *p, const struct tenrec_value *v, size_t n);

/* A pair of integers. */
void pickler_rref_id(struct pickler *p, struct rref_id id);

/* Writes the tensors and, as a text, the pickle of `inner`: how torch's C++ pickles carry one of
 * Python's. Takes its failure, too; frees `inner`. */
void pickler_nest(struct pickler *p, struct pickler *inner);

/* A call of "module.name", as the payload of a request. The tuple of its arguments is written
 * between the two. */
void pickler_call_begin(struct pickler *p, const char *module, size_t len, const char *name);
/* The same without the first byte of a payload, to be nested in another pickle. */
void pickler_udf_begin(struct pickler *p, const char *module, size_t len, const char *name);
void pickler_call_end(struct pickler *p);

/* torch's name of a worker. */
void pickler_worker_info(struct pickler *p, const char *name, int64_t id);

/* Makes the message of what was written, with its tensors; frees the pickler always.
 *
 * errors   the first failure of the writing (EUNSUPPORTED, EINVAL), ENOMEM
 */
tenrec_status pickler_message(struct pickler *p, int32_t type, struct tenrec_msg **ret,
                              tenrec_error *err);
void pickler_finish(struct pickler *p);

#endif
