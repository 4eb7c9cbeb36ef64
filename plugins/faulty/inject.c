/* SPDX-License-Identifier: Apache-2.0 */
/* inject.c - applies the action of a rule to a message. */
#include "copy.h"
#include "faulty.h"

#include <stdlib.h>

#define PEER_TEXT_MAX 32
#define SHORT_NS 500000u /* a slow link does not hold a message for less */

static const struct tenrec_done no_done = { NULL, NULL };

static const char *peer_text(tenrec_peer peer, char buf[PEER_TEXT_MAX])
{
    if (peer == TENREC_ANONYMOUS)
        snprintf(buf, PEER_TEXT_MAX, "an anonymous caller");
    else
        snprintf(buf, PEER_TEXT_MAX, "worker %d", (int)peer);
    return buf;
}

static void log_first(struct faulty *f, const struct hit *hit, tenrec_peer peer,
                      const struct tenrec_msg *msg)
{
    static const char *const does[] = {
        [RULE_FAIL] = "fails",       [RULE_FAIL_IN_FLIGHT] = "fails in flight",
        [RULE_DROP] = "drops",       [RULE_DUPLICATE] = "duplicates",
        [RULE_DELAY] = "delays",     [RULE_REORDER] = "reorders",
        [RULE_CORRUPT] = "corrupts", [RULE_DISCONNECT] = "disconnects at",
        [RULE_SLOW] = "slows",
    };
    static const char *const option[] = {
        [RULE_OF_FAIL] = "messages_to_fail", [RULE_OF_DELAY] = "messages_to_delay"
    };
    const struct rule *r = hit->rule;
    char type[KINDS_TEXT_MAX], name[PEER_TEXT_MAX];

    if (!hit->first)
        return;
    f->self->host->log(f->self, TENREC_LOG_INFO, "%s %s its first message: %s %s %s",
                       r->origin == RULE_OF_LIST ? r->label : option[r->origin], does[r->action],
                       kinds_text(msg->type, type), r->incoming ? "from" : "to",
                       peer_text(peer, name));
}

/* Undoes the count of a hit whose action was impossible. */
static void take_back(struct faulty *f, const struct hit *hit)
{
    pthread_mutex_lock(&f->lock);
    hit->rule->injected--;
    pthread_mutex_unlock(&f->lock);
}

static void send_on(struct faulty *f, tenrec_peer to, struct tenrec_msg *msg,
                    struct tenrec_done done)
{
    f->self->host->send_inner(f->self, to, msg, done);
}

static void deliver_on(struct faulty *f, tenrec_peer from, struct tenrec_msg *msg)
{
    f->self->host->deliver_outer(f->self, from, msg);
}

/* ---- failing ------------------------------------------------------------------ */

/* False: nothing went on. */
static bool fail_no_memory(struct tenrec_msg *msg, struct tenrec_done done)
{
    char type[KINDS_TEXT_MAX];

    kinds_text(msg->type, type);
    msg->release(msg);
    tenrec_done_fail(done, TENREC_ENOMEM, "faulty: no memory to handle this %s", type);
    return false;
}

/* "rule1 fails this CALL (1 of 2)" */
static void tell_failed(const struct rule *r, int64_t number, const char *type,
                        struct tenrec_done done)
{
    char count[64] = "";

    if (r->times)
        snprintf(count, sizeof count, " (%lld of %lld)", (long long)number, (long long)r->times);
    if (r->origin == RULE_OF_FAIL)
        tenrec_done_fail(done, TENREC_EINJECTED, "faulty: messages_to_fail fails this %s%s",
                         r->label, count);
    else
        tenrec_done_fail(done, TENREC_EINJECTED, "faulty: %s %s this %s%s", r->label,
                         r->action == RULE_FAIL ? "fails" : "falsely reports failure of", type,
                         count);
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

static bool fail_in_flight(struct faulty *f, const struct hit *hit, tenrec_peer to,
                           struct tenrec_msg *msg, struct tenrec_done done)
{
    struct flight *l;

