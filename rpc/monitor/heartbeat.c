/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/monitor/heartbeat.h"

#include "core/base/clock.h"
#include "core/base/memory.h"

#include <stdlib.h>

enum { FOLLOWED = 2, SOONER = 4 /* polls per interval after a refusal */ };

void heartbeats_finish(struct heartbeats *h)
{
    free(h->list);
    *h = (struct heartbeats){ .n = 0 };
}

static struct heartbeat *heartbeat_find(struct heartbeats *h, tenrec_peer id, int64_t incarnation)
{
    for (size_t i = 0; i < h->n; i++)
        if (h->list[i].id == id && h->list[i].incarnation == incarnation)
            return &h->list[i];
    return NULL;
}

static struct heartbeat *find_or_add(struct heartbeats *h, tenrec_peer id, int64_t incarnation,
                                     uint64_t first_ns)
{
    struct heartbeat *one = heartbeat_find(h, id, incarnation), *more;

    if (one)
        return one;
    more = memory_grow(h->list, h->n, &h->room, sizeof *more);
    if (!more)
        return NULL;
    h->list = more;
    one = &h->list[h->n++];
    *one = (struct heartbeat){ .id = id, .incarnation = incarnation, .next_ns = first_ns };
    return one;
}

tenrec_status heartbeats_follow(struct heartbeats *h, const struct membership_view *v,
                                tenrec_peer me, uint64_t now_ns, tenrec_error *err)
{
    size_t kept = 0, at = 0;
    bool one_is_gone = false;

    for (size_t i = 0; i < h->n; i++) {
        const bool stays = membership_view_find(v, h->list[i].id, h->list[i].incarnation);

        one_is_gone = one_is_gone || (h->list[i].ours && !stays);
        h->list[i].ours = false;
        if (stays)
            h->list[kept++] = h->list[i];
    }
    h->n = kept;
    while (at < v->n && v->entry[at].id != me)
        at++;
    for (size_t i = 1; i <= FOLLOWED && i < v->n; i++) {
        const struct membership_view_entry *e = &v->entry[(at + i) % v->n];
        /* Neighbours often die together. */
        struct heartbeat *one = find_or_add(h, e->id, e->incarnation,
                                            now_ns + (one_is_gone ? 0 : h->rules.interval_ns));
        if (!one)
            return tenrec_fail(err, TENREC_ENOMEM, "no memory for the members to monitor");
        one->ours = true;
    }
    return TENREC_OK;
}

static bool heartbeat_is_over(const struct heartbeats *h, const struct heartbeat *one)
{
    return one->gone || one->missed >= h->rules.misses || one->refused >= h->rules.misses;
}

enum heartbeat_due heartbeats_next(struct heartbeats *h, uint64_t now_ns, struct heartbeat *ret,
                                   uint64_t *ret_next_ns)
{
    *ret_next_ns = CLOCK_NEVER;
    for (size_t i = 0; i < h->n; i++) {
        struct heartbeat *one = &h->list[i];

        if (!one->ours && !one->suspected)
            continue;
        if (one->next_ns > now_ns) {
            if (one->next_ns < *ret_next_ns)
                *ret_next_ns = one->next_ns;
            continue;
        }
        if (one->asked)
            one->missed++;
        one->asked = true;
        one->next_ns = now_ns + h->rules.interval_ns;
        *ret = *one;
        if (!heartbeat_is_over(h, one))
            return HEARTBEAT_ASK;
        return one->gone || one->consulted ? HEARTBEAT_DEAD : HEARTBEAT_CONSULT;
    }
    return HEARTBEAT_REST;
}

void heartbeats_answered(struct heartbeats *h, tenrec_peer id, int64_t incarnation)
{
    struct heartbeat *one = heartbeat_find(h, id, incarnation);

    if (!one)
        return;
    one->asked = one->suspected = one->consulted = false;
    one->missed = one->refused = 0;
}

/* A refusal is final: no process listens, even if messages arrived before. */
void heartbeats_progress(struct heartbeats *h, tenrec_peer id, int64_t incarnation)
{
    struct heartbeat *one = heartbeat_find(h, id, incarnation);

    if (!one)
        return;
    one->missed = 0;
    one->consulted = one->consulted && one->refused >= h->rules.misses;
}

