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

#define COPY_MAX 4096          /* payloads up to this are copied between their frames */
#define WRITE_IOV 128          /* buffers in one system call */
#define BATCH_MAX (256u << 10) /* queued bytes that a batch may gather */

/* Heads and bodies of type and id, and the head of the payload. */
#define FIXED_FRAMES (FRAME_HEAD + 4 + FRAME_HEAD + 8 + FRAME_HEAD)

/* ---- batches ---- */

static _Thread_local struct batch *batch_now;

void batch_begin(struct batch *b, struct pipe *reading)
{
    b->outer = batch_now;
    b->reading = reading;
    b->n = 0;
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
    batch_flush(b);
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

static void list_init(struct out_list *l)
{
    l->first = NULL;
    l->last = &l->first;
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
    o->parts = 0;
    o->charge = 0;
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

static tenrec_status add_tensors(struct out *o, tenrec_error *err)
{
    const struct tenrec_msg *msg = o->msg;

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

/* Makes the frames of msg: one piece, or around a payload that is too large to
 * be copied. Takes nothing on failure. */
static tenrec_status encode(struct pipe *p, struct tenrec_msg *msg, struct tenrec_done done,
                            struct out **ret, tenrec_error *err)
{
    bool copied = msg->payload_len <= COPY_MAX && msg->n_tensors == 0;
    size_t heads = FRAME_HEAD + DESCRIPTOR_MAX(msg->n_tensors) + FIXED_FRAMES;
    size_t need = heads + (copied ? (size_t)msg->payload_len : 0) + FRAME_HEAD +
                  TENSORLIST_MAX(msg->n_tensors);
    size_t list_len = TENSORLIST_EMPTY_LEN;
    unsigned char *at, *list;
    struct out *o;
    tenrec_status st = check(p, msg, err);

    if (st)
        return st;
    o = out_new(p, need);
    if (!o)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for a message");
    o->msg = msg;
    o->done = done;
    o->parts = 1;
    list = o->buf + heads + (copied ? (size_t)msg->payload_len : 0);
    st = tensorlist_write(list + FRAME_HEAD, TENSORLIST_MAX(msg->n_tensors), msg->tensors,
                          msg->n_tensors, msg->tensor_size, p->capabilities & IDENTITY_ALL_DTYPES,
                          &list_len, err);
    if (!st && msg->n_tensors)
        st = add_tensors(o, err);
    if (st)
        goto err_out;
    at = put_descriptor(o->buf, msg, list_len);
    if (!at) {
        st = tenrec_fail(err, TENREC_EUNSUPPORTED, "a tensor's device has no name on the wire");
        goto err_out;
    }
    at = put_fixed_frames(at, msg);
    put_le64(list, list_len);
    o->frames.out = o;
    o->frames.at = 0;
    if (copied) {
        if (msg->payload_len)
            memcpy(at, msg->payload, (size_t)msg->payload_len);
        at += msg->payload_len;
        memmove(at, list, FRAME_HEAD + list_len);
        at += FRAME_HEAD + list_len;
        o->frames.n = 1;
    } else {
        o->frames.iov[1] = (struct iovec){ msg->payload, (size_t)msg->payload_len };
        o->frames.iov[2] = (struct iovec){ list, FRAME_HEAD + list_len };
        o->frames.n = 3;
    }
    o->frames.iov[0] = (struct iovec){ o->buf, (size_t)(at - o->buf) };
    *ret = o;
    return TENREC_OK;

err_out:
    o->msg = NULL;
    out_free(p, o);
    return st;
}

/* ---- queues ---- */

static void append(struct conn *c, struct segment *s)
{
    s->next = NULL;
    *c->last = s;
    c->last = &s->next;
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

/* The message is written, or will never be: under the lock. */
static void retire(struct pipe *p, struct out *o, struct out_list *done)
{
    p->queued -= o->charge;
    if (p->waiting_for_room)
        pthread_cond_broadcast(&p->room);
    if (p->queue_full && p->queued <= p->agent->options->max_queued_bytes / 2) {
        p->queue_full = false;
        pipe_post(p, &p->read_task);
    }
    list_add(done, o);
}

static void segment_written(struct pipe *p, struct segment *s, struct out_list *done)
{
    if (--s->out->parts == 0)
        retire(p, s->out, done);
}

/* Tells and frees what retire collected. The messages go without the lock;
 * the memory of small ones is kept under it. */
static void tell(struct pipe *p, struct out_list *done, const tenrec_error *why)
{
    struct out *next;

    for (struct out *o = done->first; o; o = o->next)
        if (o->msg)
            agent_tell(p->agent, o->msg, o->done, why);
    if (!done->first)
        return;
    pthread_mutex_lock(&p->lock);
    for (struct out *o = done->first; o; o = next) {
        next = o->next;
        out_free(p, o);
    }
    pthread_mutex_unlock(&p->lock);
}

/* Takes `n` written bytes off the front. */
static void advance(struct pipe *p, struct conn *c, size_t n, struct out_list *done)
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
        if (!c->first)
            c->last = &c->first;
        segment_written(p, s, done);
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
    struct msghdr m = { .msg_iov = iov, .msg_iovlen = n };
    ssize_t r;

    do {
        if (n == 1)
            r = send(c->source.fd, iov[0].iov_base, iov[0].iov_len, MSG_NOSIGNAL | MSG_DONTWAIT);
        else
            r = sendmsg(c->source.fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
    } while (r < 0 && errno == EINTR);
    return r;
}

/* With the lock, which it lets go during the system calls. 0 or an errno. */
static int flush_conn(struct pipe *p, struct conn *c, struct out_list *done)
{
    struct iovec iov[WRITE_IOV];
    int e = 0;

    if (!c || !c->first || c->full || atomic_load(&c->writing))
        return 0;
    atomic_store(&c->writing, true);
    while (c->first && pipe_state(p) == PIPE_ESTABLISHED) {
        size_t len;
        unsigned n = gather(c, iov, &len);
        ssize_t r;

        c->writable = false;
        pthread_mutex_unlock(&p->lock);
        r = write_some(c, iov, n);
        e = r < 0 ? errno : 0;
        pthread_mutex_lock(&p->lock);
        if (r > 0) {
            agent_count(&p->agent->count.sends, 1);
            agent_count(&p->agent->count.bytes_sent, (uint64_t)r);
            advance(p, c, (size_t)r, done);
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
    atomic_store(&c->writing, false);
    return e;
}

/* Without the lock. */
void pipe_flush(struct pipe *p)
{
    struct out_list done;
    bool broken;
    int e = 0;

    list_init(&done);
    pthread_mutex_lock(&p->lock);
    for (int i = 0; i < CONN_ROLES && !e; i++)
        e = flush_conn(p, p->conn[i], &done);
    broken = pipe_state(p) == PIPE_BROKEN;
    pthread_mutex_unlock(&p->lock);
    tell(p, &done, NULL);
    if (e)
        pipe_failf(p, TENREC_EPEER_LOST, e, "connection lost");
    if (broken)
        pipe_fail_queue(p);
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
    /* Answers are bounded by the requests that are let in: pipe_read stops
     * reading those while the answers pile up. */
    return !p->outgoing || (msg->flags & TENREC_MSG_CONTROL) || p->queued == 0 ||
           p->queued + charge <= p->agent->options->max_queued_bytes;
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
                           (unsigned long long)p->queued, p->to->name,
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

/* Under the lock. */
static tenrec_status accept_message(struct pipe *p, struct tenrec_msg *msg, struct tenrec_done done,
                                    tenrec_error *err)
{
    uint64_t charge = charge_of(msg);
    struct out *o;
    tenrec_status st = await_room(p, msg, charge, err);

    if (st)
        return st;
    if (pipe_state(p) == PIPE_ESTABLISHED) {
        st = encode(p, msg, done, &o, err);
        if (st)
            return st;
        enqueue(p, o);
    } else {
        o = out_new(p, 0);
        if (!o)
            return tenrec_fail(err, TENREC_ENOMEM, "no memory for a message");
        o->msg = msg;
        o->done = done;
        list_add(&p->pending, o);
    }
    o->charge = charge;
    p->queued += charge;
    return TENREC_OK;
}

void pipe_send(struct pipe *p, struct tenrec_msg *msg, struct tenrec_done done)
{
    bool will_poll = msg->flags & TENREC_MSG_MAY_WAIT;
    bool asks = p->outgoing && wants_answer(msg);
    bool deferred, established;
    tenrec_error err;
    tenrec_status st;

    if (asks)
        atomic_fetch_add(&p->unanswered, 1);
    pthread_mutex_lock(&p->lock);
    st = accept_message(p, msg, done, &err);
    established = pipe_state(p) == PIPE_ESTABLISHED;
    deferred = p->queued <= BATCH_MAX;
    pthread_mutex_unlock(&p->lock);
    if (st) {
        if (asks)
            atomic_fetch_sub(&p->unanswered, 1);
        agent_tell(p->agent, msg, done, &err);
        return;
    }
    if (!established)
        return;
    agent_count(&p->agent->count.messages_sent, 1);
    if (asks)
        role_request_sent(p, will_poll);
    if (!deferred || !batch_add(p))
        pipe_flush(p);
}

tenrec_status pipe_send_object(struct pipe *p, enum conn_role role, const void *object, size_t len)
{
    struct out *o;

    pthread_mutex_lock(&p->lock);
    o = pipe_state(p) == PIPE_ESTABLISHED ? out_new(p, FRAME_HEAD + len) : NULL;
    if (o) {
        put_frame(o->buf, object, len);
        o->frames.out = o;
        o->frames.iov[0] = (struct iovec){ o->buf, FRAME_HEAD + len };
        o->frames.n = 1;
        o->frames.at = 0;
        o->parts = 1;
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
    struct out *waited, *o = NULL;
    struct tenrec_msg *msg;
    struct tenrec_done done;
    tenrec_error err;
    tenrec_status st;

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
    done = waited->done;
    st = encode(p, msg, done, &o, &err);
    if (st) {
        p->queued -= waited->charge;
    } else {
        o->charge = waited->charge;
        enqueue(p, o);
    }
    out_free(p, waited);
    pthread_mutex_unlock(&p->lock);
    if (st)
        agent_tell(p->agent, msg, done, &err);
    else
        agent_count(&p->agent->count.messages_sent, 1);
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
    struct out_list dead;
    tenrec_error why;

    list_init(&dead);
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
        if (c)
            c->last = &c->first;
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
