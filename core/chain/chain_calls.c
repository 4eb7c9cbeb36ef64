/* SPDX-License-Identifier: Apache-2.0 */
#include "core/chain/chain_user.h"

#include "core/backend/backend.h"
#include "core/base/clock.h"
#include "core/base/loop.h"
#include "core/base/memory.h"
#include "core/base/threads.h"

#include <stdlib.h>

/* Shares of a call: of the pending entry, of the send, of the thread that sends. */
#define CALL_SHARES 3

struct chain_call {
    struct tenrec_chain *agent;
    struct tenrec_answer answer;
    int64_t id;
    atomic_uint shares;
    _Atomic uint32_t sender; /* the thread that sends; 0: it goes on */
    tenrec_error failed;     /* of a send that failed on that thread; the code is OK otherwise */
};

static void chain_call_drop(struct chain_call *c)
{
    if (atomic_fetch_sub_explicit(&c->shares, 1, memory_order_acq_rel) == 1)
        free(c);
}

/* Ends the call of a removed entry. */
static void chain_call_end(const struct pending_entry *e, struct tenrec_msg *msg,
                           const tenrec_error *why)
{
    e->call->answer.fn(e->call->answer.arg, msg, why);
    chain_call_drop(e->call);
}

static void chain_call_sent(void *arg, const tenrec_error *why)
{
    struct chain_call *c = arg;
    struct pending_entry e;

    if (why && pending_take(&c->agent->pending, c->id, &e)) {
        if (atomic_load(&c->sender) == thread_id()) {
            c->failed = *why;
            chain_call_drop(c);
        } else {
            chain_call_end(&e, NULL, why);
        }
    }
    chain_call_drop(c);
}

/* Makes a call and its entry. */
static tenrec_status chain_call_new(struct tenrec_chain *agent, tenrec_peer to,
                                    uint64_t deadline_ns, struct tenrec_answer answer,
                                    struct chain_call **ret)
{
    struct chain_call *c = memory_new(1, sizeof *c);
    const struct pending_entry e = { .call = c, .deadline_ns = deadline_ns, .to = to };
    tenrec_status st;

    if (!c)
        return TENREC_ENOMEM;
    c->agent = agent;
    c->answer = answer;
    atomic_init(&c->shares, CALL_SHARES);
    atomic_init(&c->sender, thread_id());
    st = pending_add(&agent->pending, &e, &c->id);
    if (st == TENREC_OK)
        *ret = c;
    else
        free(c);
    return st;
}

tenrec_status tenrec_chain_call(struct tenrec_chain *agent, tenrec_peer to, struct tenrec_msg *msg,
                                struct tenrec_answer answer, tenrec_error *err)
{
    const uint64_t deadline_ns = msg->deadline_ns ? msg->deadline_ns : CLOCK_NEVER;
    struct chain_call *c;
    tenrec_status st = chain_call_new(agent, to, deadline_ns, answer, &c);

    if (st != TENREC_OK) {
        msg->release(msg);
        return tenrec_fail(err, st, "cannot call: %s", tenrec_status_text(st));
    }
    msg->id = c->id;
    if (deadline_ns != CLOCK_NEVER)
        loop_timer_arm(agent->timer, deadline_ns);
    chain_send(agent->chain, to, msg, (struct tenrec_done){ chain_call_sent, c });
    atomic_store(&c->sender, 0);
    st = c->failed.code;
    if (st != TENREC_OK && err)
        *err = c->failed;
    chain_call_drop(c);
    return st;
}

bool chain_calls_answer(struct tenrec_chain *agent, tenrec_peer from, struct tenrec_msg *msg,
                        const tenrec_error *why)
{
    struct pending_entry e;

    if (!(msg->type & TENREC_MSG_RESPONSE_BIT) ||
        !pending_take_from(&agent->pending, msg->id, from, &e))
        return false;
    chain_call_end(&e, why ? NULL : msg, why);
    return true;
}

void tenrec_chain_end_calls(struct tenrec_chain *agent, tenrec_peer to, const tenrec_error *why)
{
    struct pending_entry e;
    uint32_t at = 0;

    while (pending_take_peer(&agent->pending, to, &at, &e))
        chain_call_end(&e, NULL, why);
}

void chain_calls_expire(struct tenrec_chain *agent)
{
    uint64_t next_ns = CLOCK_NEVER, now_ns = clock_now_ns();
    struct pending_entry e;
    tenrec_error why;
    uint32_t at = 0;

    tenrec_fail(&why, TENREC_ETIMEDOUT, "no answer before the deadline of the call");
    while (pending_take_late(&agent->pending, now_ns, &at, &e, &next_ns))
        chain_call_end(&e, NULL, &why);
    if (next_ns != CLOCK_NEVER)
        loop_timer_arm(agent->timer, next_ns);
}
