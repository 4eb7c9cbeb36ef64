/* SPDX-License-Identifier: Apache-2.0 */
/* pipe_write.c - writes queued messages.
 *
 * One thread at a time writes to a connection: it owns conn->writing, which is
 * taken without the lock, so that a message that finds nothing queued before
 * it costs no lock at all. A thread that finds it taken appends to the queue
 * under the lock and returns; the writer checks the queue before it leaves. Bytes
 * that do not fit into the socket stay in the queue until the loop thread is notified
 * of room. */
#include "pipe/pipe.h"

#include <errno.h>

#define WRITE_IOV 128 /* buffers in one system call */

/* Bytes that are written at once at most: the peer may take them as fast as they come. A thread
 * that reads writes one such piece before it reads on. A ring copies faster than a socket. While no
 * messages arrive that would wait, the pieces of a socket are long, as a reader that sleeps wakes
 * for each. */
enum { PIECE_SOCKET = 256 << 10, PIECE_LONG = 4 << 20, PIECE_RING = 1 << 20, CALM_PIECES = 4 };

static size_t piece_of(const struct pipe *p, const struct conn *c)
{
    if (c->stream->bounded)
        return PIECE_RING;
    return p->conns.calm < CALM_PIECES || c->tls ? PIECE_SOCKET : PIECE_LONG;
}

/* A piece was written. Under the lock. */
static void piece_count(struct pipe *p)
{
    const uint64_t n = atomic_load_explicit(&p->read.n_messages, memory_order_relaxed);

    if (n != p->conns.n_arrived)
        p->conns.calm = 0;
    else if (p->conns.calm < CALM_PIECES)
        p->conns.calm++;
    p->conns.n_arrived = n;
}

/* Takes `n` written bytes off the front. */
static void write_advance(struct pipe *p, struct conn *c, size_t n, struct told *t)
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

/* Cuts what is longer than a piece. Returns the number of buffers that are left. */
static unsigned write_cut(struct iovec *iov, unsigned n, size_t piece, size_t *len)
{
    while (*len > piece) {
        const size_t more = *len - piece, last = iov[n - 1].iov_len;

        if (more < last) {
            iov[n - 1].iov_len -= more;
            *len = piece;
        } else {
            *len -= last;
            n--;
        }
    }
    return n;
}

static unsigned write_gather(const struct conn *c, size_t piece, struct iovec *iov, size_t *ret_len)
{
    unsigned n = 0;

    *ret_len = 0;
    for (struct segment *s = c->first; s; s = s->next) {
        if (n + s->n - s->at > WRITE_IOV || *ret_len >= piece)
            break;
        s->offered = c->tls != NULL;
        for (unsigned i = s->at; i < s->n; i++) {
            iov[n++] = s->iov[i];
            *ret_len += s->iov[i].iov_len;
        }
    }
    return write_cut(iov, n, piece, ret_len);
}

static bool take_writing(struct conn *c)
{
    bool no = false;

    return atomic_compare_exchange_strong(&c->writing, &no, true);
}

/* Notes a full socket after a short write. The kernel notifies of room, unless it did so
 * already. Under the lock. */
static void note_full(struct pipe *p, struct conn *c)
{
    bool masked;

    atomic_store(&p->conns.stuffed, true);
    atomic_store(&c->full, true);
    if (atomic_load(&c->writable)) {
        atomic_store(&c->full, false);
        return;
    }
    if (atomic_load(&p->role.taken) == ROLE_SPINS)
        return; /* it tries again and again */
    masked = atomic_load(&p->role.masked) && pipe_reads(p, c) && pipe_state(p) == PIPE_ESTABLISHED;
    if (c->stream->want_room(c, masked))
        atomic_store(&c->full, false);
}

/* The turn is over: another follows if there is room, of a spinning reader or of the loop thread.
 * Under the lock. */
