/* SPDX-License-Identifier: Apache-2.0 */
/* link_copy.c - tensors that are copied out of the sender's memory: lent within this
 * process, or mapped. */
#include "cuda/link/link_parts.h"
#include "endpoint.h"

#include <stdlib.h>
#include <string.h>

/* A copy under way, and what must stay until it is done. */
struct copy {
    struct inflight inflight;
    struct pipe *pipe; /* owns a reference */
    uint64_t number;
    struct handover *handover;
    struct import *import;
};

static void copy_free(struct copy *c, bool tell)
{
    if (c->handover)
        handover_return(c->handover);
    if (c->import) {
        import_drop(c->import);
        if (tell && pipe_state(c->pipe) == PIPE_ESTABLISHED)
            link_say_number(c->pipe, SAID_TAKEN, c->number);
    }
    c->pipe->services->unref(c->pipe);
    free(c);
}

void link_copy_failed(struct pipe *p, const tenrec_error *why)
{
    p->services->failf(p, why->code, 0, "a copy of a tensor has failed: %s", why->text);
}

static void copy_landed(struct inflight *f, const tenrec_error *why)
{
    struct copy *c = CONTAINER(f, struct copy, inflight);

    if (why)
        link_copy_failed(c->pipe, why);
    copy_free(c, true);
}

/* Queues it behind what is on the tensor's stream, and watches it. Takes `c`. */
static tenrec_status start_copy(struct copy *c, const struct tenrec_tensor_desc *t,
                                const void *from, tenrec_error *err)
{
    const struct tenrec_stream s = { t->device, t->stream };
    tenrec_status st =
        inflight_copy(&c->pipe->ep->cuda->inflight, &c->inflight, &s, t->data, from, t->bytes, err);

    if (st)
        copy_free(c, true);
    return st;
}

static struct copy *copy_new(struct pipe *p, uint64_t number, tenrec_error *err)
{
    struct copy *c = calloc(1, sizeof *c);

    if (!c) {
        tenrec_fail(err, TENREC_ENOMEM, "no memory for a copy");
        return NULL;
    }
    p->services->ref(p);
    c->pipe = p;
    c->number = number;
    c->inflight.landed = copy_landed;
    return c;
}

tenrec_status link_copy_lent(struct pipe *p, const struct landing *at,
                             const struct tenrec_tensor_desc *t, tenrec_error *err)
{
    struct handover *handover =
        p->devices.link->same_process ? handover_take(at->number, at->len) : NULL;
    struct copy *c;
    tenrec_status st;

    if (!handover)
        return tenrec_fail(err, TENREC_EPROTOCOL, "a tensor of this process that was not lent");
    c = t ? copy_new(p, at->number, err) : NULL;
    if (!c) {
        handover_return(handover);
        return t ? TENREC_ENOMEM : TENREC_OK;
    }
    c->handover = handover;
    st = device_event_wait(&(struct tenrec_stream){ t->device, t->stream }, handover->event, err);
    if (st) {
        copy_free(c, true);
        return st;
    }
    return start_copy(c, t, handover->data, err);
}

tenrec_status link_copy_mapped(struct pipe *p, struct landing *at,
                               const struct tenrec_tensor_desc *t, tenrec_error *err)
{
    const struct link *l = p->devices.link;
    const struct tenrec_stream s = { t->device, t->stream };
    const int there = at->source.index;
    const int here = there < (int)l->n_uuids ? device_of_uuid(l->uuid[there]) : -1;
    struct import *import;
    driver_address from;
    struct copy *c;
    tenrec_status st = TENREC_OK;

    memcpy(at->key.owner, l->token, sizeof at->key.owner);
    if (here >= 0 && !device_reaches(t->device.index, here))
        st = tenrec_fail(err, TENREC_EAGAIN, "cuda:%d does not reach cuda:%d", t->device.index,
                         here);
    if (!st)
        st = import_open(&at->key, t->device.index, at->offset, at->len, &import, &from, err);
    if (st == TENREC_EPROTOCOL) {
        p->services->failf(p, st, 0, "%s", err->text);
        return st;
    }
    if (st) {
        endpoint_log(p->ep, TENREC_LOG_DEBUG, "a tensor is asked for in pieces: %s", err->text);
        return TENREC_EAGAIN;
    }
    st = import_wait(&s, l->token, &at->event, err);
    c = st ? NULL : copy_new(p, at->number, err);
    if (!c) {
        import_drop(import);
        return st ? TENREC_EAGAIN : TENREC_ENOMEM;
    }
    c->import = import;
    return start_copy(c, t, (const void *)(uintptr_t)from, err);
}
