/* SPDX-License-Identifier: Apache-2.0 */
#include "rule.h"

#include <stdio.h>
#include <stdlib.h>

#define CHANCE_ONE ((uint64_t)1 << 32)

/* ---- building ---------------------------------------------------------------- */

/* The index of `word` among the choices "a|b|c" of its option, of which it is one. */
static unsigned choice_index(const char *word, const char *choices)
{
    const size_t len = strlen(word);
    unsigned index = 0;

    while (strncmp(choices, word, len) != 0 || (choices[len] && choices[len] != '|')) {
        choices = strchr(choices, '|') + 1;
        index++;
    }
    return index;
}

void rule_fail(struct rule *r, const struct faulty_options *o, size_t i, struct counts *shared)
{
    const char *name = o->messages_to_fail.v[i].s;

    *r = (struct rule){ .origin = RULE_OF_FAIL,
                        .action = RULE_FAIL,
                        .kinds = o->num_fail_sends ? kinds_of(name) : 0,
                        .all_peers = true,
                        .chance = CHANCE_ONE,
                        .times = o->num_fail_sends,
                        .count_by = (enum counts_by)choice_index(o->count_by, COUNTS_WORDS_ALL),
                        .counts = shared };
    snprintf(r->label, sizeof r->label, "%s", name);
}

void rule_delay(struct rule *r, const struct faulty_options *o, size_t i)
{
    const struct tenrec_option_pair *pair = &o->messages_to_delay.v[i];

    *r = (struct rule){ .origin = RULE_OF_DELAY,
                        .action = RULE_DELAY,
                        .kinds = kinds_of(pair->key),
                        .all_peers = true,
                        .chance = CHANCE_ONE,
                        .by_ms = (uint32_t)pair->value.ms };
    snprintf(r->label, sizeof r->label, "%s", pair->key);
}

static uint64_t rule_mix(uint64_t x) /* splitmix64 */
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

tenrec_status rule_of(struct rule *r, const struct faulty_options *o, size_t i, uint64_t seed,
                      tenrec_error *err)
{
    const struct faulty_rule_options *ro = options_rule(o, i);

    *r = (struct rule){ .origin = RULE_OF_LIST,
                        .action = (enum rule_action)choice_index(ro->what, OPTIONS_ACTIONS),
                        .incoming = ro->from.n > 0,
                        .kinds = kinds_of_all(&ro->on),
                        .peers = ro->from.n ? &ro->from : &ro->to,
                        .all_peers = ro->from.n + ro->to.n == 0,
                        .chance = (uint64_t)(ro->probability * (double)CHANCE_ONE),
                        .salt = rule_mix(seed ^ rule_mix(i + 1)),
                        .after_messages = (uint64_t)ro->after_messages,
                        .after_ns = ro->after_ms * 1000000,
                        .times = ro->times,
                        .count_by = (enum counts_by)choice_index(ro->count_by, COUNTS_WORDS_ALL),
                        .by_ms = (uint32_t)ro->by_ms,
                        .bytes_per_second = ro->bytes_per_second };
    r->counts = &r->own;
    options_label(o, i, r->label);
    if (r->all_peers)
        return TENREC_OK;
    r->peer = calloc(r->peers->n, sizeof *r->peer);
    if (!r->peer)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for rule '%s'", r->label);
    for (size_t k = 0; k < r->peers->n; k++)
        r->peer[k] = RULE_NOBODY;
    return TENREC_OK;
}

void rule_finish(struct rule *r)
{
    counts_finish(&r->own);
    free(r->peer);
    free(r->link);
}

const char *rule_name(const struct rule *r)
{
    static const char *const option[] = {
        [RULE_OF_FAIL] = "messages_to_fail", [RULE_OF_DELAY] = "messages_to_delay"
    };

    return r->origin == RULE_OF_LIST ? r->label : option[r->origin];
}

bool rule_draws(const struct rule *r)
{
    return r->chance < CHANCE_ONE || r->action == RULE_CORRUPT;
}

/* ---- peers of a rule ----------------------------------------------------------- */

static tenrec_status fail_unknown(const struct rule *r, const char *word,
                                  const struct tenrec_member *member, uint32_t n, tenrec_error *err)
{
    char known[200] = "";
    size_t len = 0;

    for (uint32_t i = 0; i < n && len + 8 < sizeof known; i++) {
        len +=
            (size_t)snprintf(known + len, sizeof known - len, "%s%s", i ? ", " : "", member->name);
        member = (const void *)((const char *)member + member->size);
    }
    return tenrec_fail(err, TENREC_ECONFIG,
                       "rule '%s': '%s' is neither the name nor the rank of a worker (workers: %s)",
                       r->label, word, known);
}

