/* SPDX-License-Identifier: Apache-2.0 */
/* gather_rise.c - a part of the tree joins at its parent, as one member, and the parent's answer is
 * the answer of all of the part. */
#include "core/base/clock.h"
#include "core/base/memory.h"
#include "rpc/call/call.h"
#include "rpc/call/calls.h"
#include "rpc/future/future.h"
#include "rpc/future/worker.h"
#include "rpc/gather/gather.h"
#include "rpc/value/codec.h"
#include "rpc/value/value.h"

#include <stdlib.h>

enum { VERDICT_MS = 50 /* the answer of the parent may arrive this long after the limit */ };

/* A parent fails the gather at the first limit, and names the missing: a child waits a little
 * longer than the limit for that answer. */
static uint64_t verdict_ns(uint64_t deadline_ns)
{
    return deadline_ns > CLOCK_NEVER - VERDICT_MS * UINT64_C(1000000)
               ? CLOCK_NEVER
               : deadline_ns + VERDICT_MS * UINT64_C(1000000);
}

tenrec_status gather_rise_send(struct tenrec_worker *w, const struct gather_rise *r,
                               struct tenrec_future **ret, tenrec_error *err)
{
    const int64_t version = atomic_load(&w->calls->view_version);
    struct tenrec_value item[] = { tenrec_value_text(r->who->text),
                                   tenrec_value_int(r->number),
                                   tenrec_value_int(r->ms),
                                   *r->value,
                                   tenrec_value_int(version),
                                   tenrec_value_int(r->why ? r->why->code : 0),
                                   tenrec_value_text(r->why ? r->why->text : "") };
    struct tenrec_value array = tenrec_value_array(item, r->why ? 7 : version > 0 ? 5 : 4);
    struct call_spec spec = { .to = r->parent,
                              .function = "all_gather",
                              .deadline_ns = verdict_ns(r->deadline_ns),
                              .result = r->result,
                              .want_value = true };
    struct tenrec_msg *msg;
    tenrec_status st = codec_write_value(&array, TENREC_MSG_GATHER, &msg, err);

    if (st != TENREC_OK)
        return st;
    msg->flags |= TENREC_MSG_CONTROL;
    return call_send(w, &spec, msg, ret, err);
}

/* What remains of a limit, as a message says it. */
static int64_t rise_left_ms(uint64_t deadline_ns)
{
    const int left = clock_left_ms(deadline_ns);

    return left < 0 ? TENREC_TIMEOUT_NONE : left > 0 ? left : 1;
}

/* Parts that wait for the answer of our parent. */
struct rising {
    struct tenrec_worker *w;
    struct gather *g; /* owns */
};

static void rise_fail(struct tenrec_worker *w, struct gather *g, const tenrec_error *why)
{
    for (size_t i = 0; i < g->n; i++)
        if (g->part[i].joined)
            gather_part_fail(w, &g->part[i], why);
    gather_drop(g);
}

static void rise_answered(struct tenrec_future *f, void *arg)
{
    const struct tenrec_value nil = tenrec_value_nil();
    struct rising *r = arg;
    tenrec_error why;

    if (future_result(f, &why) == TENREC_OK) {
        gather_parts_complete(r->w, r->g, f->value ? f->value : &nil);
        gather_drop(r->g);
    } else {
        rise_fail(r->w, r->g, &why);
    }
    free(r);
}

static tenrec_status rise_send_list(struct tenrec_worker *w, const struct gather *g,
                                    struct tenrec_future *result, tenrec_error *err)
{
    struct tenrec_value list, *item = NULL;
    struct tenrec_future *f = NULL;
    const struct gather_rise r = { .who = g->who,
                                   .number = g->number,
                                   .ms = rise_left_ms(g->deadline_ns),
                                   .deadline_ns = g->deadline_ns,
                                   .parent = g->parent,
                                   .value = &list,
                                   .result = tenrec_future_share(result) };
    tenrec_status st = gather_list(g, &item, &list, err);

    if (st == TENREC_OK)
        st = gather_rise_send(w, &r, &f, err);
    if (st != TENREC_OK)
        tenrec_future_drop(result);
    tenrec_future_drop(f);
    free(item);
    return st;
}

/* The future of the answer is one of our own: its callback waits for no loop of the program. */
void gather_rise_whole(struct tenrec_worker *w, struct gather *g)
{
    struct rising *r = memory_new(1, sizeof *r);
    struct tenrec_future *f = NULL;
    const tenrec_peer parent = g->parent;
    const int64_t number = g->number;
    tenrec_error why;
    tenrec_status st = r ? tenrec_future_new(&f, &why) : memory_fail(&why);

    if (st != TENREC_OK) {
        free(r);
        gather_rise_failed(w, g->who, number, parent, &why);
        rise_fail(w, g, &why);
        return;
    }
    *r = (struct rising){ w, g };
    tenrec_future_add_callback(f, rise_answered, r, NULL); /* the first takes no memory */
    if (rise_send_list(w, g, f, &why) != TENREC_OK) {
        gather_rise_failed(w, g->who, number, parent, &why);
        future_complete_error(f, &why);
    }
    tenrec_future_drop(f);
}

void gather_rise_failed(struct tenrec_worker *w, const struct participants *who, int64_t number,
                        tenrec_peer parent, const tenrec_error *why)
{
    const struct tenrec_value nil = tenrec_value_nil();
    const struct gather_rise r = { .who = who,
                                   .number = number,
                                   .ms = 1,
                                   .deadline_ns = clock_deadline_ms(VERDICT_MS),
                                   .parent = parent,
                                   .value = &nil,
                                   .why = why };
    struct tenrec_future *f = NULL;

    /* Its own contact with us, or its limit, shows it the same. */
    if (gather_rise_send(w, &r, &f, NULL) == TENREC_OK)
        tenrec_future_drop(f);
}
