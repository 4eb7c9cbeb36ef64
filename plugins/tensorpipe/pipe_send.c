/* pipe_send.c - messages on their way out.
 *
 * A message is encoded and written by the thread that sends it, with one
 * system call, when nothing is queued before it. What the socket does not take
 * stays queued until the loop thread hears that there is room again. One
 * thread at a time is in sendmsg for a connection (conn->writing), without the
 * lock: who comes meanwhile appends, and the writer goes on with that. */
#include "descriptor.h"
#include "pipe.h"
#include "tensorlist.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define COPY_MAX 4096  /* payloads up to this are copied between their frames */
#define WRITE_IOV 128  /* buffers in one system call */
#define BATCH_MAX 4000 /* queued bytes that a batch gathers before it writes */

/* Heads and bodies of type and id, and the head of the payload. */
#define FIXED_FRAMES (FRAME_HEAD + 4 + FRAME_HEAD + 8 + FRAME_HEAD)

/* ---- batches ---- */

static _Thread_local struct batch *batch_now;

void batch_begin(struct batch *b, struct pipe *reading)
{
    b->outer = batch_now;
    b->reading = reading;
    b->n = b->answered = 0;
    batch_now = b;
}

static void batch_flush(struct batch *b)
{
    for (unsigned i = 0; i < b->n; i++) {
        pipe_flush(b->dirty[i]);
        pipe_unref(b->dirty[i]);
    }
    b->n = 0;
}

void batch_end(struct batch *b)
{
    batch_now = b->outer;
    if (b->answered)
        atomic_fetch_sub(&b->reading->unanswered, b->answered);
    batch_flush(b);
}

void batch_answered(void)
{
    batch_now->answered++;
}

void batch_flush_all(void)
{
    for (struct batch *b = batch_now; b; b = b->outer)
        batch_flush(b);
}

bool batch_running(void)
{
    return batch_now != NULL;
}

struct pipe *batch_reading(void)
{
    return batch_now ? batch_now->reading : NULL;
}

/* False: there is no batch, or it has no room for another pipe. */
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

static void told_init(struct told *t)
{
    t->n_done = t->n_msg = 0;
    t->rest.first = NULL;
    t->rest.last = &t->rest.first;
}

static void list_add(struct out_list *l, struct out *o)
{
    o->next = NULL;
    *l->last = o;
    l->last = &o->next;
}

/* Under the lock, but for what malloc costs it is cheap. */
static struct out *out_new(struct pipe *p, size_t need)
{
    struct out *o;
    size_t cap = need > OUT_SMALL ? need : OUT_SMALL;

    if (need <= OUT_SMALL && p->spare) {
        o = p->spare;
        p->spare = o->next;
        p->n_spare--;
    } else {
        o = malloc(sizeof *o + cap);
        if (!o)
            return NULL;
        o->cap = cap;
    }
    o->next = NULL;
    o->msg = NULL;
    o->tensors = NULL;
    o->parts = 1;
    o->charge = 0;
    o->len = 0;
    o->open = false;
    o->n_done = 0;
    o->frames.out = o;
    o->frames.n = 1;
    o->frames.at = 0;
    o->frames.iov[0] = (struct iovec){ o->buf, 0 };
    return o;
}

static void out_free(struct pipe *p, struct out *o)
{
    free(o->tensors);
    if (o->cap == OUT_SMALL && p->n_spare < OUT_SPARES) {
        o->next = p->spare;
        p->spare = o;
        p->n_spare++;
    } else {
        free(o);
    }
}

static void queued_add(struct pipe *p, uint64_t n)
{
    atomic_store_explicit(&p->queued, atomic_load_explicit(&p->queued, memory_order_relaxed) + n,
                          memory_order_relaxed);
}

static uint64_t charge_of(const struct tenrec_msg *msg)
{
    uint64_t n = msg->payload_len + 256;

    for (uint32_t i = 0; i < msg->n_tensors; i++)
        n += tenrec_msg_tensor(msg, i)->bytes;
    return n;
}

