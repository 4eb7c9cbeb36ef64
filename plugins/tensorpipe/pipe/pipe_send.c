/* SPDX-License-Identifier: Apache-2.0 */
/* pipe_send.c - messages on their way out.
 *
 * A small message is copied between its frames and written by the thread that
 * sends it, with one system call. While a thread delivers, what it sends on
 * the pipe that it reads gathers in a bundle of its own, which no lock guards;
 * what it sends elsewhere gathers in that pipe's queue. */
#include "pipe/pipe_send.h"
#include "cuda/link/link.h"
#include "pipe/pipe.h"
#include "wire/plain.h"

#include <errno.h>
#include <stdlib.h>

#define COPY_MAX 3500 /* payloads up to this are copied between their frames */
/* Charged bytes that a pipe which is not read gathers before it writes: of about as many
 * messages as fit in 3000 bytes. */
#define QUEUE_MAX                                                                                  \
    (3000 + sizeof(struct send_request) + SEND_REQUEST_DONES * sizeof(struct tenrec_done))
#define OWN_MESSAGES 0x180 /* to 0x1ff: types that only Tenrec workers understand */
#define OWN_MESSAGES_END 0x1ff
#define MESSAGE_HELD 1024 /* bytes of a message beside its payload */
#define EARLY_MIN 3000    /* bytes from which on a batch may write before its end */

/* ---- batches ---- */

_Thread_local struct batch *batch_now;

static void bundle_clear(struct bundle *b)
{
    b->len = b->n_done = b->n_messages = 0;
}

void batch_begin(struct batch *b, struct pipe *reading)
{
    b->outer = batch_now;
    b->reading = reading;
    b->n = 0;
    b->asked = 0;
    b->bundle.len = b->bundle.n_done = b->bundle.n_messages = 0;
    batch_now = b;
}

/* Writes what was gathered for the pipe that is read. A completion of the bundle may send on the
 * same pipe, also while the batch goes on: such a message may not join the bundle that is being
 * completed, so the batch gathers for no pipe during that time. */
static void write_own(struct batch *b)
{
    struct pipe *p = b->reading;

    if (!p)
        return;
    if (b->asked) {
        atomic_fetch_add(&p->queue.asked, b->asked);
        b->asked = 0;
    }
    if (!b->bundle.len)
        return;
    b->reading = NULL;
    pipe_write_bundle(p, &b->bundle);
    bundle_clear(&b->bundle);
    b->reading = p;
    atomic_store_explicit(&p->queue.gathers, false, memory_order_release);
}

static void batch_flush(struct batch *b)
{
    write_own(b);
    for (unsigned i = 0; i < b->n; i++) {
        pipe_flush(b->dirty[i]);
        pipe_unref(b->dirty[i]);
    }
    b->n = 0;
}

void batch_end(struct batch *b)
{
    batch_now = b->outer;
    if (b->bundle.len || b->asked || b->n)
        batch_flush(b);
}

void batch_flush_all(void)
{
    for (struct batch *b = batch_now; b; b = b->outer)
        batch_flush(b);
}

/* Returns false without a batch, or if it has no room for another pipe. */
static bool batch_add(struct pipe *p)
{
    struct batch *b = batch_now;

    if (!b)
        return false;
    for (unsigned i = 0; i < b->n; i++)
        if (b->dirty[i] == p)
            return true;
    if (b->n == sizeof b->dirty / sizeof b->dirty[0])
        return false;
    pipe_ref(p);
    b->dirty[b->n++] = p;
    return true;
}

/* ---- one message ---- */

/* The memory of a queued message, with a handle and a descriptor for each tensor. */
static uint64_t charge_of(const struct tenrec_msg *msg)
{
    uint64_t n = msg->payload_len + MESSAGE_HELD;

    for (uint32_t i = 0; i < msg->n_tensors; i++) {
        const struct tenrec_tensor_desc *t = tenrec_msg_tensor(msg, i);

        n += (t->same_storage ? 0 : t->bytes) + 2 * sizeof *t;
    }
    return n;
}

/* Tensor `i` says that it has the storage of an earlier one: true or EINVAL. Where the
 * peer could not read that the storage is sent again: torch takes the dtype of the first
 * tensor for all, and for memory of devices there is no such form. */
