/* SPDX-License-Identifier: Apache-2.0 */
/* agent.c - faulty wraps any agent and injects faults into its messages.
 *
 * messages_to_fail, num_fail_sends and messages_to_delay are those of torch's
 * FaultyTensorPipeAgent. The first num_fail_sends sends of each distinct message
 * of a type in messages_to_fail fail before anything reaches the wire; messages
 * of a type in messages_to_delay are sent later. Unlike in torch, a delay blocks
 * no thread: a timer of the core sends the message. `rules` adds other faults.
 *
 * An op that no rule needs is not set, so the chain skips this agent.
 */
#include "faulty.h"

#include <stdlib.h>
#include <sys/random.h>

/* ---- messages ------------------------------------------------------------------ */

/* Each rule counts the messages it matches; the first that hits applies. */
static struct hit ask_rules(struct faulty *f, const struct transit *t)
{
    const kinds_mask bit = kinds_bit(t->msg->type);
    struct hit hit = { 0 };
    uint64_t running_ns;

    if (!((t->incoming ? f->in : f->out) & bit))
        return hit;
    pthread_mutex_lock(&f->lock);
    running_ns = tenrec_now_ns() - f->started_ns;
    for (size_t i = 0; i < f->n_rules; i++) {
        struct rule *r = &f->rule[i];
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
    const struct hit hit = ask_rules(f, t);
    bool passed = true;

    if (hit.rule)
        passed = inject(f, &hit, t);
    else
        transit_pass(f, t);
    if (passed && f->reorders)
        inject_passed(f, t->incoming, t->peer);
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

static tenrec_status faulty_start(struct tenrec_agent *self, const struct tenrec_member *member,
                                  uint32_t n, tenrec_error *err)
{
    struct faulty *f = self->impl;
    tenrec_status st = TENREC_OK;

    pthread_mutex_lock(&f->lock);
    for (size_t i = 0; i < f->n_rules && st == TENREC_OK; i++)
        st = rule_resolve(&f->rule[i], member, n, f->can_grow, err);
    f->started_ns = tenrec_now_ns();
    pthread_mutex_unlock(&f->lock);
    return st;
}

static void faulty_member_joined(struct tenrec_agent *self, const struct tenrec_member *member)
{
    struct faulty *f = self->impl;

    pthread_mutex_lock(&f->lock);
    for (size_t i = 0; i < f->n_rules; i++)
        rule_joined(&f->rule[i], member);
    pthread_mutex_unlock(&f->lock);
}

static void faulty_member_left(struct tenrec_agent *self, tenrec_peer id)
{
    struct faulty *f = self->impl;

    pthread_mutex_lock(&f->lock);
    for (size_t i = 0; i < f->n_rules; i++)
        rule_left(&f->rule[i], id);
    pthread_mutex_unlock(&f->lock);
}

static void faulty_destroy(struct tenrec_agent *self)
{
    struct faulty *f = self->impl;

    for (size_t i = 0; i < f->n_rules; i++)
        rule_finish(&f->rule[i]);
    free(f->rule);
    counts_finish(&f->failed);
    pthread_mutex_destroy(&f->lock);
    free(f);
}

/* ---- debug info and warnings ------------------------------------------------------- */

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
    /* injected and matched of each rule, as one snapshot */
    uint64_t *counted = calloc(2 * f->n_rules + 1, sizeof *counted);
    uint64_t out, in, dropped;
    unsigned keys;

    if (!counted)
        return;
    pthread_mutex_lock(&f->lock);
    for (size_t i = 0; i < f->n_rules; i++) {
        counted[2 * i] = f->rule[i].injected;
        counted[2 * i + 1] = f->rule[i].matched;
    }
    out = f->queue.out;
    in = f->queue.in;
    dropped = f->queue.dropped;
    keys = counts_size(&f->failed);
    pthread_mutex_unlock(&f->lock);
    push_option(sink, arg, "injected_failures", RULE_OF_FAIL, f->rule, counted, f->n_rules);
    push_option(sink, arg, "injected_delays", RULE_OF_DELAY, f->rule, counted, f->n_rules);
    push_rules(sink, arg, f->rule, counted, f->n_rules);
    tenrec_sink_number(sink, arg, "delayed_now", out + in);
    tenrec_sink_number(sink, arg, "dropped_past_deadline", dropped);
    tenrec_sink_number(sink, arg, "distinct_messages", keys);
    if (f->seed)
        tenrec_sink_number(sink, arg, "seed", f->seed);
    free(counted);
}

/* Warns when `name` hits nothing that this library sends. */
static void warn_of_name(const struct faulty *f, const char *rule, const char *name)
{
    const char *why = kinds_never(name);

    if (why)
        f->self->host->log(f->self, TENREC_LOG_WARN, "%s: '%s' hits only torch's own messages: %s",
                           rule, name, why);
}

static void warn_of_idle_rules(const struct faulty *f)
{
    const struct faulty_options *o = f->opt;

    for (size_t i = 0; i < f->n_rules; i++) {
        const struct rule *r = &f->rule[i];
        if (r->origin != RULE_OF_LIST)
            warn_of_name(f, rule_name(r), r->label);
    }
    for (size_t i = 0; i < o->rules.n; i++) {
        const struct faulty_rule_options *r = options_rule(o, i);
        char label[OPTIONS_LABEL_MAX];
        options_label(o, i, label);
        for (size_t k = 0; k < r->on.n; k++)
            warn_of_name(f, label, r->on.v[k].s);
        if (r->probability <= 0)
            f->self->host->log(f->self, TENREC_LOG_WARN, "%s hits nothing: its probability is 0",
                               label);
    }
    if (o->messages_to_fail.n && o->num_fail_sends == 0)
        f->self->host->log(f->self, TENREC_LOG_WARN,
                           "messages_to_fail hits nothing: num_fail_sends is 0");
}

/* ---- building ------------------------------------------------------------------------ */

/* A seed that is not 0, and short enough to be typed. */
static uint64_t draw_seed(void)
{
    uint32_t seed = 0;

    if (getrandom(&seed, sizeof seed, 0) != (ssize_t)sizeof seed)
        seed = (uint32_t)tenrec_now_ns();
    return seed ? seed : 1;
}

/* Agents with one seed (other workers, other layers of a chain) draw from
 * different streams. */
static uint64_t stream_of(uint64_t seed, const struct tenrec_init *in)
{
    uint64_t h = seed ^ (uint64_t)(uint32_t)in->me << 32;

    for (const char *p = in->backend; p && *p; p++)
        h = (h ^ (unsigned char)*p) * 0x100000001b3u;
    return h;
}

static void announce_seed(struct faulty *f)
{
    bool draws = false;

    for (size_t i = 0; i < f->n_rules; i++)
        draws |= rule_draws(&f->rule[i]);
    if (!draws)
        f->seed = 0;
    else if (f->opt->seed)
        f->self->host->log(f->self, TENREC_LOG_INFO, "random faults use seed %lld",
                           (long long)f->seed);
    else /* a warning: an unlogged seed is lost */
        f->self->host->log(f->self, TENREC_LOG_WARN,
                           "random faults use seed %lld; set 'seed: %lld' to repeat them",
                           (long long)f->seed, (long long)f->seed);
}

static tenrec_status make_rules(struct faulty *f, const struct tenrec_init *in, tenrec_error *err)
{
    const struct faulty_options *o = f->opt;
    const uint64_t stream = stream_of(f->seed, in);
    tenrec_status st = TENREC_OK;

    f->rule =
        calloc(o->messages_to_fail.n + o->rules.n + o->messages_to_delay.n + 1, sizeof *f->rule);
    if (!f->rule)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for the rules");
    for (size_t i = 0; i < o->messages_to_fail.n; i++)
        rule_fail(&f->rule[f->n_rules++], o, i, &f->failed);
    for (size_t i = 0; i < o->rules.n && st == TENREC_OK; i++)
        st = rule_of(&f->rule[f->n_rules++], o, i, stream, err);
    for (size_t i = 0; i < o->messages_to_delay.n; i++)
        rule_delay(&f->rule[f->n_rules++], o, i);
    for (size_t i = 0; i < f->n_rules; i++) {
        const struct rule *r = &f->rule[i];
        *(r->incoming ? &f->in : &f->out) |= r->kinds;
        f->reorders |= r->action == RULE_REORDER;
    }
    return st;
}

tenrec_status tenrec_init_agent(const struct tenrec_init *in, struct tenrec_agent *self,
                                tenrec_error *err)
{
    tenrec_status st = TENREC_REQUIRES(self->host, hold, err);
    struct faulty *f;

    if (st != TENREC_OK)
        return st;
    f = calloc(1, sizeof *f);
    if (!f)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for the faulty agent");
    f->self = self;
    f->opt = in->options;
    f->can_grow = in->world == 0;
    f->seed = f->opt->seed ? (uint64_t)f->opt->seed : draw_seed();
    f->started_ns = tenrec_now_ns();
    pthread_mutex_init(&f->lock, NULL);
    self->impl = f;
    st = make_rules(f, in, err);
    if (st != TENREC_OK) {
        faulty_destroy(self);
        return st;
    }
    f->ops = (struct tenrec_agent_ops){ .size = sizeof f->ops,
                                        .start = f->n_rules ? faulty_start : NULL,
                                        .member_joined = faulty_member_joined,
                                        .member_left = faulty_member_left,
                                        .send = f->out ? faulty_send : NULL,
                                        .deliver = f->in ? faulty_deliver : NULL,
                                        .destroy = faulty_destroy,
                                        .debug_info = faulty_debug_info };
    self->ops = &f->ops;
    announce_seed(f);
    warn_of_idle_rules(f);
    return TENREC_OK;
}