static void flush_later(struct pipe *p, struct conn *c)
{
    if (!c->first || atomic_load(&c->full) || pipe_state(p) != PIPE_ESTABLISHED)
        return;
    if (atomic_load(&p->role.taken) == ROLE_SPINS) {
        atomic_store(&p->conns.stuffed, true);
        atomic_store(&c->full, true);
        return;
    }
    pipe_post(p, &p->conns.flush_task);
}

/* With the lock, released during the system calls. Returns 0 or an errno. over: set after a piece,
 * and nothing is written once it is; NULL: the thread has no other work. */
static int flush_conn(struct pipe *p, struct conn *c, bool *over, struct told *t)
{
    struct iovec iov[WRITE_IOV];
    int e = 0;

    if (!c || !c->first || atomic_load(&c->full) || !take_writing(c))
        return 0;
    while (c->first && !atomic_load(&c->full) && !(over && *over) &&
           pipe_state(p) == PIPE_ESTABLISHED) {
        const size_t piece = piece_of(p, c);
        size_t len;
        unsigned n = write_gather(c, piece, iov, &len);
        ssize_t r;

        atomic_store(&c->writable, false);
        pthread_mutex_unlock(&p->lock);
        r = conn_write(c, iov, n);
        e = r < 0 ? (int)-r : 0;
        pthread_mutex_lock(&p->lock);
        if (r > 0)
            write_advance(p, c, (size_t)r, t);
        else if (e != EAGAIN)
            break;
        if (over && r > 0 && (size_t)r >= piece) {
            piece_count(p);
            *over = true;
        }
        e = 0;
        if (r < 0 || (size_t)r < len)
            note_full(p, c);
    }
    atomic_store(&c->writing, false);
    if (over && *over)
        flush_later(p, c);
    return e;
}

static void connection_lost(struct pipe *p, int os_errno)
{
    pipe_failf(p, TENREC_EPEER_LOST, os_errno, "connection lost");
}

/* The lanes of tensors come last: they may take what is left of the turn. */
static void flush_unlock(struct pipe *p, bool in_turns)
{
    struct told t;
    bool over = false, broken;
    int e = 0;

    told_init(&t);
    for (unsigned i = 0; i < p->conns.n && !e; i++)
        e = flush_conn(p, p->conns.of[i ? p->conns.n - i : CONN_DESCRIPTOR],
                       in_turns ? &over : NULL, &t);
    broken = pipe_state(p) == PIPE_BROKEN;
    pthread_mutex_unlock(&p->lock);
    told_tell(p, &t, NULL);
    if (e)
        connection_lost(p, e);
    if (broken)
        pipe_fail_queue(p);
}

void pipe_flush_unlock(struct pipe *p)
{
    flush_unlock(p, reactor_mine == &p->ep->reactor);
}

void pipe_flush(struct pipe *p)
{
    pthread_mutex_lock(&p->lock);
    pipe_flush_unlock(p);
}

/* ---- small messages ---- */

void bundle_tell(const struct bundle *b, const tenrec_error *why)
{
    for (unsigned i = 0; i < b->n_done; i++)
        b->done[i].fn(b->done[i].arg, why);
}

/* The socket took `done` bytes of it, and then no more or an error: the rest precedes all requests
 * that were queued since. */
static void bundle_rest(struct pipe *p, struct conn *c, const struct bundle *b, size_t done, int e)
{
    struct send_request *request;

    pthread_mutex_lock(&p->lock);
    request = send_request_new_open(p, b->len);
    if (request) {
        send_request_fill(p, request, b, done);
        send_request_close(p, request);
        request->frames.next = c->first;
        if (!c->first)
            c->last = &request->frames;
        c->first = &request->frames;
        atomic_store(&c->waiting, true);
        note_full(p, c);
    }
    pthread_mutex_unlock(&p->lock);
    pipe_bound(p);
    if (e && e != EAGAIN)
        connection_lost(p, e);
    else if (!request)
        pipe_failf(p, TENREC_ENOMEM, 0, "no memory for bytes that did not fit into the socket");
    if (!request)
        bundle_tell(b, &p->why);
}