static tenrec_status check(const struct pipe *p, const struct tenrec_msg *msg, tenrec_error *err)
{
    if (msg->type >= 0x180 && msg->type <= 0x1ff && !(p->capabilities & IDENTITY_OWN_MESSAGES))
        return tenrec_fail(err, TENREC_EUNSUPPORTED,
                           "message type 0x%x is understood by Tenrec workers only", msg->type);
    for (uint32_t i = 0; i < msg->n_tensors; i++) {
        struct tenrec_tensor_desc *t = tenrec_msg_tensor(msg, i);

        if (t->target.kind == 0)
            t->target = (struct tenrec_device){ TENREC_CPU, 0 };
        if (t->device.kind != TENREC_CPU || t->target.kind != TENREC_CPU || !p->has_channel)
            return tenrec_fail(err, TENREC_EUNSUPPORTED,
                               "tensor %u: no channel to this peer carries it from %s to %s memory",
                               i, t->device.kind == TENREC_CPU ? "host" : "device",
                               t->target.kind == TENREC_CPU ? "host" : "device");
    }
    return TENREC_OK;
}

static unsigned char *put_frame(unsigned char *at, const void *body, size_t len)
{
    put_le64(at, len);
    memcpy(at + FRAME_HEAD, body, len);
    return at + FRAME_HEAD + len;
}

static unsigned char *put_fixed_frames(unsigned char *at, const struct tenrec_msg *msg)
{
    unsigned char type[8], id[8];

    put_le64(type, (uint32_t)msg->type);
    put_le64(id, (uint64_t)msg->id);
    at = put_frame(at, type, 4);
    at = put_frame(at, id, 8);
    put_le64(at, msg->payload_len);
    return at + FRAME_HEAD;
}

/* The descriptor's frame. Returns its end; NULL when a device has no name. */
static unsigned char *put_descriptor(unsigned char *at, const struct tenrec_msg *msg,
                                     size_t list_len)
{
    const uint64_t len[DESCRIPTOR_AGENT_PAYLOADS] = { 4, 8, msg->payload_len, list_len };
    size_t n = descriptor_write(at + FRAME_HEAD, DESCRIPTOR_MAX(msg->n_tensors), len, msg->tensors,
                                msg->n_tensors, msg->tensor_size);

    put_le64(at, n);
    return n ? at + FRAME_HEAD + n : NULL;
}

static tenrec_status add_tensors(struct out *o, const struct tenrec_msg *msg, tenrec_error *err)
{
    o->tensors = calloc(msg->n_tensors, sizeof *o->tensors);
    if (!o->tensors)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for %u tensors", msg->n_tensors);
    for (uint32_t i = 0; i < msg->n_tensors; i++) {
        const struct tenrec_tensor_desc *t = tenrec_msg_tensor(msg, i);
        struct segment *s = &o->tensors[i];

        if (t->bytes == 0)
            continue; /* an empty tensor has no frame */
        s->out = o;
        put_le64(s->head, t->bytes);
        s->iov[0] = (struct iovec){ s->head, FRAME_HEAD };
        s->iov[1] = (struct iovec){ t->data, (size_t)t->bytes };
        s->n = 2;
        o->parts++;
    }
    return TENREC_OK;
}

static bool is_plain(const struct tenrec_msg *msg)
{
    return msg->n_tensors == 0 && msg->payload_len <= COPY_MAX;
}

static void add_done(struct pipe *p, struct out *o, struct tenrec_done done)
{
    if (!done.fn)
        return;
    atomic_fetch_add_explicit(&p->untold, 1, memory_order_relaxed);
    o->done[o->n_done++] = done;
}

