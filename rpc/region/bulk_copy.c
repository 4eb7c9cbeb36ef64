/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/region/bulk.h"

#include "core/base/memory.h"

#include <stdlib.h>

struct bulk_copy {
    struct region_copy copy; /* first */
    struct bulk_request *request;
    struct tenrec_msg *msg;
    struct call_spec spec; /* of a write */
    tenrec_peer from;      /* of the answer of a read */
};

/* The request has the bytes until its last tensor is dropped: those of `msg`, or of its call. */
static void bulk_copy_begin(struct tenrec_worker *w, struct bulk_copy *c)
{
    struct bulk_request *r = c->request;

    c->copy.w = w;
    c->copy.bytes = r->entry;
    c->copy.n = r->n;
    c->copy.to_device = r->reads;
    region_copy_begin(&c->copy);
}

/* ---- writes ------------------------------------------------------------------------- */

static void bulk_copied_out(struct region_copy *copy, bool entered, const tenrec_error *why)
{
    struct bulk_copy *c = (struct bulk_copy *)(void *)copy;
    struct tenrec_worker *w = copy->w;
    struct tenrec_future *f;
    tenrec_error refused;

    (void)entered;
    if (why)
        c->msg->release(c->msg);
    else if (call_send(w, &c->spec, c->msg, &f, &refused) == TENREC_OK)
        tenrec_future_drop(f);
    else
        why = &refused;
    if (why)
        bulk_request_ended(&c->request->hook, w, why);
    call_outstanding_end(w);
    free(c);
}

void bulk_copy_out(struct tenrec_worker *w, struct bulk_request *r, const struct call_spec *spec,
                   struct tenrec_msg *msg)
{
    struct bulk_copy *c = memory_new(1, sizeof *c);
    tenrec_error why;

    if (!c) {
        memory_fail(&why);
        msg->release(msg);
        bulk_request_ended(&r->hook, w, &why);
        return;
    }
    *c = (struct bulk_copy){ .request = r, .msg = msg, .spec = *spec };
    c->copy.done = bulk_copied_out;
    call_outstanding_begin(w);
    bulk_copy_begin(w, c);
}

/* ---- reads ------------------------------------------------------------------------------ */

/* A worker that shuts down has failed the call. */
static void bulk_copied_in(struct region_copy *copy, bool entered, const tenrec_error *why)
{
    struct bulk_copy *c = (struct bulk_copy *)(void *)copy;

    if (entered && !why) {
        call_answered(copy->w, c->from, c->msg);
    } else {
        if (entered)
            call_fail(copy->w, c->from, c->msg, why);
        c->msg->release(c->msg);
    }
    free(c);
}

void bulk_copy_in(struct tenrec_worker *w, struct bulk_request *r, tenrec_peer from,
                  struct tenrec_msg *msg)
{
    struct bulk_copy *c = memory_new(1, sizeof *c);
    tenrec_error why;

    if (!c) {
        memory_fail(&why);
        call_fail(w, from, msg, &why);
        msg->release(msg);
        return;
    }
    *c = (struct bulk_copy){ .request = r, .msg = msg, .from = from };
    c->copy.done = bulk_copied_in;
    bulk_copy_begin(w, c);
}