/* Parses a rank; RULE_NOBODY for any other word. */
static tenrec_peer rank_of(const char *word)
{
    const size_t len = strlen(word);

    if (len == 0 || len > 5 || strspn(word, "0123456789") != len)
        return RULE_NOBODY;
    return (tenrec_peer)strtol(word, NULL, 10);
}

/* A name has precedence over a rank. */
static tenrec_peer rule_find(const char *word, const struct tenrec_member *member, uint32_t n)
{
    const tenrec_peer rank = rank_of(word);
    tenrec_peer found = RULE_NOBODY;

    for (uint32_t i = 0; i < n; i++) {
        if (strcmp(member->name, word) == 0)
            return member->id;
        if (member->id == rank)
            found = rank;
        member = (const void *)((const char *)member + member->size);
    }
    return found;
}

tenrec_status rule_resolve(struct rule *r, const struct tenrec_member *member, uint32_t n,
                           bool can_grow, tenrec_error *err)
{
    for (size_t i = 0; r->peer && i < r->peers->n; i++) {
        const char *word = r->peers->v[i].s;
        if (strcmp(word, "*") == 0) {
            r->all_peers = true;
            continue;
        }
        r->peer[i] = rule_find(word, member, n);
        if (r->peer[i] == RULE_NOBODY && can_grow)
            r->peer[i] = rank_of(word);
        else if (r->peer[i] == RULE_NOBODY)
            return fail_unknown(r, word, member, n, err);
    }
    return TENREC_OK;
}

void rule_joined(struct rule *r, const struct tenrec_member *member)
{
    for (size_t i = 0; r->peer && i < r->peers->n; i++)
        if (strcmp(r->peers->v[i].s, member->name) == 0)
            r->peer[i] = member->id;
}

void rule_left(struct rule *r, tenrec_peer id)
{
    for (size_t i = 0; r->peer && i < r->peers->n; i++)
        if (r->peer[i] == id && rank_of(r->peers->v[i].s) != id)
            r->peer[i] = RULE_NOBODY;
}

static bool is_for(const struct rule *r, tenrec_peer peer)
{
    if (r->all_peers)
        return true;
    for (size_t i = 0; i < r->peers->n; i++)
        if (r->peer[i] == peer)
            return true;
    return false;
}

/* ---- hits ------------------------------------------------------------------------ */

struct rule_link *rule_link(struct rule *r, tenrec_peer peer)
{
    const size_t i = peer < 0 ? 0 : (size_t)peer + 1;

    if (i >= r->n_links) {
        struct rule_link *bigger = realloc(r->link, (i + 8) * sizeof *bigger);
        if (!bigger)
            return NULL;
        memset(bigger + r->n_links, 0, (i + 8 - r->n_links) * sizeof *bigger);
        r->link = bigger;
        r->n_links = i + 8;
    }
    return &r->link[i];
}

bool rule_means(struct rule *r, kinds_mask bit, tenrec_peer peer)
{
    if (!(r->kinds & bit) || !is_for(r, peer))
        return false;
    r->matched++;
    return true;
}

/* Depends only on the seed, the rule, the peer and the number of this peer's
 * messages that the rule has matched, not on the timing of other threads. */
uint64_t rule_draw(const struct rule *r, tenrec_peer peer, uint64_t n)
{
    return rule_mix(r->salt ^ rule_mix((uint64_t)(uint32_t)peer << 40 ^ n));
}

int64_t rule_hits(struct rule *r, const struct tenrec_msg *msg, tenrec_peer peer,
                  uint64_t running_ns)
{
    struct rule_link *link;

    if (r->matched <= r->after_messages || running_ns < r->after_ns)
        return 0;
    if (r->origin == RULE_OF_LIST) {
        link = rule_link(r, peer);
        if (!link)
            return -1;
        link->n++;
        if (rule_draw(r, peer, link->n) >> 32 >= r->chance)
            return 0;
        if (r->action == RULE_REORDER && link->overtaken)
            return 0; /* this message overtakes the held one */
    }
    if (r->times == 0)
        return (int64_t)r->injected + 1;
    if (r->count_by == COUNTS_ALL)
        return r->injected < (uint64_t)r->times ? (int64_t)r->injected + 1 : 0;
    return counts_next(r->counts, counts_key(r->count_by, msg, peer), r->times);
}