static tenrec_status check_sharing(const struct pipe *p, const struct tenrec_msg *msg, uint32_t i,
                                   tenrec_error *err)
{
    struct tenrec_tensor_desc *t = tenrec_msg_tensor(msg, i);
    const struct tenrec_tensor_desc *first = NULL;

    if (t->same_storage <= i)
        first = tenrec_msg_tensor(msg, (uint32_t)t->same_storage - 1);
    if (!first || first->same_storage || first->data != t->data || first->bytes != t->bytes)
        return tenrec_fail(err, TENREC_EINVAL,
                           "tensor %u: same_storage is %llu, which names no earlier tensor with "
                           "this storage",
                           i, (unsigned long long)t->same_storage);
    if ((p->terms.capabilities && !(p->terms.capabilities & IDENTITY_SHARED_STORAGES)) ||
        link_concerns(msg) ||
        (!p->terms.capabilities && memcmp(&first->dtype, &t->dtype, sizeof t->dtype) != 0))
        t->same_storage = 0;
    return TENREC_OK;
}

static tenrec_status message_check(const struct pipe *p, const struct tenrec_msg *msg,
                                   tenrec_error *err)
{
    if (msg->type >= OWN_MESSAGES && msg->type <= OWN_MESSAGES_END &&
        !(p->terms.capabilities & IDENTITY_OWN_MESSAGES))
        return tenrec_fail(err, TENREC_EUNSUPPORTED,
                           "message type 0x%x is understood by Tenrec workers only", msg->type);
    for (uint32_t i = 0; i < msg->n_tensors; i++) {
        struct tenrec_tensor_desc *t = tenrec_msg_tensor(msg, i);

        bool on_device;

        if (t->target.kind == 0)
            t->target = (struct tenrec_device){ TENREC_CPU, 0 };
        if (t->same_storage && check_sharing(p, msg, i, err))
            return TENREC_EINVAL;
        on_device = t->device.kind != TENREC_CPU || t->target.kind != TENREC_CPU;
        if (on_device ? !p->devices.role : !p->terms.channel)
            return tenrec_fail(err, TENREC_EUNSUPPORTED,
                               "tensor %u: no channel to this peer carries it from %s to %s "
                               "memory%s",
                               i, t->device.kind == TENREC_CPU ? "host" : "device",
                               t->target.kind == TENREC_CPU ? "host" : "device",
                               on_device ? ": both must be Tenrec workers whose option `channels` "
                                           "lists cuda_basic, and one must have devices"
                                         : "");
    }
    return TENREC_OK;
}

static inline void bundle_add(struct bundle *b, const struct tenrec_msg *msg,
                              struct tenrec_done done)
{
    b->len += plain_write(b->buf + b->len, msg->type, msg->id, msg->payload, msg->payload_len);
    b->n_messages++;
    if (done.fn)
        b->done[b->n_done++] = done;
}

static bool has_room(const struct pipe *p, const struct tenrec_msg *msg, uint64_t charge)
{
    uint64_t queued = atomic_load_explicit(&p->queue.bytes, memory_order_relaxed);

    /* Answers are bounded by the requests that are let in: pipe_read stops
     * reading those while the answers pile up. */
    return !p->outgoing || (msg->flags & TENREC_MSG_CONTROL) || queued == 0 ||
           queued + charge <= p->ep->options->max_queued_bytes;
}

/* Under the lock. */
static tenrec_status await_room(struct pipe *p, const struct tenrec_msg *msg, uint64_t charge,
                                tenrec_error *err)
{
    struct timespec until = { (time_t)(msg->deadline_ns / 1000000000u),
                              (long)(msg->deadline_ns % 1000000000u) };
    int e = 0;

    if (!has_room(p, msg, charge) &&
        (!(msg->flags & TENREC_MSG_MAY_WAIT) || batch_now || reactor_mine == &p->ep->reactor))
        return tenrec_fail(err, TENREC_EAGAIN,
                           "%llu bytes to worker \"%s\" are queued; max_queued_bytes is %llu",
                           (unsigned long long)atomic_load(&p->queue.bytes), p->to->name,
                           (unsigned long long)p->ep->options->max_queued_bytes);
    p->queue.n_waiting++;
    while (!e && pipe_state(p) != PIPE_BROKEN && !has_room(p, msg, charge))
        e = msg->deadline_ns ? pthread_cond_timedwait(&p->queue.room, &p->lock, &until)
                             : pthread_cond_wait(&p->queue.room, &p->lock);
    p->queue.n_waiting--;
    if (pipe_state(p) == PIPE_BROKEN) {
        *err = p->why;
        return p->why.code;
    }
    if (e)
        return tenrec_fail(err, TENREC_ETIMEDOUT,
                           "no room in the queue to worker \"%s\" before the deadline",
                           p->to->name);
    return pipe_budget_has(p, charge, err);
}