bool pipe_take_writing(struct pipe *p)
{
    struct conn *c = p->conns.of[CONN_DESCRIPTOR];

    if (atomic_load(&c->waiting) || !take_writing(c))
        return false;
    if (!atomic_load(&c->waiting) && pipe_state(p) == PIPE_ESTABLISHED)
        return true;
    atomic_store(&c->writing, false);
    return false;
}

void pipe_give_writing(struct pipe *p)
{
    atomic_store(&p->conns.of[CONN_DESCRIPTOR]->writing, false);
}

void pipe_write_taken(struct pipe *p, const struct bundle *b)
{
    struct conn *c = p->conns.of[CONN_DESCRIPTOR];
    struct iovec iov = { (void *)(uintptr_t)b->buf, b->len };
    ssize_t r;

    atomic_store_explicit(&c->writable, false, memory_order_relaxed);
    counter_bump(&p->queue.n_written, b->n_messages);
    r = conn_write(c, &iov, 1);
    if (r != (ssize_t)b->len)
        bundle_rest(p, c, b, r > 0 ? (size_t)r : 0, r < 0 ? (int)-r : 0);
    else if (b->n_done)
        bundle_tell(b, NULL);
    /* Gives the connection back and does what others left to the writer. */
    atomic_store(&c->writing, false);
    if (atomic_load(&c->waiting))
        pipe_flush(p);
    if (pipe_state(p) == PIPE_BROKEN)
        pipe_fail_queue(p);
}

void pipe_write_bundle(struct pipe *p, const struct bundle *b)
{
    if (pipe_take_writing(p)) {
        pipe_write_taken(p, b);
        return;
    }
    pipe_queue_bundle(p, b);
    pipe_flush(p);
}

/* ---- events ---- */

static bool any_full(const struct pipe *p)
{
    for (unsigned i = 0; i < p->conns.n; i++)
        if (p->conns.of[i] && atomic_load_explicit(&p->conns.of[i]->full, memory_order_relaxed))
            return true;
    return false;
}

void pipe_writable(struct pipe *p, struct conn *c)
{
    bool waits;

    /* Mostly no message is held up: skip the lock then. A writer sets the flag before
     * the socket can be full. */
    if (atomic_load(&p->role.taken) == ROLE_SPINS) {
        atomic_store(&c->writable, true);
        return;
    }
    if (!atomic_load(&c->writing) && !atomic_load(&c->full))
        return;
    pthread_mutex_lock(&p->lock);
    atomic_store(&c->writable, true);
    waits = atomic_exchange(&c->full, false);
    atomic_store(&p->conns.stuffed, any_full(p));
    pthread_mutex_unlock(&p->lock);
    if (waits)
        pipe_flush(p);
}

bool pipe_is_full(const struct pipe *p)
{
    return atomic_load_explicit(&p->conns.stuffed, memory_order_relaxed) && any_full(p);
}

static uint64_t pipe_bytes_sent(const struct pipe *p)
{
    uint64_t bytes = 0;

    for (unsigned i = 0; i < p->conns.n; i++)
        if (p->conns.of[i])
            bytes += atomic_load_explicit(&p->conns.of[i]->bytes_sent, memory_order_relaxed);
    return bytes;
}

bool pipe_push(struct pipe *p)
{
    uint64_t before;

    pthread_mutex_lock(&p->lock);
    before = pipe_bytes_sent(p);
    for (unsigned i = 0; i < p->conns.n; i++)
        if (p->conns.of[i])
            atomic_store(&p->conns.of[i]->full, false);
    atomic_store(&p->conns.stuffed, false);
    flush_unlock(p, true);
    return pipe_bytes_sent(p) != before;
}
