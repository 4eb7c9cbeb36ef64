/* pipe_queue.c - what is on its way out, and who writes it.
 *
 * One thread at a time writes to a connection: it owns conn->writing, which is
 * taken without the lock, so that a message that finds nothing queued before
 * it costs no lock at all. Who finds the connection taken appends to the queue
 * under the lock and goes; the writer looks for that before it leaves. What
 * the socket does not take stays in the queue until the loop thread hears that
 * there is room again. */
#include "pipe/pipe.h"

#include <errno.h>
#include <stdlib.h>

#define WRITE_IOV 128 /* buffers in one system call */

static void told_init(struct told *t)
{
    t->n_done = t->n_msg = 0;
    t->rest.first = NULL;
    t->rest.last = &t->rest.first;
}

void out_list_add(struct out_list *l, struct out *o)
{
    o->next = NULL;
    *l->last = o;
    l->last = &o->next;
}

/* Under the lock, but for what malloc costs it is cheap. */
struct out *out_new(struct pipe *p, size_t need)
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
    o->n_tensors = 0;
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

void out_free(struct pipe *p, struct out *o)
{
    if (o->tensors != o->few)
        free(o->tensors);
    if (o->cap == OUT_SMALL && p->n_spare < OUT_SPARES) {
        o->next = p->spare;
        p->spare = o;
        p->n_spare++;
    } else {
        free(o);
    }
}

void pipe_queued_add(struct pipe *p, uint64_t n)
{
    atomic_store_explicit(&p->queued, atomic_load_explicit(&p->queued, memory_order_relaxed) + n,
                          memory_order_relaxed);
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
    atomic_store(&c->waiting, true);
}

static void await_taking(struct pipe *p, struct segment *s)
{
    s->number = p->n_awaited++;
    s->next_awaited = NULL;
    if (p->awaited)
        p->last_awaited->next_awaited = s;
    else
        p->awaited = s;
    p->last_awaited = s;
}

void pipe_enqueue(struct pipe *p, struct out *o)
{
    append(p->conn[CONN_DESCRIPTOR], &o->frames);
    for (uint32_t i = 0; i < o->n_tensors; i++) {
        if (o->tensors[i].n)
            append(p->conn[o->tensors[i].on], &o->tensors[i]);
        if (o->tensors[i].awaited)
            await_taking(p, &o->tensors[i]);
    }
}

void out_add_done(struct pipe *p, struct out *o, struct tenrec_done done)
{
    if (!done.fn)
        return;
    atomic_fetch_add_explicit(&p->untold, 1, memory_order_relaxed);
    o->done[o->n_done++] = done;
}

bool pipe_enqueue_object(struct pipe *p, enum conn_role role, const void *object, size_t len)
{
    struct out *o = out_new(p, FRAME_HEAD + len);

    if (!o)
        return false;
    conn_put_frame(o->buf, object, len);
    o->frames.iov[0].iov_len = FRAME_HEAD + len;
    append(p->conn[role], &o->frames);
    return true;
}

/* The out that small messages can join; NULL when there is none. */
static struct out *open_out(struct pipe *p, const struct bundle *b)
{
    struct conn *c = p->conn[CONN_DESCRIPTOR];
    struct out *o = c->first ? c->last->out : NULL;

    if (o && o->open && o->cap - o->len >= b->len && o->n_done + b->n_done <= OUT_DONES)
        return o;
    return NULL;
}

static void out_fill(struct pipe *p, struct out *o, const struct bundle *b, size_t from)
{
    size_t n = b->len - from;

    memcpy(o->buf + o->len, b->buf + from, n);
    o->len += n;
    o->frames.iov[0].iov_len += n;
    o->charge += n;
    pipe_queued_add(p, n);
    for (unsigned i = 0; i < b->n_done; i++)
        out_add_done(p, o, b->done[i]);
}

/* Under the lock. */
static bool enqueue_bundle(struct pipe *p, const struct bundle *b)
{
    struct out *o = open_out(p, b);

    if (!o) {
        o = out_new(p, b->len);
        if (!o)
            return false;
        o->open = true;
        append(p->conn[CONN_DESCRIPTOR], &o->frames);
    }
    out_fill(p, o, b, 0);
    return true;
}