    if (!done.fn) {
        send_on(f, to, msg, done);
        return true;
    }
    l = malloc(sizeof *l);
    if (!l)
        return fail_no_memory(msg, done);
    *l = (struct flight){ hit->rule, hit->number, msg->type, done };
    send_on(f, to, msg, (struct tenrec_done){ on_landed, l });
    return true;
}

/* ---- holding ------------------------------------------------------------------- */

static uint64_t bytes_of(const struct tenrec_msg *msg)
{
    uint64_t bytes = msg->payload_len;

    for (uint32_t i = 0; i < msg->n_tensors; i++)
        bytes += tenrec_msg_tensor(msg, i)->bytes;
    return bytes;
}

/* The time until which the message is held. With the lock. */
static uint64_t due_ns(struct rule *r, tenrec_peer peer, const struct tenrec_msg *msg, uint64_t now)
{
    struct rule_link *link;
    double ns;

    if (r->action != RULE_SLOW)
        return now + (uint64_t)r->by_ms * 1000000;
    link = rule_link(r, peer);
    ns = (double)bytes_of(msg) * 1e9 / (double)r->bytes_per_second;
    if (link->free_ns < now)
        link->free_ns = now;
    link->free_ns += ns < 1e18 ? (uint64_t)ns : (uint64_t)1e18;
    return link->free_ns;
}

enum held_result { HELD, HELD_NOT, HELD_FAILED };

/* Returns HELD_NOT if the message can go on at once, HELD_FAILED with the cause
 * in `ret`. */
static enum held_result inject_hold(struct faulty *f, struct rule *r, tenrec_peer peer,
                                    struct tenrec_msg *msg, struct tenrec_done done,
                                    tenrec_status *ret)
{
    struct held *h = queue_new(f, r, r->incoming, peer, msg, done);
    uint64_t now;

    *ret = TENREC_ENOMEM;
    if (!h)
        return HELD_FAILED;
    /* The core's timer thread will send it, and must not wait for a full queue. */
    msg->flags &= ~(uint32_t)TENREC_MSG_MAY_WAIT;
    pthread_mutex_lock(&f->lock);
    now = queue_now_ns();
    h->due_ns = due_ns(r, peer, msg, now);
    if (r->action == RULE_SLOW && h->due_ns < now + SHORT_NS && !rule_link(r, peer)->waiting) {
        pthread_mutex_unlock(&f->lock);
        free(h);
        return HELD_NOT;
    }
    queue_add(&f->queue, h);
    pthread_mutex_unlock(&f->lock);
    *ret = queue_arm(h);
    return *ret == TENREC_OK ? HELD : HELD_FAILED;
}

static bool hold_out(struct faulty *f, struct rule *r, tenrec_peer to, struct tenrec_msg *msg,
                     struct tenrec_done done)
{
    char type[KINDS_TEXT_MAX];
    tenrec_status why;

    switch (inject_hold(f, r, to, msg, done, &why)) {
    case HELD:
        return false;
    case HELD_NOT:
        send_on(f, to, msg, done);
        return true;
    case HELD_FAILED:
        break;
    }
    if (why == TENREC_ENOMEM)
        return fail_no_memory(msg, done);
    kinds_text(msg->type, type);
    msg->release(msg);
    tenrec_done_fail(done, TENREC_ECANCELED, "faulty: shut down before this %s was sent", type);
    return false;
}

/* A message that cannot be held is delivered at once, not lost. */
static bool hold_in(struct faulty *f, struct rule *r, tenrec_peer from, struct tenrec_msg *msg)
{
    tenrec_status why;

    if (inject_hold(f, r, from, msg, no_done, &why) == HELD)
        return false;
    deliver_on(f, from, msg);
    return true;
}

void inject_passed(struct faulty *f, bool incoming, tenrec_peer peer)
{
    for (size_t i = 0; i < f->n_rules; i++) {
        struct rule *r = &f->rule[i];
        const struct rule_link *link;
        struct held taken;
        bool found = false;

        if (r->action != RULE_REORDER || r->incoming != incoming)
            continue;
        pthread_mutex_lock(&f->lock);
        link = rule_link(r, peer);
        if (link && link->overtaken) {
            found = true;
            taken = queue_take(&f->queue, link->overtaken);
        }
        pthread_mutex_unlock(&f->lock);
        if (found)
            queue_pass(&taken);
    }
}

/* ---- corrupting, disconnecting ---------------------------------------------------- */

static void inject_spoil(struct tenrec_msg *msg, uint64_t draw)
{
    unsigned char *p = msg->payload;

    p[draw % msg->payload_len] ^= (unsigned char)(1 + (draw >> 40) % 255);
}

/* Asks every agent on the way to the wire, as the core does. */
static bool inject_disconnect(struct faulty *f, tenrec_peer peer)
{
    bool done = false;
    tenrec_error why;

    for (struct tenrec_agent *a = f->self->inner; a; a = a->inner)
        if (TENREC_HAS(a->ops, disconnect) && a->ops->disconnect(a, peer, &why) == TENREC_OK)
            done = true;
    return done;
}

static bool disconnect_out(struct faulty *f, const struct hit *hit, tenrec_peer to,
                           struct tenrec_msg *msg, struct tenrec_done done)
{
    char name[PEER_TEXT_MAX];

