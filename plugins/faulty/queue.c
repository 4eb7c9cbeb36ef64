/* SPDX-License-Identifier: Apache-2.0 */
#include "faulty.h"

#include "core/base/clock.h"

#include <stdlib.h>

struct held *queue_new(struct faulty *f, struct rule *r, const struct transit *on)
{
    struct held *h = malloc(sizeof *h);

    if (h)
        *h = (struct held){ .faulty = f, .rule = r, .on = *on };
    return h;
}

void queue_add(struct queue *q, struct held *h)
{
    ++*(h->on.incoming ? &q->in : &q->out);
    if (h->rule->action == RULE_SLOW)
        rule_link(h->rule, h->on.peer)->waiting++;
    else if (h->rule->action == RULE_REORDER)
        rule_link(h->rule, h->on.peer)->overtaken = h;
}

struct held queue_take(struct held *h)
{
    h->gone = true;
    if (h->rule->action == RULE_REORDER)
        rule_link(h->rule, h->on.peer)->overtaken = NULL;
    return *h;
}

/* Counts `h` out after it was passed on. */
static void queue_forget(struct held *h)
{
    struct faulty *f = h->faulty;
    struct queue *q = &f->queue;

    pthread_mutex_lock(&f->lock);
    if (--*(h->on.incoming ? &q->in : &q->out) == 0 && !h->on.incoming)
        pthread_cond_broadcast(&q->idle);
    if (h->rule->action == RULE_SLOW)
        rule_link(h->rule, h->on.peer)->waiting--;
    pthread_mutex_unlock(&f->lock);
}

/* Returns true if the deadline of `h` has expired and past_deadline is "drop". */
static bool is_too_late(const struct held *h)
{
    return !h->on.incoming && h->on.msg->deadline_ns &&
           strcmp(atomic_load(&h->faulty->rules)->opt->past_deadline, "drop") == 0 &&
           tenrec_now_ns() >= h->on.msg->deadline_ns;
}

void queue_pass(struct held *h)
{
    struct faulty *f = h->faulty;

    if (is_too_late(h)) {
        pthread_mutex_lock(&f->lock);
        f->queue.dropped++;
        pthread_mutex_unlock(&f->lock);
        transit_fail(&h->on, TENREC_ETIMEDOUT, "the deadline of", " expired while it was held");
    } else {
        transit_pass(f, &h->on);
    }
    queue_forget(h);
}

/* Due, or the agent shuts down. */
static void queue_due(void *arg)
{
    struct held *h = arg, taken;
    struct faulty *f = h->faulty;
    bool gone;

    pthread_mutex_lock(&f->lock);
    gone = h->gone;
    if (!gone)
        taken = queue_take(h);
    pthread_mutex_unlock(&f->lock);
    if (!gone)
        queue_pass(&taken);
    free(h);
}

tenrec_status queue_hold(struct held *h)
{
    struct faulty *f = h->faulty;
    /* The drain is queue_drain's: the core would wait for messages that were passed on early. */
    const tenrec_status st = f->self->host->hold(f->self, h->due_ns, false, queue_due, h);
    bool gone;

    if (st == TENREC_OK)
        return st;
    pthread_mutex_lock(&f->lock);
    gone = h->gone; /* another thread has passed it on already */
    if (!gone)
        queue_take(h);
    pthread_mutex_unlock(&f->lock);
    if (!gone)
        queue_forget(h);
    free(h);
    return gone ? TENREC_OK : st;
}

tenrec_status queue_drain(struct faulty *f, uint32_t ms, tenrec_error *err)
{
    struct queue *q = &f->queue;
    const uint64_t until_ns = clock_deadline_ms(ms);
    uint64_t left;

    pthread_mutex_lock(&f->lock);
    while (q->out && clock_cond_wait(&q->idle, &f->lock, until_ns))
        ;
    left = q->out;
    pthread_mutex_unlock(&f->lock);
    if (!left)
        return TENREC_OK;
    return tenrec_fail(err, TENREC_ETIMEDOUT, "%llu delayed messages are still held after %u ms",
                       (unsigned long long)left, ms);
}
