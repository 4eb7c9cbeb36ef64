/* SPDX-License-Identifier: Apache-2.0 */
/* pipe_send.c - messages on their way out.
 *
 * A small message is copied between its frames and written by the thread that sends it, with one
 * system call. Messages with tensors, large messages, and messages for a full connection are
 * queued. */
#include "pipe/pipe_send.h"
#include "pipe/pipe.h"
#include "wire/brief.h"

/* Charged bytes that a pipe which is not read gathers before it writes: of about as many
 * messages as fit in 3000 bytes. */
#define QUEUE_MAX                                                                                  \
    (3000 + sizeof(struct send_request) + SEND_REQUEST_DONES * sizeof(struct tenrec_done))
#define EARLY_MIN 3000 /* bytes from which on a batch may write before its end */

_Static_assert(COPY_MAX <= BRIEF_BODY_MAX, "all small messages have a brief form");

static inline void bundle_add(struct bundle *b, const struct pipe *p, const struct tenrec_msg *msg,
                              struct tenrec_done done)
{
    unsigned char *to = b->buf + b->len;

    if (p->terms.capabilities & IDENTITY_BRIEF_MESSAGES)
        b->len += brief_write(to, msg->type, msg->id, msg->payload, (size_t)msg->payload_len);
    else
        b->len += plain_write(to, msg->type, msg->id, msg->payload, msg->payload_len);
    b->n_messages++;
    if (done.fn)
        b->done[b->n_done++] = done;
}

static bool queue_has_room(const struct pipe *p, const struct tenrec_msg *msg, uint64_t charge)
{
    /* Answers are bounded by the requests that are let in: pipe_read stops
     * reading those while the answers pile up. */
    return !p->outgoing || (msg->flags & TENREC_MSG_CONTROL) ||
           pipe_queue_has_room(p, msg->n_tensors && charge >= LARGE_MIN, charge);
}

/* Under the lock. */
static tenrec_status queue_await_room(struct pipe *p, const struct tenrec_msg *msg, uint64_t charge,
                                      tenrec_error *err)
{
    const uint64_t until_ns = msg->deadline_ns ? msg->deadline_ns : CLOCK_NEVER;
    bool in_time = true;

    if (!queue_has_room(p, msg, charge) &&
        (!(msg->flags & TENREC_MSG_MAY_WAIT) || batch_now || reactor_mine == &p->ep->reactor))
        return tenrec_fail(err, TENREC_EAGAIN,
                           "%llu bytes to worker \"%s\" are queued; max_queued_bytes is %llu",
                           (unsigned long long)atomic_load(&p->queue.bytes), p->to->name,
                           (unsigned long long)p->ep->options->max_queued_bytes);
    p->queue.n_waiting++;
    while (in_time && pipe_state(p) != PIPE_BROKEN && !queue_has_room(p, msg, charge))
        in_time = clock_cond_wait(&p->queue.room, &p->lock, until_ns);
    p->queue.n_waiting--;
    if (pipe_state(p) == PIPE_BROKEN) {
        *err = p->why;
        return p->why.code;
    }
    if (!in_time)
        return tenrec_fail(err, TENREC_ETIMEDOUT,
                           "no room in the queue to worker \"%s\" before the deadline",
                           p->to->name);
    return pipe_budget_has(p, charge, err);
}

/* Half of the requests under way are in it: the peer works on these while we
 * make the other half. */
static bool batch_is_half(const struct batch *b)
{
    struct pipe *p = b->reading;

    return p->outgoing && b->bundle.len >= EARLY_MIN &&
           2 * (int64_t)b->bundle.n_messages >= pipe_unanswered(p) + b->asked;
}

/* Makes room for another message in the batch that gathers for `p`. */
static void batch_reserve(struct batch *b, struct pipe *p, size_t need)
{
    if (b->bundle.len && (b->bundle.len + need > BUNDLE_CAP ||
                          b->bundle.n_done == SEND_REQUEST_DONES || batch_is_half(b)))
        batch_write_own(b);
    if (!b->bundle.len)
        atomic_store_explicit(&p->queue.gathers, true, memory_order_release);
}

/* On a pipe that this thread is not delivering from. */
static void send_small(struct pipe *p, const struct tenrec_msg *msg, struct tenrec_done done)
{
    struct bundle one;

    bundle_clear(&one);
    bundle_add(&one, p, msg, done);
    if (batch_now && atomic_load_explicit(&p->queue.bytes, memory_order_relaxed) < QUEUE_MAX &&
        batch_add(p))
        pipe_queue_bundle(p, &one);
    else
        pipe_write_bundle(p, &one);
}

