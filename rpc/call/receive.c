/* SPDX-License-Identifier: Apache-2.0 */
/* receive.c - threads of the program that wait for the calls of a mailbox. */
#include "core/base/clock.h"
#include "rpc/call/call.h"
#include "rpc/call/calls.h"
#include "rpc/call/mailbox.h"
#include "rpc/future/thread_state.h"

/* Waits for a call whose caller still waits; others are answered here. No caller waits for the
 * answer of a one-way call. */
static struct tenrec_call *receive_wanted(struct mailbox *m, uint64_t until, bool *ret_closed)
{
    struct tenrec_call *c;
    tenrec_error why;

    while ((c = mailbox_wait(m, until, ret_closed)) && !c->one_way && tenrec_call_canceled(c)) {
        tenrec_fail(&why, TENREC_ECANCELED, "'%s' was not received: its caller has given up",
                    c->function->name);
        serve_refuse(c, &why);
    }
    return c;
}

tenrec_status tenrec_worker_receive(struct tenrec_worker *w, const char *name, int64_t ms,
                                    struct tenrec_call **ret, tenrec_error *err)
{
    const struct function *f = functions_find(&w->calls->functions, name, strlen(name));
    struct pool *pool = thread_state.pool;
    bool closed = false;
    tenrec_status st;
    uint64_t until;

    *ret = NULL;
    if (!f || !f->mailbox)
        return tenrec_fail(err, TENREC_ENOTFOUND,
                           "no mailbox '%s': register it with TENREC_MAILBOX", name);
    st = call_deadline(w, &ms, &until, err);
    if (st != TENREC_OK)
        return st;
    if (thread_state.no_block > 0)
        return tenrec_fail(err, TENREC_EWOULDBLOCK,
                           "an inline function or a callback may not wait for a call");
    if (atomic_load(&w->state) != WORKER_RUNNING)
        return tenrec_fail(err, TENREC_ESHUTDOWN, "the worker is not running");
    if (pool)
        pool_block_begin(pool);
    *ret = receive_wanted(f->mailbox, until, &closed);
    if (pool)
        pool_block_end(pool);
    if (*ret)
        return TENREC_OK;
    if (closed)
        return tenrec_fail(err, TENREC_ESHUTDOWN, "the worker shuts down: '%s' receives no more",
                           name);
    return tenrec_fail(err, TENREC_ETIMEDOUT, "'%s' received no call within %lld ms", name,
                       (long long)ms);
}