/* Under the lock: all of the message, whose tensors the peer maps, is in `now`, and the
 * connection is ours to write it. No record of another may be made in between: they
 * arrive in the order in which they were made. */
static bool encode_now(struct pipe *p, const struct tenrec_msg *msg,
                       const struct descriptor_note *notes, struct tenrec_done done,
                       struct bundle *now)
{
    if (!now || msg->payload_len > COPY_MAX || msg->n_tensors > SEND_REQUEST_FEW ||
        !pipe_take_writing(p))
        return false;
    now->len = send_request_encode_small(p, msg, notes, now->buf);
    if (!now->len) {
        pipe_give_writing(p);
        return false;
    }
    now->n_messages = 1;
    if (done.fn)
        now->done[now->n_done++] = done;
    return true;
}

static tenrec_status enqueue_encoded(struct pipe *p, struct tenrec_msg *msg,
                                     struct descriptor_note *notes, struct tenrec_done done,
                                     uint64_t charge, struct bundle *now, tenrec_error *err)
{
    const bool all = send_request_share(p, msg, notes);
    struct send_request *o;
    tenrec_status st;

    if (all && msg->n_tensors && encode_now(p, msg, notes, done, now))
        return TENREC_OK;
    st = send_request_encode(p, msg, notes, &o, err);
    if (st) {
        send_request_take_back(p, msg, notes);
        return st;
    }
    counter_add(&p->queue.n_queued, 1);
    o->charge = charge + send_request_overhead(o) + o->cap;
    pipe_queued_add(p, o->charge);
    send_request_add_done(p, o, done);
    pipe_enqueue(p, o);
    return TENREC_OK;
}

tenrec_status pipe_enqueue_message(struct pipe *p, struct tenrec_msg *msg, struct tenrec_done done,
                                   uint64_t charge, struct bundle *now, tenrec_error *err)
{
    struct descriptor_note few[SEND_REQUEST_FEW], *notes = few;
    tenrec_status st = message_check(p, msg, err);

    if (!st)
        st = send_request_check(p, msg, err);
    if (st)
        return st;
    if (msg->n_tensors > SEND_REQUEST_FEW)
        notes = malloc(msg->n_tensors * sizeof *notes);
    if (!notes)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for %u tensors", msg->n_tensors);
    st = enqueue_encoded(p, msg, notes, done, charge, now, err);
    if (notes != few)
        free(notes);
    return st;
}

/* Under the lock: before the handshake is over, or for the link. */
static tenrec_status enqueue_pending(struct pipe *p, struct send_request_list *list,
                                     struct tenrec_msg *msg, struct tenrec_done done,
                                     uint64_t charge, tenrec_error *err)
{
    struct send_request *o = send_request_new(p, 0);

    if (!o)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for a message");
    o->msg = msg;
    o->charge = charge + send_request_overhead(o) + o->cap;
    pipe_queued_add(p, o->charge);
    send_request_add_done(p, o, done);
    send_request_list_add(list, o);
    return TENREC_OK;
}

void pipe_refuse(struct tenrec_msg *msg, struct tenrec_done done, const tenrec_error *err)
{
    if (done.fn)
        done.fn(done.arg, err);
    msg->release(msg);
}

/* Half of the requests under way are in it: the peer works on these while we
 * make the other half. */
static bool is_half(const struct batch *b)
{
    struct pipe *p = b->reading;

    return p->outgoing && b->bundle.len >= EARLY_MIN &&
           2 * (int64_t)b->bundle.n_messages >= pipe_unanswered(p) + b->asked;
}

