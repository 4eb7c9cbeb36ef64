/* carrier_ring.c - bytes through rings in shared memory.
 *
 * Reading and writing are copies by the thread that wants them, without system
 * call. Who waits is woken in one of two ways, and only when it has said that it
 * sleeps: a thread that polls for its answer by a futex, since that takes one
 * system call to sleep; the loop thread, and who sleeps for long, by a bell that
 * is in the epoll set. The loop never takes the bell's count, for each ring is an
 * event of its own; it asks to be woken again only when it is about to sleep
 * (struct reactor_look), so that a busy loop costs its peers nothing.
 *
 * Events are edges, as with sockets: `seen` is how far the peer had written at the last
 * read or the last report. `got` is how far was read; the same number in shared memory is
 * the peer's to change, and so is never read.
 *
 * A ring whose peer moved a cursor to an impossible place is broken: from then on
 * no thread reads from it or writes to it. */
#include "transport/carrier_ring.h"
#include "agent/agent.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SMALL 4096      /* bytes of messages that are copied at once */
#define FALSE_ALARMS 16 /* wake-ups without news that a waiting read puts up with */

#define CONTAINER(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

/* Messages and small tensors should stay in a processor's own cache; large tensors
 * go through the channel's first rings, where more room lets both sides copy at
 * their own pace. */
static const uint64_t ring_size[] = {
    [CONN_DESCRIPTOR] = 128u << 10,
    [CONN_REPLY] = RING_SIZE_MIN,
    [CONN_CHANNEL] = 1u << 20,
    [CONN_CHANNEL + 1] = 16u << 10,
};

/* Published at once, so that the other side copies meanwhile. */
static size_t chunk_of(uint64_t size)
{
    return size < 1u << 20 ? 16u << 10 : 32u << 10;
}

enum state {
    RING_CALLED,  /* waits for the memory */
    RING_REACHED, /* the socket stands, the memory goes out next */
    RING_OPEN,
};

struct medium {
    struct conn *conn;
    struct ring_end end;
    enum state state; /* of the loop thread; RING_OPEN before anybody else comes */
    int error;        /* why it never opened */
    bool caller, watched, dropped;
    struct reactor_source bell;
    struct reactor_look look;
    struct reactor_task recheck;
    atomic_int hears; /* enum conn_hears */
    atomic_bool wants_room;
    atomic_bool ended;  /* the peer is gone, or we have cut it */
    atomic_bool broken; /* the peer's cursor is impossible */
    atomic_uint_fast64_t seen, got;
};

static long futex(_Atomic uint32_t *word, int op, uint32_t value, const struct timespec *limit)
{
    return syscall(SYS_futex, word, op, value, limit, NULL, 0);
}

static void ring_the(int bell)
{
    const uint64_t one = 1;

    /* When its count is full it has been rung often enough. */
    while (syscall(SYS_write, bell, &one, sizeof one) < 0 && errno == EINTR)
        continue;
}

static void wake_peer(struct medium *m, _Atomic uint32_t *word, uint32_t how)
{
    if (how & RING_FUTEX)
        futex(word, FUTEX_WAKE, 1, NULL);
    if (how & RING_BELL)
        ring_the(m->end.peer_bell);
}

/* Both sides' threads hear of the end: those of ours that sleep, now. */
static void end(struct medium *m)
{
    _Atomic uint32_t *word = m->state == RING_OPEN ? &m->end.in.words->reader_sleeps : NULL;

    if (atomic_exchange(&m->ended, true) || !word)
        return;
    ring_awake(word, RING_FUTEX);
    futex(word, FUTEX_WAKE, INT_MAX, NULL);
    ring_the(m->end.bell);
}

/* ---- reading ---- */

static long nonsense(struct medium *m)
{
    if (!atomic_exchange(&m->broken, true))
        agent_log(m->conn->agent, TENREC_LOG_WARN,
                  "process %d: impossible cursor in its ring; the connection ends",
                  (int)m->conn->pid);
    return -EPROTO;
}

static bool ring_is_broken(const struct medium *m)
{
    return atomic_load_explicit(&m->broken, memory_order_relaxed);
}

static void let_write(struct medium *m)
{
    wake_peer(m, &m->end.in.words->writer_sleeps, ring_writer_to_wake(&m->end.in));
}

static long take(struct medium *m, const struct iovec *iov, int n)
{
    struct ring_reader *r = &m->end.in;
    const size_t chunk = chunk_of(r->size);
    long total = 0;

    for (int i = 0; i < n; i++) {
        for (size_t at = 0; at < iov[i].iov_len;) {
            size_t left = iov[i].iov_len - at, part = left < chunk ? left : chunk;
            long got = ring_take(r, (char *)iov[i].iov_base + at, part, iov[i].iov_len);

            if (got < 0)
                return nonsense(m);
            if (got == 0)
                return total;
            ring_release(r);
            if (ring_should_look(r, false))
                let_write(m);
            at += (size_t)got;
            total += got;
            if ((size_t)got < part)
                return total;
        }
    }
    return total;
}

