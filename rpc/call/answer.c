/* SPDX-License-Identifier: Apache-2.0 */
/* answer.c - the answers that a callee sends. No locks. */
#include "core/backend/backend.h"
#include "core/base/log.h"
#include "core/base/memory.h"
#include "core/base/probe.h"
#include "core/tensor/tensor.h"
#include "rpc/call/calls.h"
#include "rpc/call/transfer.h"
#include "rpc/value/codec.h"

#include <stdlib.h>

#define ANSWER_SMALL 1024 /* bytes of a payload that no limit of a backend refuses */

/* An answer in flight that may be refused, or has references. */
struct answer {
    struct tenrec_worker *w;
    struct rref_transfer *transfer; /* NULL: no references */
    tenrec_peer to;
    int64_t id;
    struct tenrec_route route;
};

bool answer_is_followed(const struct tenrec_msg *msg)
{
    return msg->n_tensors > 0 || msg->payload_len > ANSWER_SMALL;
}

bool answer_is_refused(const tenrec_error *why)
{
    return why && (why->code == TENREC_EUNSUPPORTED || why->code == TENREC_EINVAL ||
                   why->code == TENREC_ETOOBIG || why->code == TENREC_ENOMEM);
}

static void answer_sent(void *arg, const tenrec_error *why)
{
    struct answer *a = arg;

    if (answer_is_refused(why)) {
        tenrec_error told = *why;
        tenrec_error_prefix(&told, "answer");
        answer_error(a->w, a->to, a->id, &a->route, true, &told);
    }
    transfer_end(a->w, a->transfer, why ? TRANSFER_REFUSED : TRANSFER_UNSURE);
    free(a);
}

/* The error that replaces an answer when out of memory. */
static struct tenrec_msg *answer_without_memory(struct tenrec_worker *w)
{
    struct tenrec_msg *msg = NULL;
    tenrec_error why;

    tenrec_fail(&why, TENREC_ENOMEM, "no memory for an answer");
    peers_blame(&w->peers, w->self.id, &why);
    codec_write_error(&why, true, &msg, NULL);
    return msg;
}

void answer_send(struct tenrec_worker *w, tenrec_peer to, int64_t id,
                 const struct tenrec_route *route, struct tenrec_msg *msg,
                 struct rref_transfer *transfer)
{
    const bool followed = msg && (transfer || answer_is_followed(msg));
    struct answer *a = followed ? memory_new(1, sizeof *a) : NULL;
    struct tenrec_done done = { NULL, NULL };

    if (!msg || (followed && !a)) {
        transfer_end(w, transfer, TRANSFER_REFUSED);
        if (msg)
            msg->release(msg);
        msg = answer_without_memory(w);
    }
    if (!msg) {
        log_line(TENREC_LOG_ERROR, w->self.name, "no memory to answer a call of '%s'",
                 peers_name(&w->peers, to));
        return;
    }
    msg->id = id;
    msg->route = *route;
    /* A refused answer would leave its caller waiting. */
    msg->flags |= TENREC_MSG_CONTROL;
    if (a) {
        *a = (struct answer){ w, transfer, to, id, *route };
        done = (struct tenrec_done){ answer_sent, a };
    }
    PROBE3(message__sent, msg->type, to, msg->payload_len);
    w->calls->port->send(w->calls->port->sender, to, msg, done);
}

void answer_copy(struct tenrec_worker *w, tenrec_peer to, int64_t id,
                 const struct tenrec_route *route, const struct tenrec_msg *msg)
{
    answer_send(w, to, id, route, rpc_message_copy(msg), NULL);
}

void answer_error(struct tenrec_worker *w, tenrec_peer to, int64_t id,
                  const struct tenrec_route *route, bool cbor, const tenrec_error *why)
{
    tenrec_error told = *why;
    struct tenrec_msg *msg = NULL;

    peers_blame(&w->peers, w->self.id, &told);
    codec_write_error(&told, cbor, &msg, NULL);
    answer_send(w, to, id, route, msg, NULL);
}

void answer_value(struct tenrec_worker *w, tenrec_peer to, int64_t id,
                  const struct tenrec_route *route, int32_t type, const struct tenrec_value *value)
{
    struct tenrec_msg *msg = NULL;
    struct transfer_out out;
    tenrec_error why;

    transfer_out_init(&out, w, to);
    if (codec_write_value_refs(value, type, &out.refs, &msg, &why) == TENREC_OK) {
        answer_send(w, to, id, route, msg, out.transfer);
    } else {
        transfer_end(w, out.transfer, TRANSFER_REFUSED);
        answer_error(w, to, id, route, true, &why);
    }
    transfer_out_finish(&out);
}

struct tenrec_msg *answer_exception_new(const struct tenrec_msg *msg, const tenrec_error *why)
{
    struct tenrec_msg *ret;

    return codec_write_error(why, codec_is_cbor(msg), &ret, NULL) == TENREC_OK ? ret : NULL;
}