/* Makes the frames around a payload that is not copied, and around tensors. */
static tenrec_status encode(struct pipe *p, struct tenrec_msg *msg, struct out **ret,
                            tenrec_error *err)
{
    size_t heads = FRAME_HEAD + DESCRIPTOR_MAX(msg->n_tensors) + FIXED_FRAMES;
    size_t list_len;
    unsigned char *at, *list;
    struct out *o;
    tenrec_status st;

    o = out_new(p, heads + FRAME_HEAD + TENSORLIST_MAX(msg->n_tensors));
    if (!o)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for a message");
    list = o->buf + heads;
    st = tensorlist_write(list + FRAME_HEAD, TENSORLIST_MAX(msg->n_tensors), msg->tensors,
                          msg->n_tensors, msg->tensor_size, p->capabilities & IDENTITY_ALL_DTYPES,
                          &list_len, err);
    if (!st && msg->n_tensors)
        st = add_tensors(o, msg, err);
    if (st)
        goto err_out;
    at = put_descriptor(o->buf, msg, list_len);
    if (!at) {
        st = tenrec_fail(err, TENREC_EUNSUPPORTED, "a tensor's device has no name on the wire");
        goto err_out;
    }
    at = put_fixed_frames(at, msg);
    put_le64(list, list_len);
    o->msg = msg;
    o->frames.iov[0] = (struct iovec){ o->buf, (size_t)(at - o->buf) };
    o->frames.iov[1] = (struct iovec){ msg->payload, (size_t)msg->payload_len };
    o->frames.iov[2] = (struct iovec){ list, FRAME_HEAD + list_len };
    o->frames.n = 3;
    *ret = o;
    return TENREC_OK;

err_out:
    out_free(p, o);
    return st;
}

/* ---- queues ---- */

static void append(struct conn *c, struct segment *s)
{
    s->next = NULL;
    if (c->first)
        c->last->next = s;
    else
        c->first = s;
    c->last = s;
}

static void enqueue(struct pipe *p, struct out *o)
{
    append(p->conn[CONN_DESCRIPTOR], &o->frames);
    if (!o->tensors)
        return;
    for (uint32_t i = 0; i < o->msg->n_tensors; i++)
        if (o->tensors[i].n)
            append(p->conn[CONN_CHANNEL], &o->tensors[i]);
}

/* The out that the next small message can join; NULL when there is none. */
static struct out *open_out(struct pipe *p, size_t need, struct tenrec_done done)
{
    struct conn *c = p->conn[CONN_DESCRIPTOR];
    struct out *o = c->first ? c->last->out : NULL;

    if (o && o->open && o->cap - o->len >= need && (!done.fn || o->n_done < OUT_DONES))
        return o;
    return NULL;
}

/* Copies the message behind others, or into an out of its own. */
static tenrec_status enqueue_plain(struct pipe *p, const struct tenrec_msg *msg,
                                   struct tenrec_done done, tenrec_error *err)
{
    size_t need = plain_len(msg->payload_len);
    struct out *o = open_out(p, need, done);

    if (!o) {
        o = out_new(p, need);
        if (!o)
            return tenrec_fail(err, TENREC_ENOMEM, "no memory for a message");
        o->open = true;
        append(p->conn[CONN_DESCRIPTOR], &o->frames);
    }
    plain_write(o->buf + o->len, msg->type, msg->id, msg->payload, msg->payload_len);
    o->len += need;
    o->frames.iov[0].iov_len += need;
    o->charge += need;
    queued_add(p, need);
    add_done(p, o, done);
    return TENREC_OK;
}

/* All of it is written, or will never be: under the lock. */
static void retire(struct pipe *p, struct out *o, struct told *t)
{
    queued_add(p, -o->charge);
    if (p->waiting_for_room)
        pthread_cond_broadcast(&p->room);
    if (p->queue_full && atomic_load(&p->queued) <= p->agent->options->max_queued_bytes / 2) {
        p->queue_full = false;
        pipe_post(p, &p->read_task);
    }
    if (t->n_done + o->n_done > 2 * OUT_DONES || t->n_msg == 8) {
        list_add(&t->rest, o);
        return;
    }
    for (unsigned i = 0; i < o->n_done; i++)
        t->done[t->n_done++] = o->done[i];
    if (o->msg)
        t->msg[t->n_msg++] = o->msg;
    out_free(p, o);
}

static void segment_written(struct pipe *p, struct segment *s, struct told *t)
{
    if (--s->out->parts == 0)
        retire(p, s->out, t);
}

/* Tells them, without the lock. */
static void tell(struct pipe *p, struct told *t, const tenrec_error *why)
{
    unsigned n = t->n_done;
    struct out *next;

    for (unsigned i = 0; i < t->n_done; i++)
        t->done[i].fn(t->done[i].arg, why);
    for (unsigned i = 0; i < t->n_msg; i++)
        t->msg[i]->release(t->msg[i]);
    for (struct out *o = t->rest.first; o; o = next) {
        next = o->next;
        for (unsigned i = 0; i < o->n_done; i++)
            o->done[i].fn(o->done[i].arg, why);
        if (o->msg)
            o->msg->release(o->msg);
        n += o->n_done;
        free(o->tensors);
        free(o);
    }
    if (n)
        atomic_fetch_sub(&p->untold, n);
    if (atomic_load_explicit(&p->agent->drainers, memory_order_relaxed))
        agent_told(p->agent);
}

