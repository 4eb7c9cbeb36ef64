/* SPDX-License-Identifier: Apache-2.0 */
#include "observe/metrics/trace_queue.h"

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/memory.h"
#include "core/base/threads.h"
#include "observe/metrics/otlp_json.h"

#include <pthread.h>
#include <stdlib.h>

enum { LOG_EACH_S = 60 };

#define MS UINT64_C(1000000)

struct trace_queue {
    struct trace_queue *next;
    struct exporter *exporter; /* shares */
    unsigned refs;             /* sinks */
    pthread_t thread;
    pthread_cond_t changed; /* monotonic */
    struct trace_span *first, **last;
    size_t n;
    uint64_t send_ns;  /* when the first span has waited long enough */
    uint64_t asked;    /* number of the last request to send at once */
    uint64_t until_ns; /* of the last request */
    uint64_t done;     /* number of the last request that has ended */
    bool stop;

    /* Of the thread. Spans of the batch are changed with the lock held only. */
    struct trace_span *batch; /* being sent, or to be sent again */
    bool reads;               /* the batch, without the lock */
    char *body;               /* of the batch; owns */
    size_t body_len;
    uint64_t retry_ns, retry_ms; /* of the batch */
    uint64_t logged_ns;
};

/* Guards all queues, and the places of all sinks in them. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct trace_queue *queues;

/* In the child of a fork no thread sends, and no worker of the parent is used. */
static void queues_forked(void)
{
    pthread_mutex_init(&lock, NULL);
    queues = NULL;
}

static void queues_watch_forks(void)
{
    pthread_atfork(NULL, NULL, queues_forked);
}

/* ---- adding ------------------------------------------------------------------ */

/* The span was sent, or is lost. With the lock held. */
static void span_end(struct trace_span *s, bool sent)
{
    if (s->sink)
        atomic_fetch_add_explicit(sent ? &s->sink->sent : &s->sink->dropped, 1,
                                  memory_order_relaxed);
    free(s);
}

static void queue_append(struct trace_queue *q, struct trace_span *s)
{
    s->next = NULL;
    *q->last = s;
    q->last = &s->next;
    q->n++;
    if (q->n == 1)
        q->send_ns = clock_deadline_ms(TRACE_PERIOD_MS);
    if (q->n == 1 || q->n == TRACE_BATCH_MAX)
        pthread_cond_broadcast(&q->changed);
}

void trace_queue_add(struct trace_sink *sink, struct trace_span *s)
{
    struct trace_export *t = (struct trace_export *)(void *)sink;

    pthread_mutex_lock(&lock);
    if (t->queue && t->queue->n < TRACE_QUEUE_MAX)
        queue_append(t->queue, s);
    else
        span_end(s, false);
    pthread_mutex_unlock(&lock);
}

/* ---- sending ------------------------------------------------------------------ */

static void batch_take(struct trace_queue *q)
{
    struct trace_span **end = &q->first;
    size_t n = 0;

    for (; *end && n < TRACE_BATCH_MAX; n++)
        end = &(*end)->next;
    q->batch = q->first;
    q->first = *end;
    *end = NULL;
    q->n -= n;
    if (!q->first)
        q->last = &q->first;
    q->retry_ns = 0;
    q->retry_ms = TRACE_PERIOD_MS;
}