/* The same for small messages, which mostly lie there in one piece, with room for
 * all that has come. */
static long take_small(struct medium *m, const struct iovec *iov, int n)
{
    struct ring_reader *r = &m->end.in;
    const uint64_t head = ring_head(r), there = head - r->tail, at = r->tail & (r->size - 1);

    if (there == 0)
        return 0;
    if (n > 1 || there > SMALL || there > iov->iov_len || there > r->size - at)
        return take(m, iov, n);
    r->head = head;
    memcpy(iov->iov_base, r->data + at, (size_t)there);
    r->tail = head;
    ring_release(r);
    if (ring_should_look(r, false))
        let_write(m);
    return (long)there;
}

/* Sleeps until the writer says that there is something, or CONN_WAIT_MS. */
static void sleep_for_data(struct medium *m)
{
    const struct timespec limit = { 0, CONN_WAIT_MS * 1000000L };
    const struct ring_reader *r = &m->end.in;
    _Atomic uint32_t *word = &r->words->reader_sleeps;

    for (int i = 0; i < FALSE_ALARMS; i++) {
        uint32_t value;

        ring_sleep(word, RING_FUTEX);
        value = atomic_load_explicit(word, memory_order_relaxed);
        if (ring_head(r) != r->tail || atomic_load(&m->ended))
            break;
        if (!(value & RING_FUTEX))
            continue;
        if (futex(word, FUTEX_WAIT, value, &limit) < 0 && errno == ETIMEDOUT)
            break;
        if (ring_head(r) != r->tail)
            return; /* who woke us took the wish away */
    }
    ring_awake(word, RING_FUTEX);
}

static ssize_t ring_read(struct conn *c, struct iovec *iov, int n, bool wait)
{
    struct medium *m = c->medium;
    struct ring_reader *r = &m->end.in;
    bool ended;
    long got;

    if (m->state != RING_OPEN)
        return m->error ? -m->error : atomic_load(&m->ended) ? 0 : -EAGAIN;
    if (ring_is_broken(m))
        return -EPROTO;
    ended = atomic_load_explicit(&m->ended, memory_order_acquire);
    got = take_small(m, iov, n);
    if (got == 0 && !ended) {
        if (ring_should_look(r, true))
            let_write(m);
        if (!wait)
            return -EAGAIN;
        sleep_for_data(m);
        ended = atomic_load(&m->ended);
        got = take_small(m, iov, n);
    }
    if (got > 0) {
        atomic_store_explicit(&m->got, r->tail, memory_order_relaxed);
        atomic_store_explicit(&m->seen, r->tail, memory_order_relaxed);
    }
    return got || ended ? got : -EAGAIN;
}

/* ---- writing ---- */

/* Publishes what was staged, and wakes the reader if it sleeps. */
static void publish(struct medium *m)
{
    struct ring_writer *w = &m->end.out;

    ring_publish(w);
    wake_peer(m, &w->words->reader_sleeps, ring_reader_to_wake(w));
}

/* A message that has room in one piece. False: nothing was written. */
static bool write_small(struct medium *m, const struct iovec *iov)
{
    struct ring_writer *w = &m->end.out;
    const uint64_t at = w->head & (w->size - 1), room = w->size - (w->head - w->tail);
    const size_t len = iov->iov_len;

    if (len > SMALL || len > room || len > w->size - at)
        return false;
    memcpy(w->data + at, iov->iov_base, len);
    w->head += len;
    publish(m);
    return true;
}

static ssize_t ring_write(struct conn *c, struct iovec *iov, unsigned n)
{
    struct medium *m = c->medium;
    struct ring_writer *w = &m->end.out;
    const size_t chunk = chunk_of(w->size);
    ssize_t total = 0;
    size_t staged = 0;

    if (m->state != RING_OPEN || atomic_load_explicit(&m->ended, memory_order_relaxed))
        return -EPIPE;
    if (ring_is_broken(m))
        return -EPROTO;
    if (n == 1 && write_small(m, iov))
        return (ssize_t)iov->iov_len;
    for (unsigned i = 0; i < n; i++) {
        for (size_t at = 0; at < iov[i].iov_len;) {
            size_t left = iov[i].iov_len - at, part = left < chunk ? left : chunk;
            long put = ring_stage(w, (const char *)iov[i].iov_base + at, part);

            if (put < 0)
                return nonsense(m);
            at += (size_t)put;
            staged += (size_t)put;
            total += put;
            if ((size_t)put == part && staged < chunk)
                continue;
            if (staged)
                publish(m);
            staged = 0;
            if (put == 0)
                return total ? total : -EAGAIN;
        }
    }
    if (staged)
        publish(m);
    return total;
}

