/* SPDX-License-Identifier: Apache-2.0 */
#include "otlp.h"

#include "core/base/clock.h"

#include <pthread.h>
#include <stdlib.h>

enum { LOG_EACH_S = 60 };

#define MS UINT64_C(1000000)

struct queue {
    struct tenrec_observer *self;
    queue_post_fn *post;
    void *arg;
    pthread_t thread;
    pthread_mutex_t lock;   /* guards all below, and the origins of all spans */
    pthread_cond_t changed; /* monotonic */
    struct tenrec_span *first, **last;
    size_t n;
    uint64_t send_ns;  /* when the first span has waited long enough */
    uint64_t asked;    /* number of the last request to send at once */
    uint64_t until_ns; /* of the last request */
    uint64_t done;     /* number of the last request that has ended */
    bool stop;

    /* Of the thread. Spans of the batch are changed with the lock held only. */
    struct tenrec_span *batch; /* being sent, or to be sent again */
    bool reads;                /* the batch, without the lock */
    char *body;                /* of the batch; owns */
    size_t body_len;
    uint64_t retry_ns, retry_ms; /* of the batch */
    uint64_t logged_ns;
};

/* ---- adding ------------------------------------------------------------------ */

static void span_end(struct queue *q, struct tenrec_span *s, bool sent)
{
    q->self->host->span_done(q->self, s, sent);
}

static void queue_append(struct queue *q, struct tenrec_span *s)
{
    s->next = NULL;
    *q->last = s;
    q->last = &s->next;
    q->n++;
    if (q->n == 1)
        q->send_ns = clock_now_ns() + QUEUE_PERIOD_MS * MS;
    if (q->n == 1 || q->n == QUEUE_BATCH_MAX)
        pthread_cond_broadcast(&q->changed);
}

void queue_add(struct queue *q, struct tenrec_span *s)
{
    pthread_mutex_lock(&q->lock);
    if (q->n < QUEUE_MAX)
        queue_append(q, s);
    else
        span_end(q, s, false);
    pthread_mutex_unlock(&q->lock);
}

/* ---- sending ------------------------------------------------------------------ */

static void batch_take(struct queue *q)
{
    struct tenrec_span **end = &q->first;
    size_t n = 0;

    for (; *end && n < QUEUE_BATCH_MAX; n++)
        end = &(*end)->next;
    q->batch = q->first;
    q->first = *end;
    *end = NULL;
    q->n -= n;
    if (!q->first)
        q->last = &q->first;
    q->retry_ns = 0;
    q->retry_ms = QUEUE_PERIOD_MS;
}

static void batch_end(struct queue *q, bool sent)
{
    struct tenrec_span *s;

    while ((s = q->batch)) {
        q->batch = s->next;
        span_end(q, s, sent);
    }
    free(q->body);
    q->body = NULL;
}

/* Another try will not help. */
static bool is_final(tenrec_status st)
{
    return st == TENREC_EPERM || st == TENREC_EPROTOCOL || st == TENREC_EINVAL ||
           st == TENREC_EUNSUPPORTED;
}

static void batch_failed(struct queue *q, const tenrec_error *why)
{
    const uint64_t now = clock_now_ns();
    const bool final = is_final(why->code);

    if (q->logged_ns == 0 || now - q->logged_ns > (uint64_t)LOG_EACH_S * 1000 * MS) {
        q->self->host->log(q->self, TENREC_LOG_WARN, "the collector did not accept spans; %s: %s",
                           final ? "dropped" : "will retry", why->text);
        q->logged_ns = now;
    }
    if (final) {
        batch_end(q, false);
        return;
    }
    q->retry_ns = now + q->retry_ms * MS;
    q->retry_ms = q->retry_ms * 2 < QUEUE_RETRY_MAX_MS ? q->retry_ms * 2 : QUEUE_RETRY_MAX_MS;
}

/* Returns false if the batch stays queued. The lock is released during the post. */
static bool batch_send(struct queue *q, uint32_t timeout_ms)
{
    tenrec_error why;
    tenrec_status st = TENREC_OK;

    if (!q->body) {
        q->reads = true;
        pthread_mutex_unlock(&q->lock);
        q->body = spans_json(q->batch, q->self->host->version, &q->body_len);
        pthread_mutex_lock(&q->lock);
        q->reads = false;
        pthread_cond_broadcast(&q->changed);
    }
    if (!q->body) {
        batch_end(q, false);
        return true;
    }
    pthread_mutex_unlock(&q->lock);
    st = q->post(q->arg, q->body, q->body_len, timeout_ms, &why);
    pthread_mutex_lock(&q->lock);
    if (st == TENREC_OK)
        batch_end(q, true);
    else
        batch_failed(q, &why);
    return !q->batch;
}

