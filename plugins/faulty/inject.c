/* SPDX-License-Identifier: Apache-2.0 */
/* inject.c - applies the action of a rule to a message. */
#include "faulty.h"

#include <stdlib.h>

/* The USDT probe fault__injected: plugin, rule, action (enum rule_action), message type, peer.
 * Nothing without sys/sdt.h. */
#ifdef TENREC_HAVE_SDT
#include <sys/sdt.h>
#define FAULTY_PROBE(rule, action, type, peer)                                                     \
    DTRACE_PROBE5(tenrec, fault__injected, "faulty", rule, action, type, peer)
#else
#define FAULTY_PROBE(rule, action, type, peer) ((void)0)
#endif

#define PEER_TEXT_MAX 32
#define SHORT_NS 500000u /* a slow link does not hold a message for less */

static const char *peer_text(tenrec_peer peer, char buf[PEER_TEXT_MAX])
{
    if (peer == TENREC_ANONYMOUS)
        snprintf(buf, PEER_TEXT_MAX, "an anonymous caller");
    else
        snprintf(buf, PEER_TEXT_MAX, "worker %d", (int)peer);
    return buf;
}

static void log_first(struct faulty *f, const struct hit *hit, const struct transit *t)
{
    static const char *const does[] = {
        [RULE_FAIL] = "fails",       [RULE_FAIL_IN_FLIGHT] = "fails in flight",
        [RULE_DROP] = "drops",       [RULE_DUPLICATE] = "duplicates",
        [RULE_DELAY] = "delays",     [RULE_REORDER] = "reorders",
        [RULE_CORRUPT] = "corrupts", [RULE_DISCONNECT] = "disconnects at",
        [RULE_SLOW] = "slows",
    };
    char type[KINDS_TEXT_MAX], name[PEER_TEXT_MAX];

    if (hit->first)
        f->self->host->log(f->self, TENREC_LOG_INFO, "%s %s its first message: %s %s %s",
                           rule_name(hit->rule), does[hit->rule->action],
                           kinds_text(t->msg->type, type), t->incoming ? "from" : "to",
                           peer_text(t->peer, name));
}

void transit_pass(const struct faulty *f, const struct transit *t)
{
    if (t->incoming)
        f->self->host->deliver_outer(f->self, t->peer, t->msg);
    else
        f->self->host->send_inner(f->self, t->peer, t->msg, t->done);
}

void transit_fail(const struct transit *t, tenrec_status code, const char *before,
                  const char *after)
{
    char type[KINDS_TEXT_MAX];

    kinds_text(t->msg->type, type);
    t->msg->release(t->msg);
    tenrec_done_fail(t->done, code, "faulty: %s this %s%s", before, type, after);
}

/* Undoes the count of a hit whose action was impossible, and passes the message on. */
static bool pass_untouched(struct faulty *f, const struct hit *hit, const struct transit *t)
{
    pthread_mutex_lock(&f->lock);
    hit->rule->injected--;
    pthread_mutex_unlock(&f->lock);
    transit_pass(f, t);
    return true;
}

/* ---- failing ------------------------------------------------------------------ */

/* A received message is not lost: it is delivered unchanged. */
static bool fail_no_memory(const struct faulty *f, const struct transit *t)
{
    if (t->incoming)
        transit_pass(f, t);
    else
        transit_fail(t, TENREC_ENOMEM, "no memory to handle", "");
    return t->incoming;
}

/* "rule1 fails this CALL (1 of 2)" */
static void tell_failed(const struct rule *r, int64_t number, const char *type,
                        struct tenrec_done done)
{
    char count[64] = "";

    if (r->times)
        snprintf(count, sizeof count, " (%lld of %lld)", (long long)number, (long long)r->times);
    tenrec_done_fail(done, TENREC_EINJECTED, "faulty: %s %s this %s%s", rule_name(r),
                     r->action == RULE_FAIL ? "fails" : "falsely reports failure of",
                     r->origin == RULE_OF_FAIL ? r->label : type, count);
}

static bool fail_at_once(const struct hit *hit, const struct transit *t)
{
    char type[KINDS_TEXT_MAX];

    kinds_text(t->msg->type, type);
    t->msg->release(t->msg);
    tell_failed(hit->rule, hit->number, type, t->done);
    return false;
}

/* A send whose success is reported as a failure. */
struct flight {
    const struct rule *rule;
    int64_t number;
    int32_t type;
    struct tenrec_done done;
};

static void on_landed(void *arg, const tenrec_error *err)
{
    struct flight *l = arg;
    char type[KINDS_TEXT_MAX];

    if (err)
        l->done.fn(l->done.arg, err);
    else
        tell_failed(l->rule, l->number, kinds_text(l->type, type), l->done);
    free(l);
}

static bool fail_in_flight(struct faulty *f, const struct hit *hit, const struct transit *t)
{
    struct transit sent = *t;
    struct flight *l = NULL;

    if (t->done.fn) {
        l = malloc(sizeof *l);
        if (!l)
            return fail_no_memory(f, t);
        *l = (struct flight){ hit->rule, hit->number, t->msg->type, t->done };
        sent.done = (struct tenrec_done){ on_landed, l };
    }
    transit_pass(f, &sent);
    return true;
}

/* ---- holding ------------------------------------------------------------------- */

/* The time until which the message is held. With the lock. */
static uint64_t due_ns(struct rule *r, tenrec_peer peer, const struct tenrec_msg *msg, uint64_t now)
{
    struct rule_link *link;
    double ns;

    if (r->action != RULE_SLOW)
        return now + (uint64_t)r->by_ms * 1000000;
    link = rule_link(r, peer);
    ns = (double)tenrec_msg_bytes(msg) * 1e9 / (double)r->bytes_per_second;
    if (link->free_ns < now)
        link->free_ns = now;
    link->free_ns += ns < 1e18 ? (uint64_t)ns : (uint64_t)1e18;
    return link->free_ns;
}