static bool ring_want_room(struct conn *c, bool quiet)
{
    struct medium *m = c->medium;
    struct ring_writer *w = &m->end.out;

    (void)quiet;
    if (m->state != RING_OPEN)
        return false;
    atomic_store(&m->wants_room, true);
    ring_sleep(&w->words->writer_sleeps, RING_BELL);
    if (ring_is_full(w) && !atomic_load(&m->ended) && !ring_is_broken(m))
        return false;
    ring_awake(&w->words->writer_sleeps, RING_BELL);
    atomic_store(&m->wants_room, false);
    return true;
}

/* ---- events, on the loop thread ---- */

static bool has_news(const struct medium *m)
{
    return ring_head(&m->end.in) != atomic_load_explicit(&m->seen, memory_order_relaxed);
}

/* What the loop wants to hear of, and has not. */
static uint32_t news(struct medium *m)
{
    uint32_t events = 0;
    uint64_t head;

    if (m->state != RING_OPEN)
        return 0;
    if (atomic_load(&m->wants_room) &&
        !(atomic_load(&m->end.out.words->writer_sleeps) & RING_BELL) &&
        atomic_exchange(&m->wants_room, false))
        events |= EPOLLOUT;
    if (atomic_load(&m->hears) == HEARS_ALL) {
        /* Who rang has taken our wish to be woken away. */
        reactor_look_add(&m->conn->agent->reactor, &m->look);
        head = ring_head(&m->end.in);
        if (head != atomic_load_explicit(&m->seen, memory_order_relaxed)) {
            atomic_store_explicit(&m->seen, head, memory_order_relaxed);
            events |= EPOLLIN;
        }
    }
    return events;
}

static void tell(struct medium *m)
{
    uint32_t events = m->dropped ? 0 : news(m);

    if (events)
        agent_conn_tell(m->conn, events);
}

static void bell_ready(struct reactor_source *s, uint32_t events)
{
    (void)events;
    tell(CONTAINER(s, struct medium, bell));
}

static void recheck_run(struct reactor_task *t)
{
    tell(CONTAINER(t, struct medium, recheck));
}

static void look_found(struct reactor_look *l)
{
    tell(CONTAINER(l, struct medium, look));
}

static enum reactor_looked look(struct reactor_look *l, bool sleeps)
{
    struct medium *m = CONTAINER(l, struct medium, look);
    _Atomic uint32_t *word = &m->end.in.words->reader_sleeps;

    if (atomic_load(&m->hears) != HEARS_ALL)
        return LOOK_NO_MORE;
    if (sleeps)
        ring_sleep(word, RING_BELL);
    if (!has_news(m))
        return sleeps ? LOOK_NO_MORE : LOOK_NOTHING;
    if (sleeps)
        ring_awake(word, RING_BELL);
    return LOOK_FOUND;
}

static int open_end(struct medium *m)
{
    struct reactor *r = &m->conn->agent->reactor;
    int e;

    m->bell = (struct reactor_source){ .fd = m->end.bell, .ready = bell_ready };
    e = reactor_watch(r, &m->bell, EPOLLIN | EPOLLET);
    if (e)
        return e;
    m->state = RING_OPEN;
    if (m->caller) /* what it still has to tell is the end */
        reactor_rewatch(r, &m->conn->source, EPOLLRDHUP | EPOLLET);
    reactor_look_add(r, &m->look);
    return 0;
}

static void take_memory(struct medium *m)
{
    const char *why;
    int e = ring_setup_answer(m->conn->source.fd, &m->end, &why);

    if (e == EAGAIN)
        return;
    if (!e) {
        why = "cannot watch its bell";
        e = open_end(m);
    }
    if (!e)
        return;
    m->error = e;
    if (e != ECONNRESET)
        agent_log(m->conn->agent, TENREC_LOG_WARN, "ring with process %d refused: %s",
                  (int)m->conn->pid, why);
}

static uint32_t ring_events(struct conn *c, uint32_t fetched)
{
    struct medium *m = c->medium;
    uint32_t room;

    if (m->dropped)
        return 0;
    if (m->state == RING_REACHED)
        return fetched & (EPOLLOUT | CONN_END);
    if (m->state == RING_CALLED && !m->error)
        take_memory(m);
    if (!(fetched & CONN_END) && !m->error)
        return news(m);
    end(m);
    room = atomic_exchange(&m->wants_room, false) ? EPOLLOUT : 0;
    return room | news(m) | EPOLLIN | EPOLLRDHUP;
}