    if (!inject_disconnect(f, to)) { /* no connection exists */
        take_back(f, hit);
        send_on(f, to, msg, done);
        return true;
    }
    log_first(f, hit, to, msg);
    msg->release(msg);
    tenrec_done_fail(done, TENREC_EPEER_LOST, "faulty: %s disconnected %s", hit->rule->label,
                     peer_text(to, name));
    return false;
}

/* ---- both ways ---------------------------------------------------------------------- */

bool inject_out(struct faulty *f, const struct hit *hit, tenrec_peer to, struct tenrec_msg *msg,
                struct tenrec_done done)
{
    struct tenrec_msg *twin[2];
    char type[KINDS_TEXT_MAX];

    if (hit->number < 0)
        return fail_no_memory(msg, done);
    if (hit->rule->action != RULE_DISCONNECT) /* a disconnect may be impossible */
        log_first(f, hit, to, msg);
    switch (hit->rule->action) {
    case RULE_FAIL:
        kinds_text(msg->type, type);
        msg->release(msg);
        tell_failed(hit->rule, hit->number, type, done);
        return false;
    case RULE_FAIL_IN_FLIGHT:
        return fail_in_flight(f, hit, to, msg, done);
    case RULE_DROP:
        msg->release(msg);
        tenrec_done_succeed(done);
        return false;
    case RULE_DUPLICATE:
        if (!copy_twins(msg, twin))
            return fail_no_memory(msg, done);
        twin[1]->flags &= ~(uint32_t)TENREC_MSG_MAY_WAIT;
        send_on(f, to, twin[0], done);
        send_on(f, to, twin[1], no_done);
        return true;
    case RULE_DELAY:
    case RULE_REORDER:
    case RULE_SLOW:
        return hold_out(f, hit->rule, to, msg, done);
    case RULE_CORRUPT:
        twin[0] = copy_with_payload(msg);
        if (!twin[0])
            return fail_no_memory(msg, done);
        inject_spoil(twin[0], hit->draw);
        send_on(f, to, twin[0], done);
        return true;
    case RULE_DISCONNECT:
        return disconnect_out(f, hit, to, msg, done);
    }
    return false;
}

/* Copies a received message for `hit`; NULL leaves the message as it is. */
static struct tenrec_msg *copy_in(struct faulty *f, const struct hit *hit, tenrec_peer from,
                                  const struct tenrec_msg *msg)
{
    struct tenrec_msg *copy = copy_received(f->self, from, msg);

    if (!copy)
        take_back(f, hit);
    return copy;
}

bool inject_in(struct faulty *f, const struct hit *hit, tenrec_peer from, struct tenrec_msg *msg)
{
    struct tenrec_msg *copy = NULL;

    if (hit->number < 0) {
        deliver_on(f, from, msg);
        return true;
    }
    if (hit->rule->action != RULE_DISCONNECT)
        log_first(f, hit, from, msg);
    switch (hit->rule->action) {
    case RULE_FAIL: /* check_rule() refuses these two for received messages */
    case RULE_FAIL_IN_FLIGHT:
        break;
    case RULE_DUPLICATE:
        copy = copy_in(f, hit, from, msg);
        break;
    case RULE_CORRUPT:
        copy = copy_in(f, hit, from, msg);
        if (!copy)
            break;
        inject_spoil(copy, hit->draw);
        msg->release(msg);
        msg = copy;
        copy = NULL;
        break;
    case RULE_DELAY:
    case RULE_REORDER:
    case RULE_SLOW:
        return hold_in(f, hit->rule, from, msg);
    case RULE_DISCONNECT:
        if (!inject_disconnect(f, from)) {
            take_back(f, hit);
            break;
        }
        log_first(f, hit, from, msg);
        msg->release(msg);
        return false;
    case RULE_DROP:
        msg->release(msg);
        return false;
    }
    deliver_on(f, from, msg);
    if (copy)
        deliver_on(f, from, copy);
    return true;
}