/* Holds the message, unless a slow link carries it at once. */
static bool inject_hold(struct faulty *f, struct rule *r, const struct transit *t)
{
    struct held *h = queue_new(f, r, t);
    tenrec_status st;
    uint64_t now;

    if (!h)
        return fail_no_memory(f, t);
    /* The core's timer thread will send it, and must not wait for a full queue. */
    t->msg->flags &= ~(uint32_t)TENREC_MSG_MAY_WAIT;
    pthread_mutex_lock(&f->lock);
    now = tenrec_now_ns();
    h->due_ns = due_ns(r, t->peer, t->msg, now);
    if (r->action == RULE_SLOW && h->due_ns < now + SHORT_NS && !rule_link(r, t->peer)->waiting) {
        pthread_mutex_unlock(&f->lock);
        free(h);
        transit_pass(f, t);
        return true;
    }
    queue_add(&f->queue, h);
    pthread_mutex_unlock(&f->lock);
    st = queue_hold(h);
    if (st == TENREC_OK)
        return false;
    if (st == TENREC_ENOMEM || t->incoming)
        return fail_no_memory(f, t);
    transit_fail(t, TENREC_ECANCELED, "shut down before", " was sent");
    return false;
}

void inject_passed(struct faulty *f, struct ruleset *rules, bool incoming, tenrec_peer peer)
{
    for (size_t i = 0; i < rules->n; i++) {
        struct rule *r = &rules->rule[i];
        const struct rule_link *link;
        struct held taken;
        bool found = false;

        if (r->action != RULE_REORDER || r->incoming != incoming)
            continue;
        pthread_mutex_lock(&f->lock);
        link = rule_link(r, peer);
        if (link && link->overtaken) {
            found = true;
            taken = queue_take(link->overtaken);
        }
        pthread_mutex_unlock(&f->lock);
        if (found)
            queue_pass(&taken);
    }
}

/* ---- copying, disconnecting ---------------------------------------------------------- */

static bool inject_duplicate(struct faulty *f, const struct hit *hit, const struct transit *t)
{
    struct transit second = { t->incoming, t->peer, NULL, { NULL, NULL } }, first = *t;
    struct tenrec_msg *twin[2] = { t->msg, NULL };

    if (t->incoming)
        twin[1] = copy_received(f->self, t->peer, t->msg);
    else if (!copy_to_send(t->msg, false, 2, twin))
        return fail_no_memory(f, t);
    if (!twin[1])
        return pass_untouched(f, hit, t);
    first.msg = twin[0];
    second.msg = twin[1];
    second.msg->flags &= ~(uint32_t)TENREC_MSG_MAY_WAIT;
    transit_pass(f, &first);
    transit_pass(f, &second);
    return true;
}

static bool inject_corrupt(struct faulty *f, const struct hit *hit, const struct transit *t)
{
    struct transit spoilt = *t;
    unsigned char *p;

    if (!t->incoming) {
        if (!copy_to_send(t->msg, true, 1, &spoilt.msg))
            return fail_no_memory(f, t);
    } else {
        spoilt.msg = copy_received(f->self, t->peer, t->msg);
        if (!spoilt.msg)
            return pass_untouched(f, hit, t);
        t->msg->release(t->msg);
    }
    p = spoilt.msg->payload;
    p[hit->draw % spoilt.msg->payload_len] ^= (unsigned char)(1 + (hit->draw >> 40) % 255);
    transit_pass(f, &spoilt);
    return true;
}

/* Asks every agent on the way to the wire, as the core does. */
static bool disconnect_all(struct faulty *f, tenrec_peer peer)
{
    bool done = false;
    tenrec_error why;

    for (struct tenrec_agent *a = f->self->inner; a; a = a->inner)
        if (TENREC_HAS(a->ops, disconnect) && a->ops->disconnect(a, peer, &why) == TENREC_OK)
            done = true;
    return done;
}

static bool inject_disconnect(struct faulty *f, const struct hit *hit, const struct transit *t)
{
    char name[PEER_TEXT_MAX];

    if (!disconnect_all(f, t->peer)) /* no connection exists */
        return pass_untouched(f, hit, t);
    log_first(f, hit, t);
    t->msg->release(t->msg);
    tenrec_done_fail(t->done, TENREC_EPEER_LOST, "faulty: %s disconnected %s", hit->rule->label,
                     peer_text(t->peer, name));
    return false;
}

bool inject(struct faulty *f, const struct hit *hit, const struct transit *t)
{
    if (hit->number < 0)
        return fail_no_memory(f, t);
    if (hit->rule->action != RULE_DISCONNECT) /* a disconnect may be impossible */
        log_first(f, hit, t);
    FAULTY_PROBE(hit->rule->label, hit->rule->action, t->msg->type, t->peer);
    switch (hit->rule->action) {
    case RULE_FAIL: /* of sent messages only, as the next: check_rule() */
        return fail_at_once(hit, t);
    case RULE_FAIL_IN_FLIGHT:
        return fail_in_flight(f, hit, t);
    case RULE_DROP:
        t->msg->release(t->msg);
        tenrec_done_succeed(t->done);
        return false;
    case RULE_DUPLICATE:
        return inject_duplicate(f, hit, t);
    case RULE_DELAY:
    case RULE_REORDER:
    case RULE_SLOW:
        return inject_hold(f, hit->rule, t);
    case RULE_CORRUPT:
        return inject_corrupt(f, hit, t);
    case RULE_DISCONNECT:
        return inject_disconnect(f, hit, t);
    }
    return false;
}
