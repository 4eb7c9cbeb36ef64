/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/future/peers.h"

#include "core/backend/backend.h"
#include "core/base/memory.h"
#include "rpc/future/worker.h"

#include <errno.h>
#include <stdlib.h>

enum contact { CONTACT_NONE, CONTACT_LOST, CONTACT_TRIED, CONTACT_MADE, CONTACT_REFUSED };

/* A try in flight. */
struct attempt {
    struct tenrec_worker *w;
    tenrec_peer peer;
};

tenrec_status contacts_reset(struct contacts *c, size_t n, tenrec_error *err)
{
    contacts_finish(c);
    if (n == 0)
        return TENREC_OK;
    c->of = memory_new(n, sizeof *c->of);
    if (!c->of)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for %zu workers", n);
    c->n = n;
    return TENREC_OK;
}

void contacts_finish(struct contacts *c)
{
    free(c->of);
    c->of = NULL;
    c->n = 0;
}

/* NULL for a peer that is no member of a static group. */
static _Atomic uint8_t *contact_of(const struct tenrec_worker *w, tenrec_peer peer)
{
    return peer >= 0 && (size_t)peer < w->contacts.n ? &w->contacts.of[peer] : NULL;
}

static void contact_report_refused(struct tenrec_worker *w, tenrec_peer peer,
                                   const tenrec_error *why)
{
    if (w->contacts.refused)
        w->contacts.refused(w, peer, why);
}

bool contact_failed(struct tenrec_worker *w, tenrec_peer peer, const tenrec_error *why)
{
    _Atomic uint8_t *c = contact_of(w, peer);

    if (!c || why->code != TENREC_ECONNECT || why->os_errno != ECONNREFUSED)
        return false;
    if (atomic_exchange(c, CONTACT_REFUSED) != CONTACT_REFUSED)
        contact_report_refused(w, peer, why);
    return true;
}

/* The agent completed a try. */
static void contact_sent(void *arg, const tenrec_error *why)
{
    const struct attempt a = *(struct attempt *)arg;
    _Atomic uint8_t *c = contact_of(a.w, a.peer);
    uint8_t state = CONTACT_TRIED; /* else the connection has broken since */

    free(arg);
    if (!why || !contact_failed(a.w, a.peer, why))
        atomic_compare_exchange_strong(c, &state, why ? CONTACT_NONE : CONTACT_MADE);
}

/* A CANCEL of no call: every worker accepts it and sends no answer. */
static void contact_send(struct tenrec_worker *w, tenrec_peer peer)
{
    struct tenrec_msg *msg = message_new(0, 0);
    struct attempt *a = memory_new(1, sizeof *a);

    if (!msg || !a) {
        if (msg)
            msg->release(msg);
        free(a);
        atomic_store(contact_of(w, peer), CONTACT_NONE);
        return;
    }
    *a = (struct attempt){ w, peer };
    msg->type = TENREC_MSG_CANCEL;
    msg->id = -1;
    msg->flags = TENREC_MSG_CONTROL;
    chain_send(w->chain, peer, msg, (struct tenrec_done){ contact_sent, a });
}

void contact_try(struct tenrec_worker *w, tenrec_peer peer)
{
    _Atomic uint8_t *c = contact_of(w, peer);
    uint8_t state = CONTACT_NONE;

    if (!c)
        return;
    if (atomic_compare_exchange_strong(c, &state, CONTACT_TRIED) ||
        (state == CONTACT_LOST && atomic_compare_exchange_strong(c, &state, CONTACT_TRIED)))
        contact_send(w, peer);
    else if (state == CONTACT_REFUSED)
        contact_report_refused(w, peer, NULL);
}

void contact_lost(struct tenrec_worker *w, tenrec_peer peer)
{
    _Atomic uint8_t *c = contact_of(w, peer);
    uint8_t state = c ? atomic_load(c) : CONTACT_REFUSED;

    while (state != CONTACT_REFUSED && !atomic_compare_exchange_weak(c, &state, CONTACT_LOST))
        ;
}

static bool contact_is(const struct tenrec_worker *w, tenrec_peer peer, enum contact state)
{
    const _Atomic uint8_t *c = contact_of(w, peer);

    return c && atomic_load(c) == state;
}

bool contact_is_lost(const struct tenrec_worker *w, tenrec_peer peer)
{
    return contact_is(w, peer, CONTACT_LOST);
}

bool contact_watches(const struct tenrec_worker *w, tenrec_peer peer)
{
    return contact_is(w, peer, CONTACT_TRIED) || contact_is(w, peer, CONTACT_MADE);
}

bool contact_refused(const struct tenrec_worker *w, tenrec_peer peer)
{
    return contact_is(w, peer, CONTACT_REFUSED);
}

void contact_forget(struct tenrec_worker *w, tenrec_peer peer)
{
    _Atomic uint8_t *c = contact_of(w, peer);

    if (c)
        atomic_store(c, CONTACT_NONE);
}