/* Takes `n` written bytes off the front. */
static void advance(struct pipe *p, struct conn *c, size_t n, struct told *t)
{
    while (c->first) {
        struct segment *s = c->first;

        while (s->at < s->n && n >= s->iov[s->at].iov_len)
            n -= s->iov[s->at++].iov_len;
        if (s->at < s->n) {
            s->iov[s->at].iov_base = (char *)s->iov[s->at].iov_base + n;
            s->iov[s->at].iov_len -= n;
            return;
        }
        c->first = s->next;
        segment_written(p, s, t);
    }
}

static unsigned gather(const struct conn *c, struct iovec *iov, size_t *ret_len)
{
    unsigned n = 0;

    *ret_len = 0;
    for (const struct segment *s = c->first; s; s = s->next) {
        if (n + s->n - s->at > WRITE_IOV)
            break;
        for (unsigned i = s->at; i < s->n; i++) {
            iov[n++] = s->iov[i];
            *ret_len += s->iov[i].iov_len;
        }
    }
    return n;
}

static ssize_t write_some(struct conn *c, struct iovec *iov, unsigned n)
{
    const int flags = MSG_NOSIGNAL | MSG_DONTWAIT;
    struct msghdr m = { .msg_iov = iov, .msg_iovlen = n };
    ssize_t r;

    do {
        /* Not through the C library: see conn_read. */
        if (n == 1)
            r = (ssize_t)syscall(SYS_sendto, c->source.fd, iov[0].iov_base, iov[0].iov_len, flags,
                                 NULL, 0);
        else
            r = (ssize_t)syscall(SYS_sendmsg, c->source.fd, &m, flags);
    } while (r < 0 && errno == EINTR);
    return r;
}

/* With the lock, which it lets go during the system calls. 0 or an errno. */
static int flush_conn(struct pipe *p, struct conn *c, struct told *t)
{
    struct iovec iov[WRITE_IOV];
    int e = 0;

    if (!c || !c->first || c->full || atomic_load(&c->writing))
        return 0;
    atomic_store_explicit(&c->writing, true, memory_order_release);
    while (c->first && pipe_state(p) == PIPE_ESTABLISHED) {
        size_t len;
        unsigned n = gather(c, iov, &len);
        ssize_t r;

        c->writable = false;
        /* Counted first: the peer may answer before the call returns. */
        pipe_count(p, COUNT_SENDS, 1);
        pthread_mutex_unlock(&p->lock);
        r = write_some(c, iov, n);
        e = r < 0 ? errno : 0;
        pthread_mutex_lock(&p->lock);
        if (r < 0)
            pipe_count(p, COUNT_SENDS, (uint64_t)-1);
        if (r > 0) {
            pipe_count(p, COUNT_BYTES_SENT, (uint64_t)r);
            advance(p, c, (size_t)r, t);
        } else if (e != EAGAIN) {
            break;
        }
        e = 0;
        /* Less than all means full: the kernel then tells when there is room,
         * unless it did so already. */
        if ((r < 0 || (size_t)r < len) && !c->writable) {
            c->full = true;
            break;
        }
    }
    atomic_store_explicit(&c->writing, false, memory_order_release);
    return e;
}

/* With the lock, which it lets go. */
static void flush_unlock(struct pipe *p)
{
    struct told t;
    bool broken;
    int e = 0;

    told_init(&t);
    for (int i = 0; i < CONN_ROLES && !e; i++)
        e = flush_conn(p, p->conn[i], &t);
    broken = pipe_state(p) == PIPE_BROKEN;
    pthread_mutex_unlock(&p->lock);
    tell(p, &t, NULL);
    if (e)
        pipe_failf(p, TENREC_EPEER_LOST, e, "connection lost");
    if (broken)
        pipe_fail_queue(p);
}

void pipe_flush(struct pipe *p)
{
    pthread_mutex_lock(&p->lock);
    flush_unlock(p);
}

