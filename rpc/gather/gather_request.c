/* SPDX-License-Identifier: Apache-2.0 */
/* gather_request.c - a GATHER request of a member below us in the tree. */
#include "core/base/clock.h"
#include "core/base/memory.h"
#include "rpc/call/call.h"
#include "rpc/call/calls.h"
#include "rpc/call/service.h"
#include "rpc/future/worker.h"
#include "rpc/gather/gather.h"
#include "rpc/gather/gather_set.h"
#include "rpc/value/codec.h"
#include "rpc/value/value.h"

#include <stdlib.h>

/* A GATHER request, which waits as an ask while our view may lack a member of its set. */
struct gather_request {
    struct ask ask; /* first; its version is 0 in a static group */
    struct gather_part part;
    struct tenrec_value *in; /* owns; the next three are borrowed from it */
    const char *text;
    const struct tenrec_value *value;
    const char *why; /* the sender, or one below it, cannot join; NULL: it does */
    int64_t number, status;
};

static void gather_request_free(struct gather_request *r)
{
    tenrec_value_drop(r->in);
    free(r);
}

static tenrec_status gather_read(const struct tenrec_worker *w, const struct tenrec_msg *msg,
                                 struct gather_request *r, tenrec_error *err)
{
    int64_t ms;
    tenrec_status st;

    /* Our own part needs no message: a forged message would replace it. */
    if (r->part.id < 0 || r->part.id == w->self.id)
        return tenrec_fail(err, TENREC_EUNSUPPORTED,
                           "only other members of the group ask for a gather");
    st = codec_read_value(msg, &r->in, err);
    if (st == TENREC_OK && r->in->type != TENREC_VALUE_ARRAY)
        st = tenrec_fail(err, TENREC_EPROTOCOL, "malformed gather: the payload is not an array");
    if (st == TENREC_OK)
        st = tenrec_value_unpack(r->in->u.array, r->in->n, err, "siiv|iis", &r->text, &r->number,
                                 &ms, &r->value, &r->ask.version, &r->status, &r->why);
    if (st == TENREC_OK && (r->number < 0 || ms <= 0 || r->ask.version < 0 ||
                            (r->why && (r->status >= 0 || r->status < INT32_MIN))))
        st = tenrec_fail(err, TENREC_EPROTOCOL,
                         "malformed gather: negative number, limit or version, or no status");
    if (st == TENREC_OK)
        r->ask.deadline_ns =
            ms == TENREC_TIMEOUT_NONE ? CLOCK_NEVER : clock_deadline_ms((uint64_t)ms);
    return st;
}

static tenrec_status gather_enter(struct tenrec_worker *w, struct participants *s,
                                  struct gather_request *r, tenrec_error *err)
{
    tenrec_status st;

    if (r->why)
        return tenrec_fail(err, (tenrec_status)r->status, "%s", r->why);
    st = tenrec_value_copy(r->value, &r->part.value, err);
    if (st != TENREC_OK)
        return st;
    st = gather_join(w, s, r->number, r->ask.deadline_ns, &r->part, err);
    if (st != TENREC_OK)
        tenrec_value_drop(r->part.value);
    return st;
}

/* Also once our view is as new as the sender's, or its limit expires. */
static void gather_request_take(struct tenrec_worker *w, struct ask *a)
{
    struct gather_request *r = (struct gather_request *)(void *)a;
    struct participants *s;
    tenrec_error why;
    tenrec_status st = gather_find_text(w, r->text, &s, &why);

    if (s)
        st = gather_enter(w, s, r, &why);
    else if (w->calls->view_wait(w, a))
        return;
    if (st != TENREC_OK)
        answer_error(w, r->part.id, r->part.msg_id, &r->part.route, true, &why);
    if (st != TENREC_OK && s)
        gather_refuse(w, s, r->number, r->part.id, &why);
    participants_drop(s);
    gather_request_free(r);
}

void gather_arrived(struct tenrec_worker *w, tenrec_peer from, struct tenrec_msg *msg)
{
    struct gather_request *r = memory_new(1, sizeof *r);
    tenrec_error why;
    tenrec_status st;

    if (r) {
        r->ask = (struct ask){ .from = from, .ready = gather_request_take };
        r->part = (struct gather_part){ .id = from, .msg_id = msg->id, .route = msg->route };
        st = gather_read(w, msg, r, &why);
    } else {
        st = memory_fail(&why);
    }
    if (st != TENREC_OK) {
        answer_error(w, from, msg->id, &msg->route, true, &why);
        if (r)
            gather_request_free(r);
    }
    msg->release(msg);
    if (st == TENREC_OK)
        gather_request_take(w, &r->ask);
}