/* All of it is written, or will never be: under the lock. */
static void retire(struct pipe *p, struct out *o, struct told *t)
{
    pipe_queued_add(p, -o->charge);
    if (p->waiting_for_room)
        pthread_cond_broadcast(&p->room);
    if (p->queue_full && atomic_load(&p->queued) <= p->agent->options->max_queued_bytes / 2) {
        p->queue_full = false;
        pipe_post(p, &p->read_task);
    }
    if (t->n_done + o->n_done > 2 * OUT_DONES || t->n_msg == 8) {
        out_list_add(&t->rest, o);
        return;
    }
    for (unsigned i = 0; i < o->n_done; i++)
        t->done[t->n_done++] = o->done[i];
    if (o->msg)
        t->msg[t->n_msg++] = o->msg;
    out_free(p, o);
}

/* None of them will be sent. */
static void retire_list(struct pipe *p, struct out_list *l, struct told *t)
{
    while (l->first) {
        struct out *o = l->first;

        l->first = o->next;
        retire(p, o, t);
    }
    l->last = &l->first;
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
        if (o->tensors != o->few)
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
    atomic_store(&c->waiting, false);
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

static void count_write(struct conn *c, ssize_t r)
{
    if (r < 0)
        conn_count(&c->sends, (uint64_t)-1);
    else
        conn_count(&c->bytes_sent, (uint64_t)r);
}

static bool take_writing(struct conn *c)
{
    bool no = false;

    return atomic_compare_exchange_strong(&c->writing, &no, true);
}

/* The socket took less than all: is it full? The kernel then tells when there
 * is room, unless it did so already. Under the lock. */
static void note_full(struct pipe *p, struct conn *c)
{
    bool quiet;

    atomic_store(&p->stuffed, true);
    atomic_store(&c->full, true);
    if (atomic_load(&c->writable)) {
        atomic_store(&c->full, false);
        return;
    }
    if (atomic_load(&p->role.taken) == ROLE_SPINS)
        return; /* it tries again and again */
    quiet = atomic_load(&p->role.quiet) && pipe_reads(p, c) && pipe_state(p) == PIPE_ESTABLISHED;
    if (c->carrier->want_room(c, quiet))
        atomic_store(&c->full, false);
}

/* With the lock, which it lets go during the system calls. 0 or an errno. */
static int flush_conn(struct pipe *p, struct conn *c, struct told *t)
{
    struct iovec iov[WRITE_IOV];
    int e = 0;

    if (!c || !c->first || atomic_load(&c->full) || !take_writing(c))
        return 0;
    while (c->first && !atomic_load(&c->full) && pipe_state(p) == PIPE_ESTABLISHED) {
        size_t len;
        unsigned n = gather(c, iov, &len);
        ssize_t r;

        atomic_store(&c->writable, false);
        /* Counted first: the peer may answer before the call returns. */
        conn_count(&c->sends, 1);
        pthread_mutex_unlock(&p->lock);
        r = c->carrier->write(c, iov, n);
        e = r < 0 ? (int)-r : 0;
        count_write(c, r);
        pthread_mutex_lock(&p->lock);
        if (r > 0)
            advance(p, c, (size_t)r, t);
        else if (e != EAGAIN)
            break;
        e = 0;
        if (r < 0 || (size_t)r < len)
            note_full(p, c);
    }
    atomic_store(&c->writing, false);
    return e;
}

static void connection_lost(struct pipe *p, int os_errno)
{
    pipe_failf(p, TENREC_EPEER_LOST, os_errno, "connection lost");
}

void pipe_flush_unlock(struct pipe *p)
{
    struct told t;
    bool broken;
    int e = 0;

    told_init(&t);
    for (unsigned i = 0; i < p->n_conns && !e; i++)
        e = flush_conn(p, p->conn[i], &t);
    broken = pipe_state(p) == PIPE_BROKEN;
    pthread_mutex_unlock(&p->lock);
    tell(p, &t, NULL);
    if (e)
        connection_lost(p, e);
    if (broken)
        pipe_fail_queue(p);
}

void pipe_flush(struct pipe *p)
{
    pthread_mutex_lock(&p->lock);
    pipe_flush_unlock(p);
}

/* ---- small messages ---- */

static void tell_bundle(const struct bundle *b, const tenrec_error *why)
{
    for (unsigned i = 0; i < b->n_done; i++)
        b->done[i].fn(b->done[i].arg, why);
}

void pipe_queue_bundle(struct pipe *p, const struct bundle *b)
{
    tenrec_error err;
    bool queued;

    pthread_mutex_lock(&p->lock);
    queued = pipe_state(p) == PIPE_ESTABLISHED && enqueue_bundle(p, b);
    if (queued) {
        agent_count(&p->messages_queued, b->n_messages);
        pthread_mutex_unlock(&p->lock);
        return;
    }
    if (pipe_state(p) == PIPE_BROKEN)
        err = p->why;
    else
        tenrec_fail(&err, TENREC_ENOMEM, "no memory for a message");
    pthread_mutex_unlock(&p->lock);
    tell_bundle(b, &err);
}

/* The writer gives the connection back and does what others left to it. */
static void end_writing(struct pipe *p, struct conn *c)
{
    atomic_store(&c->writing, false);
    if (atomic_load(&c->waiting))
        pipe_flush(p);
    if (pipe_state(p) == PIPE_BROKEN)
        pipe_fail_queue(p);
}

/* The socket took `done` bytes of it, and then no more or an error: the rest
 * goes before all that was queued meanwhile. */
static void bundle_rest(struct pipe *p, struct conn *c, const struct bundle *b, size_t done, int e)
{
    struct out *o;

    pthread_mutex_lock(&p->lock);
    o = out_new(p, b->len);
    if (o) {
        out_fill(p, o, b, done);
        o->frames.next = c->first;
        if (!c->first)
            c->last = &o->frames;
        c->first = &o->frames;
        atomic_store(&c->waiting, true);
        note_full(p, c);
    }
    pthread_mutex_unlock(&p->lock);
    if (e && e != EAGAIN)
        connection_lost(p, e);
    else if (!o)
        pipe_failf(p, TENREC_ENOMEM, 0, "no memory for what the socket did not take");
    if (!o)
        tell_bundle(b, &p->why);
}

void pipe_write_bundle(struct pipe *p, const struct bundle *b)
{
    struct conn *c = p->conn[CONN_DESCRIPTOR];
    struct iovec iov = { (void *)(uintptr_t)b->buf, b->len };
    ssize_t r;

    if (atomic_load(&c->waiting) || !take_writing(c)) {
        pipe_queue_bundle(p, b);
        pipe_flush(p);
        return;
    }
    if (atomic_load(&c->waiting) || pipe_state(p) != PIPE_ESTABLISHED) {
        atomic_store(&c->writing, false);
        pipe_queue_bundle(p, b);
        pipe_flush(p);
        return;
    }
    atomic_store_explicit(&c->writable, false, memory_order_relaxed);
    conn_count(&p->messages_written, b->n_messages);
    conn_count(&c->sends, 1);
    r = c->carrier->write(c, &iov, 1);
    count_write(c, r);
    if (r == (ssize_t)b->len)
        tell_bundle(b, NULL);
    else
        bundle_rest(p, c, b, r > 0 ? (size_t)r : 0, r < 0 ? (int)-r : 0);
    end_writing(p, c);
}

/* ---- events ---- */

static bool any_full(const struct pipe *p)
{
    for (unsigned i = 0; i < p->n_conns; i++)
        if (p->conn[i] && atomic_load_explicit(&p->conn[i]->full, memory_order_relaxed))
            return true;
    return false;
}

void pipe_writable(struct pipe *p, struct conn *c)
{
    bool waits;

    /* Mostly nothing is held up: then the lock is not worth its price. Who
     * writes has said so before the socket could be full. */
    if (atomic_load(&p->role.taken) == ROLE_SPINS) {
        atomic_store(&c->writable, true);
        return;
    }
    if (!atomic_load(&c->writing) && !atomic_load(&c->full))
        return;
    pthread_mutex_lock(&p->lock);
    atomic_store(&c->writable, true);
    waits = atomic_exchange(&c->full, false);
    atomic_store(&p->stuffed, any_full(p));
    pthread_mutex_unlock(&p->lock);
    if (waits)
        pipe_flush(p);
}

bool pipe_is_full(const struct pipe *p)
{
    return atomic_load_explicit(&p->stuffed, memory_order_relaxed) && any_full(p);
}

void pipe_push(struct pipe *p)
{
    pthread_mutex_lock(&p->lock);
    for (unsigned i = 0; i < p->n_conns; i++)
        if (p->conn[i])
            atomic_store(&p->conn[i]->full, false);
    atomic_store(&p->stuffed, false);
    pipe_flush_unlock(p);
}

void pipe_part_done(struct pipe *p, struct out *o)
{
    struct told t;
    tenrec_error why;
    bool broken;

    told_init(&t);
    pthread_mutex_lock(&p->lock);
    broken = pipe_state(p) == PIPE_BROKEN;
    why = p->why;
    if (--o->parts == 0)
        retire(p, o, &t);
    pthread_mutex_unlock(&p->lock);
    tell(p, &t, broken ? &why : NULL);
}

bool pipe_send_frame(struct pipe *p, enum conn_role role, const void *head, size_t head_len,
                     void *data, uint64_t len, struct tenrec_done done)
{
    struct out *o = NULL;

    pthread_mutex_lock(&p->lock);
    if (pipe_state(p) == PIPE_ESTABLISHED)
        o = out_new(p, FRAME_HEAD + head_len);
    if (!o) {
        pthread_mutex_unlock(&p->lock);
        return false;
    }
    put_le64(o->buf, head_len + len);
    memcpy(o->buf + FRAME_HEAD, head, head_len);
    o->frames.iov[0].iov_len = FRAME_HEAD + head_len;
    o->frames.iov[1] = (struct iovec){ data, (size_t)len };
    o->frames.n = 2;
    out_add_done(p, o, done);
    append(p->conn[role], &o->frames);
    pipe_flush_unlock(p);
    return true;
}

/* Under the lock: no longer awaited; NULL: it was not. */
static struct segment *take_awaited(struct pipe *p, uint64_t number)
{
    struct segment **at = &p->awaited, *s, *before = NULL;

    while (*at && (*at)->number != number) {
        before = *at;
        at = &before->next_awaited;
    }
    s = *at;
    if (!s)
        return NULL;
    *at = s->next_awaited;
    if (p->last_awaited == s)
        p->last_awaited = before;
    return s;
}

bool pipe_tensor_taken(struct pipe *p, uint64_t number)
{
    struct told t;
    struct segment *s;

    told_init(&t);
    pthread_mutex_lock(&p->lock);
    s = take_awaited(p, number);
    if (s)
        segment_written(p, s, &t);
    pthread_mutex_unlock(&p->lock);
    tell(p, &t, NULL);
    return s != NULL;
}

bool pipe_tensor_refused(struct pipe *p, uint64_t number)
{
    struct segment *s;

    pthread_mutex_lock(&p->lock);
    p->pulls = false;
    s = take_awaited(p, number);
    if (s) {
        put_le64((unsigned char *)s->iov[0].iov_base + s->iov[0].iov_len - 8, number);
        s->n = 2;
        append(p->conn[s->on], s);
    }
    pipe_flush_unlock(p);
    return s != NULL;
}

void pipe_fail_queue(struct pipe *p)
{
    struct told dead;
    tenrec_error why;

    told_init(&dead);
    pthread_mutex_lock(&p->lock);
    pthread_cond_broadcast(&p->room);
    for (unsigned i = 0; i < p->n_conns; i++) {
        if (p->conn[i] && atomic_load(&p->conn[i]->writing)) {
            /* The kernel still reads those messages: the writer comes here. */
            pthread_mutex_unlock(&p->lock);
            return;
        }
    }
    for (unsigned i = 0; i < p->n_conns; i++) {
        struct conn *c = p->conn[i];

        while (c && c->first) {
            struct segment *s = c->first;

            c->first = s->next;
            segment_written(p, s, &dead);
        }
        if (c)
            atomic_store(&c->waiting, false);
    }
    while (p->awaited)
        segment_written(p, take_awaited(p, p->awaited->number), &dead);
    retire_list(p, &p->pending, &dead);
    retire_list(p, &p->device_sends, &dead);
    why = p->why;
    pthread_mutex_unlock(&p->lock);
    tell(p, &dead, &why);
}