void pipe_writable(struct pipe *p, struct conn *c)
{
    bool waits;

    /* Mostly nothing is held up: then the lock is not worth its price. Who
     * writes has said so before the socket could be full. */
    if (!atomic_load(&c->writing) && !atomic_load(&c->full))
        return;
    pthread_mutex_lock(&p->lock);
    c->writable = true;
    waits = c->full;
    c->full = false;
    pthread_mutex_unlock(&p->lock);
    if (waits)
        pipe_flush(p);
}

/* ---- sending ---- */

/* Requests that nobody answers are not waited for. */
static bool wants_answer(const struct tenrec_msg *msg)
{
    return (msg->type & TENREC_MSG_REQUEST_BIT) && msg->type != TENREC_MSG_ONE_WAY_CALL &&
           msg->type != TENREC_MSG_CANCEL;
}

static bool has_room(const struct pipe *p, const struct tenrec_msg *msg, uint64_t charge)
{
    uint64_t queued = atomic_load_explicit(&p->queued, memory_order_relaxed);

    /* Answers are bounded by the requests that are let in: pipe_read stops
     * reading those while the answers pile up. */
    return !p->outgoing || (msg->flags & TENREC_MSG_CONTROL) || queued == 0 ||
           queued + charge <= p->agent->options->max_queued_bytes;
}

/* Under the lock. */
static tenrec_status await_room(struct pipe *p, const struct tenrec_msg *msg, uint64_t charge,
                                tenrec_error *err)
{
    struct timespec until = { (time_t)(msg->deadline_ns / 1000000000u),
                              (long)(msg->deadline_ns % 1000000000u) };
    int e = 0;

    if (!has_room(p, msg, charge) && (!(msg->flags & TENREC_MSG_MAY_WAIT) || batch_running() ||
                                      reactor_is_me(&p->agent->reactor)))
        return tenrec_fail(err, TENREC_EAGAIN,
                           "%llu bytes to worker \"%s\" are queued; max_queued_bytes is %llu",
                           (unsigned long long)atomic_load(&p->queued), p->to->name,
                           (unsigned long long)p->agent->options->max_queued_bytes);
    p->waiting_for_room++;
    while (!e && pipe_state(p) != PIPE_BROKEN && !has_room(p, msg, charge))
        e = msg->deadline_ns ? pthread_cond_timedwait(&p->room, &p->lock, &until)
                             : pthread_cond_wait(&p->room, &p->lock);
    p->waiting_for_room--;
    if (pipe_state(p) == PIPE_BROKEN) {
        *err = p->why;
        return p->why.code;
    }
    if (e)
        return tenrec_fail(err, TENREC_ETIMEDOUT,
                           "no room in the queue to worker \"%s\" before the deadline",
                           p->to->name);
    return TENREC_OK;
}

/* Under the lock, when the handshake is over. */
static tenrec_status enqueue_message(struct pipe *p, struct tenrec_msg *msg,
                                     struct tenrec_done done, uint64_t charge, tenrec_error *err)
{
    struct out *o = NULL;
    tenrec_status st = check(p, msg, err);

    if (!st)
        st = is_plain(msg) ? enqueue_plain(p, msg, done, err) : encode(p, msg, &o, err);
    if (st)
        return st;
    pipe_count(p, COUNT_MESSAGES_SENT, 1);
    if (!o)
        return TENREC_OK;
    o->charge = charge;
    queued_add(p, charge);
    add_done(p, o, done);
    enqueue(p, o);
    return TENREC_OK;
}

/* Under the lock. `ret_copied`: the message itself is needed no more. */
static tenrec_status accept_message(struct pipe *p, struct tenrec_msg *msg, struct tenrec_done done,
                                    bool *ret_copied, tenrec_error *err)
{
    uint64_t charge = charge_of(msg);
    struct out *o;
    tenrec_status st = await_room(p, msg, charge, err);

    *ret_copied = false;
    if (st)
        return st;
    if (pipe_state(p) == PIPE_ESTABLISHED) {
        *ret_copied = is_plain(msg);
        return enqueue_message(p, msg, done, charge, err);
    }
    o = out_new(p, 0);
    if (!o)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for a message");
    o->msg = msg;
    o->charge = charge;
    queued_add(p, charge);
    add_done(p, o, done);
    list_add(&p->pending, o);
    return TENREC_OK;
}

