/* SPDX-License-Identifier: Apache-2.0 */
/* agent.c - faulty wraps any agent and injects faults into its messages.
 *
 * messages_to_fail, num_fail_sends and messages_to_delay are those of torch's
 * FaultyTensorPipeAgent. The first num_fail_sends sends of each distinct message
 * of a type in messages_to_fail fail before anything reaches the wire; messages
 * of a type in messages_to_delay are sent later. Unlike in torch, a delay blocks
 * no thread: a timer of the core sends the message. `rules` adds other faults.
 */
#include "faulty.h"

#include "core/base/clock.h"

#include <stdlib.h>

/* ---- messages ------------------------------------------------------------------ */

/* Each rule counts the messages it matches; the first that hits applies. */
static struct hit ask_rules(struct faulty *f, struct ruleset *rules, const struct transit *t)
{
    const kinds_mask bit = kinds_bit(t->msg->type);
    struct hit hit = { 0 };
    uint64_t running_ns;

    if (!((t->incoming ? rules->in : rules->out) & bit))
        return hit;
    pthread_mutex_lock(&f->lock);
    running_ns = tenrec_now_ns() - rules->began_ns;
    for (size_t i = 0; i < rules->n; i++) {
        struct rule *r = &rules->rule[i];
        if (r->incoming != t->incoming || !rule_means(r, bit, t->peer) || hit.rule)
            continue;
        if (r->action == RULE_CORRUPT && t->msg->payload_len == 0)
            continue;
        hit.number = rule_hits(r, t->msg, t->peer, running_ns);
        if (hit.number == 0)
            continue;
        hit.rule = r;
        if (hit.number < 0)
            continue;
        hit.first = r->injected++ == 0;
        if (r->action == RULE_CORRUPT)
            hit.draw = rule_draw(r, t->peer, ~rule_link(r, t->peer)->n);
    }
    pthread_mutex_unlock(&f->lock);
    return hit;
}

static void agent_handle(struct faulty *f, const struct transit *t)
{
    struct ruleset *rules = atomic_load_explicit(&f->rules, memory_order_acquire);
    const struct hit hit = ask_rules(f, rules, t);
    bool passed = true;

    if (hit.rule)
        passed = inject(f, &hit, t);
    else
        transit_pass(f, t);
    if (passed && rules->reorders)
        inject_passed(f, rules, t->incoming, t->peer);
}

static void faulty_send(struct tenrec_agent *self, tenrec_peer to, struct tenrec_msg *msg,
                        struct tenrec_done done)
{
    agent_handle(self->impl, &(struct transit){ false, to, msg, done });
}

static void faulty_deliver(struct tenrec_agent *self, tenrec_peer from, struct tenrec_msg *msg)
{
    agent_handle(self->impl, &(struct transit){ true, from, msg, { NULL, NULL } });
}

/* ---- life ------------------------------------------------------------------------ */

/* Copies the fields that this plugin was built with: the core's struct may be longer or shorter. */
static bool members_add(struct faulty *f, const struct tenrec_member *member)
{
    struct tenrec_member *more = realloc(f->member, (f->n_members + 1) * sizeof *more), *one;

    if (!more)
        return false;
    f->member = more;
    one = &more[f->n_members++];
    *one = (struct tenrec_member){ 0 };
    memcpy(one, member, member->size < sizeof *one ? member->size : sizeof *one);
    one->size = sizeof *one;
    return true;
}

static void members_remove(struct faulty *f, tenrec_peer id)
{
    for (size_t i = 0; i < f->n_members; i++)
        if (f->member[i].id == id)
            f->member[i] = f->member[--f->n_members];
}

static tenrec_status faulty_start(struct tenrec_agent *self, const struct tenrec_member *member,
                                  uint32_t n, tenrec_error *err)
{
    struct faulty *f = self->impl;
    tenrec_status st = TENREC_OK;

    pthread_mutex_lock(&f->lock);
    for (uint32_t i = 0; i < n && st == TENREC_OK; i++) {
        if (!members_add(f, member))
            st = tenrec_fail(err, TENREC_ENOMEM, "no memory for %u members", n);
        member = (const void *)((const char *)member + member->size);
    }
    if (st == TENREC_OK)
        st = ruleset_begin(f->rules, f->member, f->n_members, f->can_grow, err);
    pthread_mutex_unlock(&f->lock);
    return st;
}

/* A member that finds no memory here is unknown to rules that are set later. */
static void faulty_member_joined(struct tenrec_agent *self, const struct tenrec_member *member)
{
    struct faulty *f = self->impl;

    pthread_mutex_lock(&f->lock);
    members_remove(f, member->id);
    members_add(f, member);
    ruleset_joined(f->rules, member);
    pthread_mutex_unlock(&f->lock);
}

static void faulty_member_left(struct tenrec_agent *self, tenrec_peer id)
{
    struct faulty *f = self->impl;

    pthread_mutex_lock(&f->lock);
    members_remove(f, id);
    ruleset_left(f->rules, id);
    pthread_mutex_unlock(&f->lock);
}

static tenrec_status faulty_drain(struct tenrec_agent *self, uint32_t ms, tenrec_error *err)
{
    return queue_drain(self->impl, ms, err);
}

static void faulty_destroy(struct tenrec_agent *self)
{
    struct faulty *f = self->impl;

    ruleset_drop(f->rules);
    free(f->member);
    pthread_cond_destroy(&f->queue.idle);
    pthread_mutex_destroy(&f->lock);
    free(f);
}

