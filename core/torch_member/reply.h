/* SPDX-License-Identifier: Apache-2.0 */
/* reply.h - what torch's workers answer: values, exceptions and errors. */
#ifndef TENREC_TORCH_MEMBER_REPLY_H
#define TENREC_TORCH_MEMBER_REPLY_H

#include "base/arena.h"

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
    struct tenrec_value value; /* borrowed until reply_finish, and from the message */
};

/* Reads an answer; reply_finish it, also after an error.
 *
 * errors   EREMOTE (the function raised: the exception's text), EPROTOCOL, EUNSUPPORTED (the answer
 *          is no plain value), ETOOBIG, ENOMEM
 */
tenrec_status reply_read(struct tenrec_msg *msg, struct reply *ret, tenrec_error *err);
void reply_finish(struct reply *a);

#endif