void pipe_send(struct pipe *p, struct tenrec_msg *msg, struct tenrec_done done)
{
    bool will_poll = msg->flags & TENREC_MSG_MAY_WAIT;
    bool asks = p->outgoing && wants_answer(msg);
    bool copied;
    tenrec_error err;
    tenrec_status st;

    if (asks) {
        atomic_fetch_add(&p->unanswered, 1);
        role_request_sent(p, will_poll);
    }
    pthread_mutex_lock(&p->lock);
    st = accept_message(p, msg, done, &copied, &err);
    if (st || pipe_state(p) != PIPE_ESTABLISHED ||
        (atomic_load_explicit(&p->queued, memory_order_relaxed) < BATCH_MAX && batch_add(p)))
        pthread_mutex_unlock(&p->lock);
    else
        flush_unlock(p);
    if (!st) {
        if (copied)
            msg->release(msg);
        return;
    }
    if (asks)
        atomic_fetch_sub(&p->unanswered, 1);
    if (done.fn)
        done.fn(done.arg, &err);
    msg->release(msg);
}

tenrec_status pipe_send_object(struct pipe *p, enum conn_role role, const void *object, size_t len)
{
    struct out *o;

    pthread_mutex_lock(&p->lock);
    o = pipe_state(p) == PIPE_ESTABLISHED ? out_new(p, FRAME_HEAD + len) : NULL;
    if (o) {
        put_frame(o->buf, object, len);
        o->frames.iov[0].iov_len = FRAME_HEAD + len;
        append(p->conn[role], &o->frames);
    }
    pthread_mutex_unlock(&p->lock);
    if (!o)
        return TENREC_ENOMEM;
    if (!batch_add(p))
        pipe_flush(p);
    return TENREC_OK;
}

/* One that waited for the handshake, in order; false when there is none. */
static bool send_next_pending(struct pipe *p)
{
    struct tenrec_done done = { NULL, NULL };
    struct tenrec_msg *msg;
    struct out *waited;
    tenrec_error err;
    tenrec_status st;
    bool copied;

    pthread_mutex_lock(&p->lock);
    waited = p->pending.first;
    if (!waited || pipe_state(p) == PIPE_BROKEN) {
        if (!waited && pipe_state(p) != PIPE_BROKEN)
            atomic_store(&p->state, PIPE_ESTABLISHED);
        pthread_mutex_unlock(&p->lock);
        return false;
    }
    p->pending.first = waited->next;
    if (!p->pending.first)
        p->pending.last = &p->pending.first;
    msg = waited->msg;
    if (waited->n_done) {
        done = waited->done[0];
        atomic_fetch_sub(&p->untold, 1);
    }
    queued_add(p, -waited->charge);
    copied = is_plain(msg);
    st = enqueue_message(p, msg, done, waited->charge, &err);
    out_free(p, waited);
    pthread_mutex_unlock(&p->lock);
    if (st && done.fn)
        done.fn(done.arg, &err);
    if (st || copied)
        msg->release(msg);
    return true;
}

void pipe_send_pending(struct pipe *p)
{
    while (send_next_pending(p))
        continue;
    pipe_flush(p);
}

void pipe_fail_queue(struct pipe *p)
{
    struct told dead;
    tenrec_error why;

    told_init(&dead);
    pthread_mutex_lock(&p->lock);
    pthread_cond_broadcast(&p->room);
    for (int i = 0; i < CONN_ROLES; i++) {
        if (p->conn[i] && atomic_load(&p->conn[i]->writing)) {
            /* The kernel still reads those messages: the writer comes here. */
            pthread_mutex_unlock(&p->lock);
            return;
        }
    }
    for (int i = 0; i < CONN_ROLES; i++) {
        struct conn *c = p->conn[i];

        while (c && c->first) {
            struct segment *s = c->first;

            c->first = s->next;
            segment_written(p, s, &dead);
        }
    }
    while (p->pending.first) {
        struct out *o = p->pending.first;

        p->pending.first = o->next;
        retire(p, o, &dead);
    }
    p->pending.last = &p->pending.first;
    why = p->why;
    pthread_mutex_unlock(&p->lock);
    tell(p, &dead, &why);
}
