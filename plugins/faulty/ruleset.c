/* SPDX-License-Identifier: Apache-2.0 */
#include "rule.h"

#include <stdlib.h>
#include <sys/random.h>

/* ---- making ---------------------------------------------------------------------- */

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
static uint64_t stream_of(uint64_t seed, tenrec_peer me, const char *backend)
{
    uint64_t h = seed ^ (uint64_t)(uint32_t)me << 32;

    for (const char *p = backend; p && *p; p++)
        h = (h ^ (unsigned char)*p) * 0x100000001b3u;
    return h;
}

static tenrec_status ruleset_fill(struct ruleset *r, uint64_t stream, tenrec_error *err)
{
    const struct faulty_options *o = r->opt;
    tenrec_status st = TENREC_OK;
    bool draws = false;

    r->rule =
        calloc(o->messages_to_fail.n + o->rules.n + o->messages_to_delay.n + 1, sizeof *r->rule);
    if (!r->rule)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for the rules");
    for (size_t i = 0; i < o->messages_to_fail.n; i++)
        rule_fail(&r->rule[r->n++], o, i, &r->failed);
    for (size_t i = 0; i < o->rules.n && st == TENREC_OK; i++)
        st = rule_of(&r->rule[r->n++], o, i, stream, err);
    for (size_t i = 0; i < o->messages_to_delay.n; i++)
        rule_delay(&r->rule[r->n++], o, i);
    for (size_t i = 0; i < r->n; i++) {
        const struct rule *one = &r->rule[i];
        *(one->incoming ? &r->in : &r->out) |= one->kinds;
        r->reorders |= one->action == RULE_REORDER;
        draws |= rule_draws(one);
    }
    if (!draws)
        r->seed = 0;
    return st;
}

tenrec_status ruleset_make(const struct faulty_options *opt, tenrec_peer me, const char *backend,
                           struct ruleset **ret, tenrec_error *err)
{
    struct ruleset *r = calloc(1, sizeof *r);
    tenrec_status st;

    if (!r)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for the rules");
    r->opt = opt;
    r->seed = opt->seed ? (uint64_t)opt->seed : draw_seed();
    st = ruleset_fill(r, stream_of(r->seed, me, backend), err);
    if (st == TENREC_OK)
        *ret = r;
    else
        ruleset_drop(r);
    return st;
}

void ruleset_drop(struct ruleset *r)
{
    while (r) {
        struct ruleset *former = r->former;

        for (size_t i = 0; i < r->n; i++)
            rule_finish(&r->rule[i]);
        free(r->rule);
        counts_finish(&r->failed);
        free(r);
        r = former;
    }
}

/* ---- the group ------------------------------------------------------------------- */

tenrec_status ruleset_begin(struct ruleset *r, const struct tenrec_member *member, size_t n,
                            bool can_grow, tenrec_error *err)
{
    tenrec_status st = TENREC_OK;

    for (size_t i = 0; i < r->n && st == TENREC_OK; i++)
        st = rule_resolve(&r->rule[i], member, (uint32_t)n, can_grow, err);
    r->began_ns = tenrec_now_ns();
    return st;
}

void ruleset_joined(struct ruleset *r, const struct tenrec_member *member)
{
    for (size_t i = 0; i < r->n; i++)
        rule_joined(&r->rule[i], member);
}

void ruleset_left(struct ruleset *r, tenrec_peer id)
{
    for (size_t i = 0; i < r->n; i++)
        rule_left(&r->rule[i], id);
}

/* ---- the log --------------------------------------------------------------------- */

/* Warns when `name` hits nothing that this library sends. */
static void warn_of_name(struct tenrec_agent *self, const char *rule, const char *name)
{
    const char *why = kinds_never(name);

    if (why)
        self->host->log(self, TENREC_LOG_WARN, "%s: '%s' hits only torch's own messages: %s", rule,
                        name, why);
}

static void warn_of_idle_rules(const struct ruleset *rules, struct tenrec_agent *self)
{
    const struct faulty_options *o = rules->opt;

    for (size_t i = 0; i < rules->n; i++) {
        const struct rule *r = &rules->rule[i];
        if (r->origin != RULE_OF_LIST)
            warn_of_name(self, rule_name(r), r->label);
    }
    for (size_t i = 0; i < o->rules.n; i++) {
        const struct faulty_rule_options *r = options_rule(o, i);
        char label[OPTIONS_LABEL_MAX];
        options_label(o, i, label);
        for (size_t k = 0; k < r->on.n; k++)
            warn_of_name(self, label, r->on.v[k].s);
        if (r->probability <= 0)
            self->host->log(self, TENREC_LOG_WARN, "%s hits nothing: its probability is 0", label);
    }
    if (o->messages_to_fail.n && o->num_fail_sends == 0)
        self->host->log(self, TENREC_LOG_WARN,
                        "messages_to_fail hits nothing: num_fail_sends is 0");
}

void ruleset_tell(const struct ruleset *r, struct tenrec_agent *self)
{
    if (r->seed && r->opt->seed)
        self->host->log(self, TENREC_LOG_INFO, "random faults use seed %lld", (long long)r->seed);
    else if (r->seed) /* a warning: an unlogged seed is lost */
        self->host->log(self, TENREC_LOG_WARN,
                        "random faults use seed %lld; set 'seed: %lld' to repeat them",
                        (long long)r->seed, (long long)r->seed);
    warn_of_idle_rules(r, self);
}