void heartbeats_consulted(struct heartbeats *h, tenrec_peer id, int64_t incarnation, uint32_t n,
                          uint64_t now_ns)
{
    struct heartbeat *one = heartbeat_find(h, id, incarnation);

    if (!one)
        return;
    one->consulted = true;
    one->others = n;
    one->denials = 0;
    if (n == 0)
        one->next_ns = now_ns;
}

void heartbeats_vouched(struct heartbeats *h, tenrec_peer id, int64_t incarnation, bool alive,
                        uint64_t now_ns)
{
    struct heartbeat *one = heartbeat_find(h, id, incarnation);

    if (!one || !one->consulted)
        return;
    if (alive) {
        one->consulted = one->asked = false;
        one->missed = one->refused = 0;
    } else if (++one->denials >= one->others) {
        one->next_ns = now_ns;
    }
}

tenrec_status heartbeats_check(struct heartbeats *h, tenrec_peer id, int64_t incarnation,
                               uint64_t now_ns, tenrec_error *err)
{
    struct heartbeat *one = find_or_add(h, id, incarnation, now_ns);

    if (!one)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for the members to monitor");
    if (!one->suspected && !one->asked)
        one->next_ns = now_ns;
    one->suspected = true;
    return TENREC_OK;
}

size_t heartbeats_dead(const struct heartbeats *h, struct heartbeat *ret)
{
    size_t n = 0;

    for (size_t i = 0; i < h->n; i++)
        if (heartbeat_is_over(h, &h->list[i]) && (h->list[i].gone || h->list[i].consulted))
            ret[n++] = h->list[i];
    return n;
}

bool heartbeats_suspects(const struct heartbeats *h, tenrec_peer id, int64_t incarnation)
{
    for (size_t i = 0; i < h->n; i++)
        if (h->list[i].id == id && h->list[i].incarnation == incarnation)
            return h->list[i].suspected;
    return false;
}

const char *heartbeat_why(const struct heartbeats *h, const struct heartbeat *dead)
{
    if (dead->gone)
        return "its process has ended";
    return dead->refused >= h->rules.misses ? "no process listens at its address"
                                            : "it does not answer";
}

void heartbeats_failed(struct heartbeats *h, tenrec_peer id, int64_t incarnation, bool refused,
                       uint64_t now_ns)
{
    struct heartbeat *one = heartbeat_find(h, id, incarnation);

    if (!one || !one->asked)
        return;
    one->asked = false;
    one->suspected = true;
    one->missed++;
    if (!refused)
        return;
    one->refused++;
    one->next_ns = now_ns + h->rules.interval_ns / SOONER;
}

tenrec_status heartbeats_suspect(struct heartbeats *h, tenrec_peer id, int64_t incarnation,
                                 uint64_t now_ns, tenrec_error *err)
{
    struct heartbeat *one = find_or_add(h, id, incarnation, now_ns);

    if (!one)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for the members to monitor");
    if (!one->suspected) {
        one->next_ns = now_ns;
    } else if (one->asked) {
        /* A new connection that breaks at once counts as a missed answer, once per poll: callers
         * may try many times in a moment in which the member does not know this worker yet. */
        one->missed++;
        one->next_ns = now_ns + h->rules.interval_ns / SOONER;
    }
    one->suspected = true;
    /* The broken connection brings no answer to the request in flight. */
    one->asked = false;
    return TENREC_OK;
}

void heartbeats_start_over(struct heartbeats *h, uint64_t now_ns)
{
    for (size_t i = 0; i < h->n; i++) {
        struct heartbeat *one = &h->list[i];

        one->asked = one->consulted = false;
        one->missed = one->refused = 0;
        one->next_ns = now_ns;
    }
}

void heartbeats_bury(struct heartbeats *h, tenrec_peer id, int64_t incarnation, uint64_t now_ns)
{
    struct heartbeat *one = find_or_add(h, id, incarnation, now_ns);

    if (!one)
        return; /* its missed answers will show */
    one->suspected = one->gone = true;
    one->next_ns = now_ns;
}