/* Makes room for another message in the batch that gathers for `p`. */
static void batch_reserve(struct batch *b, struct pipe *p, size_t need)
{
    if (b->bundle.len &&
        (b->bundle.len + need > BUNDLE_CAP || b->bundle.n_done == SEND_REQUEST_DONES || is_half(b)))
        write_own(b);
    if (!b->bundle.len)
        atomic_store_explicit(&p->queue.gathers, true, memory_order_release);
}

/* On a pipe that this thread is not delivering from. */
static void send_one(struct pipe *p, const struct tenrec_msg *msg, struct tenrec_done done)
{
    struct bundle one;

    one.len = one.n_done = one.n_messages = 0;
    bundle_add(&one, msg, done);
    if (batch_now && atomic_load_explicit(&p->queue.bytes, memory_order_relaxed) < QUEUE_MAX &&
        batch_add(p))
        pipe_queue_bundle(p, &one);
    else
        pipe_write_bundle(p, &one);
}

static void note_request(struct pipe *p, const struct tenrec_msg *msg)
{
    atomic_fetch_add(&p->queue.asked, 1);
    if (!(msg->flags & TENREC_MSG_MAY_WAIT)) /* else its sender polls */
        role_request_sent(p);
}

/* No other request has arrived that the same system call could answer: the rest of the work for
 * this one is done while its answer travels. */
static bool is_last_answer(const struct pipe *p)
{
    return !p->outgoing && !conn_buffered(p->conns.of[CONN_DESCRIPTOR]);
}

bool pipe_is_for_link(const struct pipe *p, const struct tenrec_msg *msg)
{
    return p->devices.role && msg->n_tensors && link_concerns(msg);
}

/* Under the lock. */
static tenrec_status enqueue_any(struct pipe *p, struct tenrec_msg *msg, struct tenrec_done done,
                                 uint64_t charge, struct bundle *now, tenrec_error *err)
{
    tenrec_status st;

    if (pipe_state(p) != PIPE_ESTABLISHED)
        return enqueue_pending(p, &p->queue.pending, msg, done, charge, err);
    if (!pipe_is_for_link(p, msg))
        return pipe_enqueue_message(p, msg, done, charge, now, err);
    st = enqueue_pending(p, &p->devices.sends, msg, done, charge, err);
    if (!st)
        pipe_post(p, &p->devices.task);
    return st;
}

/* Not inline: its stack frame must not separate the variables of the path of small messages. */
__attribute__((noinline)) static void send_any(struct pipe *p, struct tenrec_msg *msg,
                                               struct tenrec_done done, bool asks)
{
    const uint64_t charge = charge_of(msg);
    const bool expires = p->outgoing && msg->deadline_ns;
    struct bundle now;
    tenrec_error err;
    tenrec_status st;

    if (batch_now && batch_now->reading == p)
        write_own(batch_now); /* keeps the order */
    if (asks)
        note_request(p, msg);
    bundle_clear(&now);
    pthread_mutex_lock(&p->lock);
    st = await_room(p, msg, charge, &err);
    if (!st)
        st = enqueue_any(p, msg, done, charge, &now, &err);
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

/* Small messages on an established pipe go without its lock. */
void pipe_send(struct pipe *p, struct tenrec_msg *msg, struct tenrec_done done)
{
    const bool asks = p->outgoing && message_wants_answer(msg);
    const size_t need = (size_t)msg->payload_len + PLAIN_FRAMES_MAX;
    struct batch *b = batch_now;
    tenrec_error err;

    if (msg->n_tensors > 0 || msg->payload_len > COPY_MAX || pipe_state(p) != PIPE_ESTABLISHED ||
        !has_room(p, msg, need)) {
        send_any(p, msg, done, asks);
        return;
    }
    if (msg->type >= OWN_MESSAGES && message_check(p, msg, &err)) {
        pipe_refuse(msg, done, &err);
        return;
    }
    if (b && b->reading == p) {
        batch_reserve(b, p, need);
        b->asked += asks;
        bundle_add(&b->bundle, msg, done);
        if (is_last_answer(p))
            write_own(b);
    } else {
        if (asks)
            note_request(p, msg);
        send_one(p, msg, done);
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