static void batch_end(struct trace_queue *q, bool sent)
{
    struct trace_span *s;

    while ((s = q->batch)) {
        q->batch = s->next;
        span_end(s, sent);
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

static void batch_failed(struct trace_queue *q, const tenrec_error *why)
{
    const uint64_t now = clock_now_ns();
    const bool final = is_final(why->code);

    if (q->logged_ns == 0 || now - q->logged_ns > (uint64_t)LOG_EACH_S * 1000 * MS) {
        log_line(TENREC_LOG_WARN, "traces", "spans were not accepted, and are %s: %s",
                 final ? "dropped" : "kept for another try", why->text);
        q->logged_ns = now;
    }
    if (final) {
        batch_end(q, false);
        return;
    }
    q->retry_ns = now + q->retry_ms * MS;
    q->retry_ms = q->retry_ms * 2 < TRACE_RETRY_MAX_MS ? q->retry_ms * 2 : TRACE_RETRY_MAX_MS;
}

/* Returns false if the batch stays. The lock is released meanwhile. */
static bool batch_send(struct trace_queue *q, uint32_t timeout_ms)
{
    tenrec_error why;
    tenrec_status st = TENREC_OK;

    if (!q->body) {
        q->reads = true;
        pthread_mutex_unlock(&lock);
        q->body = otlp_json(q->batch, &q->body_len);
        pthread_mutex_lock(&lock);
        q->reads = false;
        pthread_cond_broadcast(&q->changed);
    }
    if (!q->body) {
        batch_end(q, false);
        return true;
    }
    pthread_mutex_unlock(&lock);
    st = exporter_post(q->exporter, q->body, q->body_len, timeout_ms, &why);
    pthread_mutex_lock(&lock);
    if (st == TENREC_OK)
        batch_end(q, true);
    else
        batch_failed(q, &why);
    return !q->batch;
}

/* Sends all, or until one batch stays. A sink that leaves may come during a post. */
static void queue_send(struct trace_queue *q)
{
    int left_ms;

    while (!q->stop && (q->batch || q->first)) {
        if (!q->batch)
            batch_take(q);
        left_ms = TRACE_POST_MS;
        if (q->asked != q->done && clock_left_ms(q->until_ns) < left_ms)
            left_ms = clock_left_ms(q->until_ns);
        if (left_ms == 0 || !batch_send(q, (uint32_t)left_ms))
            return;
    }
}

static uint64_t queue_next_ns(const struct trace_queue *q)
{
    if (q->batch)
        return q->retry_ns;
    if (q->n >= TRACE_BATCH_MAX)
        return 0;
    return q->n > 0 ? q->send_ns : CLOCK_NEVER;
}

static void *queue_run(void *arg)
{
    struct trace_queue *q = arg;
    uint64_t ticket, next;

    pthread_mutex_lock(&lock);
    while (!q->stop) {
        next = queue_next_ns(q);
        if (q->asked == q->done && !clock_passed(next)) {
            clock_cond_wait(&q->changed, &lock, next);
            continue;
        }
        ticket = q->asked;
        queue_send(q);
        q->done = ticket;
        pthread_cond_broadcast(&q->changed);
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

/* ---- joining and leaving --------------------------------------------------------- */

static void queue_free(struct trace_queue *q)
{
    batch_end(q, false);
    exporter_close(q->exporter);
    pthread_cond_destroy(&q->changed);
    free(q);
}

/* With the lock held. */
static tenrec_status queue_new(struct exporter *e, struct trace_queue **ret, tenrec_error *err)
{
    struct trace_queue *q = memory_new(1, sizeof *q);
    int r;

    if (!q)
        return memory_fail(err);
    q->exporter = e;
    q->last = &q->first;
    clock_cond_init(&q->changed);
    r = threads_start(&q->thread, "traces", queue_run, q);
    if (r != 0) {
        pthread_cond_destroy(&q->changed);
        free(q);
        return tenrec_fail_errno(err, TENREC_EOS, r, "cannot start a thread for spans");
    }
    q->next = queues;
    queues = q;
    *ret = q;
    return TENREC_OK;
}

tenrec_status trace_queue_join(struct trace_export *t, struct exporter *e, tenrec_error *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct trace_queue *q;
    struct exporter *spare = e;
    tenrec_status st = TENREC_OK;

    pthread_once(&once, queues_watch_forks);
    pthread_mutex_lock(&lock);
    for (q = queues; q && q->exporter != e; q = q->next)
        ;
    if (!q && (st = queue_new(e, &q, err)) == TENREC_OK)
        spare = NULL;
    if (st == TENREC_OK) {
        q->refs++;
        t->queue = q;
    }
    pthread_mutex_unlock(&lock);
    exporter_close(spare); /* the queue has a share already, or there is none */
    return st;
}

/* Takes the sink out of all spans that are left. */
static void queue_forget(struct trace_queue *q, const struct trace_sink *sink)
{
    struct trace_span **at = &q->first, *s;

    while ((s = *at)) {
        if (s->sink == sink) {
            *at = s->next;
            q->n--;
            span_end(s, false);
        } else {
            at = &s->next;
        }
    }
    q->last = at;
    for (s = q->batch; s; s = s->next)
        if (s->sink == sink)
            s->sink = NULL;
}

void trace_queue_leave(struct trace_export *t)
{
    const uint64_t until_ns = clock_deadline_ms(TRACE_POST_MS);
    struct trace_queue *q, **at;
    uint64_t ticket;
    bool last;

    pthread_mutex_lock(&lock);
    q = t->queue;
    t->queue = NULL; /* calls that still end have no spans */
    if (!q) {
        pthread_mutex_unlock(&lock);
        return;
    }
    ticket = ++q->asked;
    q->until_ns = until_ns;
    pthread_cond_broadcast(&q->changed);
    while (q->done < ticket && clock_cond_wait(&q->changed, &lock, until_ns))
        ;
    while (q->reads)
        pthread_cond_wait(&q->changed, &lock);
    queue_forget(q, &t->sink);
    last = --q->refs == 0;
    if (last) {
        for (at = &queues; *at != q; at = &(*at)->next)
            ;
        *at = q->next;
        q->stop = true;
        pthread_cond_broadcast(&q->changed);
    }
    pthread_mutex_unlock(&lock);
    if (!last)
        return;
    pthread_join(q->thread, NULL); /* its last post ends at until_ns */
    queue_free(q);
}