void carrier_ring_reached(struct conn *c, int e)
{
    struct medium *m = c->medium;

    m->caller = true;
    m->error = e;
    m->state = RING_REACHED;
    if (!m->watched)
        return;
    if (!e)
        e = m->error =
            reactor_watch(&c->agent->reactor, &c->source, EPOLLOUT | EPOLLRDHUP | EPOLLET);
    if (e)
        agent_conn_tell(c, EPOLLERR);
}

static int ring_connected(struct conn *c)
{
    struct medium *m = c->medium;
    size_t role = c->role < CONN_CHANNEL + 1 ? c->role : CONN_CHANNEL + 1;

    if (!m->error)
        m->error = ring_setup_call(c->source.fd, ring_size[role], &m->end);
    if (!m->error)
        m->error = open_end(m);
    return m->error;
}

static int watch_socket(struct medium *m)
{
    struct conn *c = m->conn;

    m->watched = true;
    if (m->caller && m->state != RING_REACHED)
        return 0; /* carrier_ring_reached does */
    return reactor_watch(&c->agent->reactor, &c->source,
                         EPOLLRDHUP | EPOLLET | (m->caller ? EPOLLOUT : EPOLLIN));
}

static int ring_hear(struct conn *c, enum conn_hears what)
{
    struct medium *m = c->medium;
    _Atomic uint32_t *word;

    atomic_store(&m->hears, (int)what);
    if (!m->watched && what != HEARS_NOTHING)
        return watch_socket(m);
    if (m->state != RING_OPEN)
        return 0;
    word = &m->end.in.words->reader_sleeps;
    if (what != HEARS_ALL) {
        ring_awake(word, RING_BELL);
        return 0;
    }
    /* What was reported and not read is reported again. */
    atomic_store(&m->seen, atomic_load(&m->got));
    if (reactor_is_me(&c->agent->reactor)) {
        reactor_look_add(&c->agent->reactor, &m->look);
        return 0;
    }
    ring_sleep(word, RING_BELL);
    if (has_news(m) || atomic_load(&m->ended))
        reactor_post(&c->agent->reactor, &m->recheck);
    return 0;
}

/* ---- sleeping for longer than a futex should ---- */

static bool ring_sleep_long(struct conn *c, struct conn_sleep *ret)
{
    struct medium *m = c->medium;
    const struct ring_reader *r = &m->end.in;
    uint64_t count;

    /* It counts what nobody takes; the loop may have missed a ring by that. */
    if (read(m->end.bell, &count, sizeof count) > 0)
        reactor_post(&c->agent->reactor, &m->recheck);
    ring_sleep(&r->words->reader_sleeps, RING_BELL);
    *ret = (struct conn_sleep){ .fd = m->end.bell };
    return ring_head(r) == r->tail && !atomic_load(&m->ended);
}

static void ring_awake_long(struct conn *c)
{
    struct medium *m = c->medium;

    if (atomic_load(&m->hears) != HEARS_ALL)
        ring_awake(&m->end.in.words->reader_sleeps, RING_BELL);
}

/* ---- the end ---- */

static void ring_cut(struct conn *c)
{
    struct medium *m = c->medium;

    shutdown(c->source.fd, SHUT_RDWR);
    end(m);
}

static void ring_drop(struct conn *c)
{
    struct medium *m = c->medium;
    struct reactor *r = &c->agent->reactor;

    m->dropped = true;
    reactor_unwatch(r, &c->source);
    if (m->state == RING_OPEN)
        reactor_unwatch(r, &m->bell);
    reactor_look_remove(&m->look);
}

static void ring_free(struct conn *c)
{
    struct medium *m = c->medium;

    close(c->source.fd);
    if (!m)
        return;
    ring_end_close(&m->end);
    free(m);
}

static const struct carrier carrier_ring = {
    .passes_fds = true,
    .read = ring_read,
    .write = ring_write,
    .hear = ring_hear,
    .want_room = ring_want_room,
    .events = ring_events,
    .sleep = ring_sleep_long,
    .awake = ring_awake_long,
    .connected = ring_connected,
    .cut = ring_cut,
    .drop = ring_drop,
    .free = ring_free,
};

struct conn *carrier_ring_conn(struct agent *a, const struct transport *transport, int fd,
                               const union transport_address *peer)
{
    struct medium *m = calloc(1, sizeof *m);
    struct conn *c;

    if (!m) {
        close(fd);
        return NULL;
    }
    c = conn_new(a, transport, &carrier_ring, fd, peer);
    if (!c) {
        free(m);
        return NULL;
    }
    m->conn = c;
    m->look.look = look;
    m->look.found = look_found;
    m->recheck.run = recheck_run;
    c->medium = m;
    return c;
}