/* ---- other rules while it runs ------------------------------------------------------- */

/* The former rules stay: other threads may be applying them, and they may hold messages. */
static tenrec_status faulty_change(struct tenrec_agent *self, const void *options,
                                   tenrec_error *err)
{
    struct faulty *f = self->impl;
    struct ruleset *rules = NULL;
    tenrec_status st = ruleset_make(options, f->me, f->backend, &rules, err);

    if (st != TENREC_OK)
        return st;
    pthread_mutex_lock(&f->lock);
    st = ruleset_begin(rules, f->member, f->n_members, f->can_grow, err);
    if (st == TENREC_OK) {
        rules->former = f->rules;
        atomic_store_explicit(&f->rules, rules, memory_order_release);
    }
    pthread_mutex_unlock(&f->lock);
    if (st == TENREC_OK)
        ruleset_tell(rules, self);
    else
        ruleset_drop(rules);
    return st;
}

static const struct tenrec_reconfigure reconfigure = {
    .extension = { TENREC_EXTENSION_RECONFIGURE, sizeof reconfigure, NULL },
    .change = faulty_change,
};

/* ---- debug info ----------------------------------------------------------------- */

/* Pushes "<what>.<type>" for each rule of one of torch's options, and their sum. */
static void push_option(tenrec_sink_fn *sink, void *arg, const char *what, enum rule_origin origin,
                        const struct rule *r, const uint64_t *injected, size_t n)
{
    unsigned long long all = 0;
    char key[80];

    for (size_t i = 0; i < n; i++) {
        if (r[i].origin != origin)
            continue;
        all += injected[2 * i];
        snprintf(key, sizeof key, "%s.%s", what, r[i].label);
        tenrec_sink_number(sink, arg, key, injected[2 * i]);
    }
    tenrec_sink_number(sink, arg, what, all);
}

static void push_rules(tenrec_sink_fn *sink, void *arg, const struct rule *r,
                       const uint64_t *counted, size_t n)
{
    char key[80];

    for (size_t i = 0; i < n; i++) {
        if (r[i].origin != RULE_OF_LIST)
            continue;
        snprintf(key, sizeof key, "rules.%s.injected", r[i].label);
        tenrec_sink_number(sink, arg, key, counted[2 * i]);
        snprintf(key, sizeof key, "rules.%s.matched", r[i].label);
        tenrec_sink_number(sink, arg, key, counted[2 * i + 1]);
    }
}

static void faulty_debug_info(struct tenrec_agent *self, tenrec_sink_fn *sink, void *arg)
{
    struct faulty *f = self->impl;
    struct ruleset *rules = atomic_load(&f->rules);
    /* injected and matched of each rule, as one snapshot */
    uint64_t *counted = calloc(2 * rules->n + 1, sizeof *counted);
    uint64_t out, in, dropped;
    unsigned keys;

    if (!counted)
        return;
    pthread_mutex_lock(&f->lock);
    for (size_t i = 0; i < rules->n; i++) {
        counted[2 * i] = rules->rule[i].injected;
        counted[2 * i + 1] = rules->rule[i].matched;
    }
    out = f->queue.out;
    in = f->queue.in;
    dropped = f->queue.dropped;
    keys = counts_size(&rules->failed);
    pthread_mutex_unlock(&f->lock);
    push_option(sink, arg, "injected_failures", RULE_OF_FAIL, rules->rule, counted, rules->n);
    push_option(sink, arg, "injected_delays", RULE_OF_DELAY, rules->rule, counted, rules->n);
    push_rules(sink, arg, rules->rule, counted, rules->n);
    tenrec_sink_number(sink, arg, "delayed_now", out + in);
    tenrec_sink_number(sink, arg, "dropped_past_deadline", dropped);
    tenrec_sink_number(sink, arg, "distinct_messages", keys);
    if (rules->seed)
        tenrec_sink_number(sink, arg, "seed", rules->seed);
    free(counted);
}

/* ---- building ------------------------------------------------------------------------ */

static const struct tenrec_agent_ops faulty_ops = { .size = sizeof faulty_ops,
                                                    .extensions = &reconfigure.extension,
                                                    .start = faulty_start,
                                                    .member_joined = faulty_member_joined,
                                                    .member_left = faulty_member_left,
                                                    .send = faulty_send,
                                                    .deliver = faulty_deliver,
                                                    .drain = faulty_drain,
                                                    .destroy = faulty_destroy,
                                                    .debug_info = faulty_debug_info };

tenrec_status tenrec_init_agent(const struct tenrec_init *in, struct tenrec_agent *self,
                                tenrec_error *err)
{
    tenrec_status st = TENREC_REQUIRES(self->host, hold, err);
    struct ruleset *rules = NULL;
    struct faulty *f;

    if (st == TENREC_OK)
        st = ruleset_make(in->options, in->me, in->backend, &rules, err);
    if (st != TENREC_OK)
        return st;
    f = calloc(1, sizeof *f);
    if (!f) {
        ruleset_drop(rules);
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for the faulty agent");
    }
    f->self = self;
    f->me = in->me;
    f->backend = in->backend;
    f->can_grow = in->world == 0;
    rules->began_ns = tenrec_now_ns();
    atomic_init(&f->rules, rules);
    pthread_mutex_init(&f->lock, NULL);
    clock_cond_init(&f->queue.idle);
    self->impl = f;
    self->ops = &faulty_ops;
    ruleset_tell(rules, self);
    return TENREC_OK;
}