static void pipe_note_request(struct pipe *p, const struct tenrec_msg *msg)
{
    atomic_fetch_add(&p->queue.asked, 1);
    if (!(msg->flags & (TENREC_MSG_MAY_WAIT | TENREC_MSG_POLLED))) /* else its sender polls */
        role_request_sent(p);
}

/* No other request has arrived that the same system call could answer: the rest of the work for
 * this one is done while its answer travels. */
static bool pipe_is_last_answer(const struct pipe *p)
{
    return !p->outgoing && !conn_buffered(p->conns.of[CONN_DESCRIPTOR]);
}

/* Not inline: its stack frame must not separate the variables of the path of small messages. */
__attribute__((noinline)) static void send_queued(struct pipe *p, struct tenrec_msg *msg,
                                                  struct tenrec_done done, bool asks)
{
    const uint64_t charge = send_request_cost(msg);
    const bool expires = p->outgoing && msg->deadline_ns;
    struct bundle now;
    tenrec_error err;
    tenrec_status st;

    if (batch_now && batch_now->reading == p)
        batch_write_own(batch_now); /* keeps the order */
    if (asks)
        pipe_note_request(p, msg);
    bundle_clear(&now);
    pthread_mutex_lock(&p->lock);
    st = queue_await_room(p, msg, charge, &err);
    if (!st)
        st = pipe_queue_message(p, msg, done, charge, &now, &err);
    if (now.len) {
        pthread_mutex_unlock(&p->lock);
        pipe_write_taken(p, &now);
        msg->release(msg);
        return;
    }
    if (st || pipe_state(p) != PIPE_ESTABLISHED ||
        (atomic_load_explicit(&p->queue.bytes, memory_order_relaxed) < QUEUE_MAX && batch_add(p)))
        pthread_mutex_unlock(&p->lock);
    else
        pipe_flush_unlock(p);
    pipe_bound(p);
    if (!st) {
        if (expires)
            pipe_expire_later(p);
        return;
    }
    if (asks)
        atomic_fetch_sub(&p->queue.asked, 1);
    /* The answer that takes its place may be refused likewise, and nothing takes that one's. */
    if (!p->outgoing && st == TENREC_EAGAIN && msg->type != TENREC_MSG_EXCEPTION)
        pipe_send_exception(p, msg, &err);
    pipe_refuse(msg, done, &err);
}

void pipe_refuse(struct tenrec_msg *msg, struct tenrec_done done, const tenrec_error *err)
{
    if (done.fn)
        done.fn(done.arg, err);
    msg->release(msg);
}

/* Small messages on an established pipe go without its lock. */
void pipe_send(struct pipe *p, struct tenrec_msg *msg, struct tenrec_done done)
{
    const bool asks = p->outgoing && message_wants_answer(msg);
    const size_t need = (size_t)msg->payload_len + PLAIN_FRAMES_MAX;
    struct batch *b = batch_now;
    tenrec_error err;

    if (msg->n_tensors > 0 || msg->payload_len > COPY_MAX || pipe_state(p) != PIPE_ESTABLISHED ||
        !queue_has_room(p, msg, need)) {
        send_queued(p, msg, done, asks);
        return;
    }
    if (message_is_own(msg) && message_keeps_order(msg->type) &&
        (p->terms.capabilities & IDENTITY_DEFERS)) {
        send_queued(p, msg, done, asks);
        return;
    }
    if (message_is_own(msg) && message_check(p, msg, &err)) {
        pipe_refuse(msg, done, &err);
        return;
    }
    if (b && b->reading == p) {
        batch_reserve(b, p, need);
        b->asked += asks;
        bundle_add(&b->bundle, p, msg, done);
        if (pipe_is_last_answer(p))
            batch_write_own(b);
    } else {
        if (asks)
            pipe_note_request(p, msg);
        send_small(p, msg, done);
    }
    msg->release(msg);
}

tenrec_status pipe_send_object(struct pipe *p, enum conn_role role, const void *object, size_t len)
{
    bool queued;

    pthread_mutex_lock(&p->lock);
    queued = pipe_state(p) == PIPE_ESTABLISHED && pipe_enqueue_object(p, role, object, len);
    pthread_mutex_unlock(&p->lock);
    pipe_bound(p);
    if (!queued)
        return TENREC_ENOMEM;
    if (!batch_add(p))
        pipe_flush(p);
    return TENREC_OK;
}