/* How long a post may take now. */
static uint32_t queue_post_ms(const struct queue *q)
{
    const uint64_t now = clock_now_ns();
    uint64_t left_ms;

    if (q->asked == q->done)
        return QUEUE_POST_MS;
    left_ms = q->until_ns > now ? (q->until_ns - now + MS - 1) / MS : 0;
    return left_ms < QUEUE_POST_MS ? (uint32_t)left_ms : QUEUE_POST_MS;
}

/* Sends all, or until one batch stays. An origin may leave during a post. */
static void queue_send(struct queue *q)
{
    uint32_t left_ms;

    while (!q->stop && (q->batch || q->first)) {
        if (!q->batch)
            batch_take(q);
        left_ms = queue_post_ms(q);
        if (left_ms == 0 || !batch_send(q, left_ms))
            return;
    }
}

static uint64_t queue_next_ns(const struct queue *q)
{
    if (q->batch)
        return q->retry_ns;
    if (q->n >= QUEUE_BATCH_MAX)
        return 0;
    return q->n > 0 ? q->send_ns : CLOCK_NEVER;
}

static void *queue_run(void *arg)
{
    struct queue *q = arg;
    uint64_t ticket, next;

    pthread_mutex_lock(&q->lock);
    while (!q->stop) {
        next = queue_next_ns(q);
        if (q->asked == q->done && !clock_passed(next)) {
            clock_cond_wait(&q->changed, &q->lock, next);
            continue;
        }
        ticket = q->asked;
        queue_send(q);
        q->done = ticket;
        pthread_cond_broadcast(&q->changed);
    }
    pthread_mutex_unlock(&q->lock);
    return NULL;
}

/* ---- opening and closing ---------------------------------------------------------- */

static void queue_free(struct queue *q)
{
    batch_end(q, false);
    pthread_cond_destroy(&q->changed);
    pthread_mutex_destroy(&q->lock);
    free(q);
}

tenrec_status queue_open(struct tenrec_observer *self, queue_post_fn *post, void *arg,
                         struct queue **ret, tenrec_error *err)
{
    struct queue *q = calloc(1, sizeof *q);
    pthread_attr_t attr;
    int r;

    if (!q)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory");
    q->self = self;
    q->post = post;
    q->arg = arg;
    q->last = &q->first;
    pthread_mutex_init(&q->lock, NULL);
    clock_cond_init(&q->changed);
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, TENREC_THREAD_STACK);
    r = pthread_create(&q->thread, &attr, queue_run, q);
    pthread_attr_destroy(&attr);
    if (r != 0) {
        queue_free(q);
        return tenrec_fail_errno(err, TENREC_EOS, r, "cannot start a thread for spans");
    }
    *ret = q;
    return TENREC_OK;
}

void queue_close(struct queue *q)
{
    pthread_mutex_lock(&q->lock);
    q->stop = true;
    pthread_cond_broadcast(&q->changed);
    pthread_mutex_unlock(&q->lock);
    pthread_join(q->thread, NULL);
    queue_free(q);
}

/* ---- leaving ------------------------------------------------------------------------ */

/* Takes the origin out of all spans that are left. */
static void queue_forget(struct queue *q, const struct tenrec_origin *origin)
{
    struct tenrec_span **at = &q->first, *s;

    while ((s = *at)) {
        if (s->origin == origin) {
            *at = s->next;
            q->n--;
            span_end(q, s, false);
        } else {
            at = &s->next;
        }
    }
    q->last = at;
    for (s = q->batch; s; s = s->next)
        if (s->origin == origin)
            s->origin = NULL;
}

void queue_leave(struct queue *q, const struct tenrec_origin *origin)
{
    const uint64_t until_ns = clock_now_ns() + QUEUE_POST_MS * MS;
    uint64_t ticket;

    pthread_mutex_lock(&q->lock);
    ticket = ++q->asked;
    q->until_ns = until_ns;
    pthread_cond_broadcast(&q->changed);
    while (q->done < ticket && clock_cond_wait(&q->changed, &q->lock, until_ns))
        ;
    while (q->reads)
        pthread_cond_wait(&q->changed, &q->lock);
    queue_forget(q, origin);
    pthread_mutex_unlock(&q->lock);
}
