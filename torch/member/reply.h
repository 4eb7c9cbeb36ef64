/* SPDX-License-Identifier: Apache-2.0 */
/* reply.h - what torch's workers answer: values, exceptions and errors. */
#ifndef TENREC_MEMBER_REPLY_H
#define TENREC_MEMBER_REPLY_H

#include "core/base/memory.h"
#include "torch/member/pyobject.h"
#include "torch/member/references.h"

#include <tenrec/message.h>
#include <tenrec/value.h>

/* Tensors taken out of a message. */
struct message_tensors {
    struct tenrec_tensor **tensor; /* owns the array; shares its tensors */
    size_t n;
};

/* errors: ENOMEM */
tenrec_status message_tensors_take(struct tenrec_msg *msg, struct message_tensors *ret,
                                   tenrec_error *err);
void message_tensors_finish(struct message_tensors *t);

struct reply {
    struct arena arena;
    struct message_tensors tensors;
    struct arrivals refs;
    struct tenrec_value value; /* borrowed until reply_finish, and from the message */
};

/* Reads an answer of `from`; reply_finish it, also after an error.
 *
 * type     the type that it has to have, unless it is an exception
 * errors   EREMOTE (the function raised: the exception's text), EPROTOCOL, EUNSUPPORTED (the answer
 *          is no plain value), ETOOBIG, ENOMEM
 */
tenrec_status reply_read(struct tenrec_msg *msg, int32_t type, struct rref_context *refs,
                         tenrec_peer from, struct reply *ret, tenrec_error *err);

/* The text of torch's PythonUDF, or of a value, that torch's C++ pickle `o` carries: behind its
 * tensors, which have their places in the message in order, and before `behind` more items. errors:
 * EPROTOCOL */
tenrec_status nested_pickle(const struct pyobject *o, uint32_t behind, struct bytes_slice *ret,
                            tenrec_error *err);
void reply_finish(struct reply *a);

#endif
