/* SPDX-License-Identifier: Apache-2.0 */
/* pipe_queue.c - messages that wait for the connections of a pipe, or for its peer.
 *
 * A message has a segment for each connection that it uses. What the peer
 * fetches by itself waits beside the queues until the peer says that it has it. */
#include "pipe/pipe.h"

static void queue_append(struct pipe *p, struct conn *c, struct segment *s)
{
    s->next = NULL;
    s->offered = false;
    if (c->first) {
        send_request_close(p, c->last->request);
        c->last->next = s;
    } else {
        c->first = s;
    }
    c->last = s;
    atomic_store(&c->waiting, true);
}

static void queue_await(struct pipe *p, struct segment *s)
{
    s->number = p->queue.n_awaited++;
    s->next_awaited = NULL;
    if (p->queue.awaited)
        p->queue.last_awaited->next_awaited = s;
    else
        p->queue.awaited = s;
    p->queue.last_awaited = s;
}

void pipe_charge_message(struct pipe *p, struct send_request *request, uint64_t charge)
{
    request->large = request->msg && request->msg->n_tensors && charge >= LARGE_MIN;
    request->charge = charge + send_request_overhead(request) + request->cap;
    pipe_queued_add(p, request->charge);
    if (request->large) {
        counter_bump(&p->queue.large, request->charge);
        p->queue.n_large++;
    }
}

void pipe_uncharge_message(struct pipe *p, struct send_request *request)
{
    pipe_queued_add(p, -request->charge);
    if (request->large) {
        counter_bump(&p->queue.large, -request->charge);
        p->queue.n_large--;
    }
}

bool pipe_queue_has_room(const struct pipe *p, bool large, uint64_t charge)
{
    const struct pipe_queue *q = &p->queue;
    const uint64_t queued = atomic_load_explicit(&q->bytes, memory_order_relaxed);
    const uint64_t tensors = atomic_load_explicit(&q->large, memory_order_relaxed);
    const uint64_t beside = large || tensors > queued ? queued : queued - tensors;

    return beside == 0 || (large && !q->n_large) ||
           beside + charge <= p->ep->options->max_queued_bytes;
}

/* One large message may be longer than the limit. */
static bool queue_is_beyond(const struct pipe *p, uint64_t limit)
{
    const struct pipe_queue *q = &p->queue;
    const uint64_t large = atomic_load(&q->large);

    return atomic_load(&q->bytes) - large > limit || (large > limit && q->n_large > 1);
}

bool pipe_queue_is_full(const struct pipe *p)
{
    return queue_is_beyond(p, p->ep->options->max_queued_bytes);
}

bool pipe_queue_is_low(const struct pipe *p)
{
    return !queue_is_beyond(p, p->ep->options->max_queued_bytes / 2);
}

void pipe_enqueue(struct pipe *p, struct send_request *request)
{
    queue_append(p, p->conns.of[CONN_DESCRIPTOR], &request->frames);
    for (uint32_t i = 0; i < request->n_tensors; i++) {
        if (request->tensors[i].n)
            queue_append(p, p->conns.of[request->tensors[i].on], &request->tensors[i]);
        if (request->tensors[i].awaited)
            queue_await(p, &request->tensors[i]);
    }
}

bool pipe_enqueue_object(struct pipe *p, enum conn_role role, const void *object, size_t len)
{
    struct send_request *request = send_request_new(p, FRAME_HEAD + len);

    if (!request)
        return false;
    conn_put_frame(request->buf, object, len);
    request->frames.iov[0].iov_len = FRAME_HEAD + len;
    request->charge = send_request_overhead(request) + request->cap;
    pipe_queued_add(p, request->charge);
    queue_append(p, p->conns.of[role], &request->frames);
    return true;
}

/* The request that small messages can join; NULL when there is none. */
static struct send_request *queue_open_request(struct pipe *p, const struct bundle *b)
{
    struct conn *c = p->conns.of[CONN_DESCRIPTOR];
    struct send_request *request = c->first ? c->last->request : NULL;

    if (request && request->open && request->cap - request->len >= b->len &&
        request->n_done + b->n_done <= request->cap_done)
        return request;
    return NULL;
}

/* Under the lock. */
static bool queue_bundle(struct pipe *p, const struct bundle *b)
{
    struct send_request *request = queue_open_request(p, b);

    if (!request) {
        request = send_request_new_open(p, b->len);
        if (!request)
            return false;
        queue_append(p, p->conns.of[CONN_DESCRIPTOR], &request->frames);
    }
    send_request_fill(p, request, b, 0);
    return true;
}

void pipe_queue_bundle(struct pipe *p, const struct bundle *b)
{
    tenrec_error err;
    bool queued;

    pthread_mutex_lock(&p->lock);
    queued = pipe_state(p) == PIPE_ESTABLISHED && queue_bundle(p, b);
    if (queued) {
        counter_add(&p->queue.n_queued, b->n_messages);
        pthread_mutex_unlock(&p->lock);
        pipe_bound(p);
        return;
    }
    if (pipe_state(p) == PIPE_BROKEN)
        err = p->why;
    else
        tenrec_fail(&err, TENREC_ENOMEM, "no memory for a message");
    pthread_mutex_unlock(&p->lock);
    bundle_tell(b, &err);
}

bool pipe_send_frame(struct pipe *p, enum conn_role role, const void *head, size_t head_len,
                     void *data, uint64_t len, struct tenrec_done done)
{
    struct send_request *request = NULL;

    pthread_mutex_lock(&p->lock);
    if (pipe_state(p) == PIPE_ESTABLISHED)
        request = send_request_new(p, FRAME_HEAD + head_len);
    if (!request) {
        pthread_mutex_unlock(&p->lock);
        return false;
    }
    put_le64(request->buf, head_len + len);
    memcpy(request->buf + FRAME_HEAD, head, head_len);
    request->frames.iov[0].iov_len = FRAME_HEAD + head_len;
    request->frames.iov[1] = (struct iovec){ data, (size_t)len };
    request->frames.n = 2;
    request->charge = send_request_overhead(request) + request->cap;
    pipe_queued_add(p, request->charge);
    send_request_add_done(p, request, done);
    queue_append(p, p->conns.of[role], &request->frames);
    pipe_flush_unlock(p);
    return true;
}

void pipe_part_done(struct pipe *p, struct send_request *request)
{
    struct told t;
    tenrec_error why;
    bool broken;

    told_init(&t);
    pthread_mutex_lock(&p->lock);
    broken = pipe_state(p) == PIPE_BROKEN;
    why = p->why;
    if (--request->parts == 0)
        send_request_retire(p, request, &t);
    pthread_mutex_unlock(&p->lock);
    told_tell(p, &t, broken ? &why : NULL);
}

/* Under the lock: no longer awaited; NULL: it was not. */
static struct segment *queue_take_awaited(struct pipe *p, uint64_t number)
{
    struct segment **at = &p->queue.awaited, *s, *before = NULL;

    while (*at && (*at)->number != number) {
        before = *at;
        at = &before->next_awaited;
    }
    s = *at;
    if (!s)
        return NULL;
    *at = s->next_awaited;
    if (p->queue.last_awaited == s)
        p->queue.last_awaited = before;
    return s;
}

bool pipe_tensors_taken(struct pipe *p, uint64_t number, uint64_t n)
{
    struct told t;
    struct segment *s;

    told_init(&t);
    pthread_mutex_lock(&p->lock);
    do {
        s = queue_take_awaited(p, number++);
        if (s)
            segment_written(p, s, &t);
    } while (s && --n > 0);
    pthread_mutex_unlock(&p->lock);
    told_tell(p, &t, NULL);
    return s != NULL;
}

bool pipe_tensor_refused(struct pipe *p, uint64_t number)
{
    struct segment *s;

    pthread_mutex_lock(&p->lock);
    p->tensors.pulls = false;
    s = queue_take_awaited(p, number);
    if (s) {
        put_le64((unsigned char *)s->iov[0].iov_base + s->iov[0].iov_len - 8, number);
        s->n = 2;
        queue_append(p, p->conns.of[s->on], s);
    }
    pipe_flush_unlock(p);
    return s != NULL;
}

/* None of them will be sent. */
static void queue_retire_list(struct pipe *p, struct send_request_list *l, struct told *t)
{
    while (l->first) {
        struct send_request *request = l->first;

        l->first = request->next;
        send_request_retire(p, request, t);
    }
    l->last = &l->first;
}

void pipe_fail_queue(struct pipe *p)
{
    struct told dead;
    tenrec_error why;

    told_init(&dead);
    pthread_mutex_lock(&p->lock);
    pthread_cond_broadcast(&p->queue.room);
    for (unsigned i = 0; i < p->conns.n; i++) {
        if (p->conns.of[i] && atomic_load(&p->conns.of[i]->writing)) {
            /* The kernel still reads those messages: the writer gets here later. */
            pthread_mutex_unlock(&p->lock);
            return;
        }
    }
    for (unsigned i = 0; i < p->conns.n; i++) {
        struct conn *c = p->conns.of[i];

        while (c && c->first) {
            struct segment *s = c->first;

            c->first = s->next;
            segment_written(p, s, &dead);
        }
        if (c)
            atomic_store(&c->waiting, false);
    }
    while (p->queue.awaited)
        segment_written(p, queue_take_awaited(p, p->queue.awaited->number), &dead);
    queue_retire_list(p, &p->queue.pending, &dead);
    queue_retire_list(p, &p->devices.sends, &dead);
    why = p->why;
    pthread_mutex_unlock(&p->lock);
    told_tell(p, &dead, &why);
}
