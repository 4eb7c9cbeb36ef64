/* SPDX-License-Identifier: Apache-2.0 */
/* carrier_ring.c - bytes through rings in shared memory.
 *
 * Reading and writing are copies by the thread that wants them, without system
 * call. A thread that waits is woken in one of two ways, and only after it has said
 * that it sleeps: a thread that polls for its answer by a futex, since that takes one
 * system call to sleep; the loop thread, and a thread that sleeps for long, by a bell:
 * a byte on the connection's socket, which is in the epoll set. The loop asks to be
 * woken again only when it is about to sleep (struct reactor_look), so that a busy loop
 * costs its peers nothing.
 *
 * A bell is sent without blocking; a socket that is full has bells enough that its owner
 * has not taken away. Each of them is an edge of epoll, and after each edge the loop
 * takes bells away first and then looks at the ring, so that it misses none. A thread
 * that sleeps in poll needs the byte to wake up: while there is such a thread (`sleeper`)
 * it takes the bells away, and the loop does not. No call blocks: whatever a peer does
 * to its own end of a socket, the flags of each call on ours are ours.
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
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SMALL 4096 /* bytes of messages that are copied at once */
#define EVENTS (EPOLLIN | EPOLLRDHUP | EPOLLET)
#define BLIND_NS UINT64_C(1000000) /* a sleep that no bell can end */
#define BELLS 256                  /* taken away at once */
#define BELLS_LEFT 32              /* the loop leaves so many, as they take no call to ignore */
#define FALSE_ALARMS 16            /* wake-ups without news that a waiting read puts up with */

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
    RING_CALLED,  /* waits for the memory, or for the socket */
    RING_REACHED, /* the socket stands, the memory goes out next */
    RING_ASKED,   /* the memory went out, the answer comes next */
    RING_OPEN,
};

struct medium {
    struct conn *conn;
    struct ring_end end;
    enum state state; /* of the loop thread; RING_OPEN before anybody else comes */
    int error;        /* why it never opened */
    bool caller, watched, dropped;
    struct reactor_look look;
    struct reactor_task recheck;
    atomic_int hears; /* enum conn_hears */
    atomic_bool wants_room;
    atomic_bool ended;  /* the peer is gone, or we have cut it */
    atomic_bool broken; /* the peer's cursor is impossible */
    atomic_uint_fast64_t seen, got;
    atomic_uint bells_due; /* that this side has asked for since it took them away */
    pthread_mutex_t bells; /* held to take them away */
    bool sleeper;          /* under it: a thread sleeps until a bell rings */
};

static long futex(_Atomic uint32_t *word, int op, uint32_t value, const struct timespec *limit)
{
    return syscall(SYS_futex, word, op, value, limit, NULL, 0);
}

static void ring_the_bell(const struct medium *m)
{
    const char bell = 0;

    while (send(m->conn->source.fd, &bell, 1, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 && errno == EINTR)
        continue;
}

/* On the socket of a reply connection, and of one that has no role yet, descriptors may
 * lie between the bells (channel/share.h): their reader takes both away. */
static bool bells_are_alone(const struct conn *c)
{
    return c->pipe && c->role != CONN_REPLY;
}

/* Takes bells away. Returns true if there were any. With the lock. */
static bool take_bells(const struct conn *c)
{
    char bells[BELLS];
    ssize_t n;

    do
        n = recv(c->source.fd, bells, sizeof bells, MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    return n > 0;
}

/* A peer rings at most once for each time that it is asked, so a count of those bounds the
 * bells in the socket. */
static void ask_for_bell(struct medium *m, _Atomic uint32_t *word)
{
    atomic_fetch_add_explicit(&m->bells_due, 1, memory_order_relaxed);
    ring_sleep(word, RING_BELL);
}

static void wake_peer(struct medium *m, _Atomic uint32_t *word, uint32_t how)
{
    if (how & RING_FUTEX)
        futex(word, FUTEX_WAKE, 1, NULL);
    if (how & RING_BELL)
        ring_the_bell(m);
}

/* Both sides' threads hear of the end: those of ours that sleep in a futex, now. Those
 * that sleep until a bell rings are woken by the end of the socket. */
static void end(struct medium *m)
{
    _Atomic uint32_t *word = m->state == RING_OPEN ? &m->end.in.words->reader_sleeps : NULL;

    if (atomic_exchange(&m->ended, true) || !word)
        return;
    ring_awake(word, RING_FUTEX);
    futex(word, FUTEX_WAKE, INT_MAX, NULL);
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
    ask_for_bell(m, &w->words->writer_sleeps);
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
        ask_for_bell(m, word);
    if (!has_news(m))
        return sleeps ? LOOK_NO_MORE : LOOK_NOTHING;
    if (sleeps)
        ring_awake(word, RING_BELL);
    return LOOK_FOUND;
}

static int open_end(struct medium *m)
{
    struct reactor *r = &m->conn->agent->reactor;
    /* Bells that came with the answer are an edge once more. */
    int e = m->caller ? reactor_rewatch(r, &m->conn->source, EVENTS) : 0;

    if (e)
        return e;
    m->state = RING_OPEN;
    reactor_look_add(r, &m->look);
    return 0;
}

/* The listener: the memory may have come. */
static void take_memory(struct medium *m)
{
    const char *why;
    int e = ring_setup_take(m->conn->source.fd, &m->end, &why);

    if (e == EAGAIN)
        return;
    if (!e) {
        why = "cannot watch its socket";
        e = open_end(m);
    }
    if (!e)
        return;
    m->error = e;
    if (e != ECONNRESET)
        agent_log(m->conn->agent, TENREC_LOG_WARN, "ring with process %d refused: %s",
                  (int)m->conn->pid, why);
}

/* The caller: from here on there is an answer, or none in time. */
static uint32_t caller_ended(struct medium *m, int e, const char *why)
{
    reactor_disarm(&m->conn->timer);
    m->error = e;
    m->conn->why = why;
    return e ? EPOLLERR : EPOLLOUT;
}

static void answer_late(struct reactor_timer *t)
{
    struct conn *c = CONTAINER(t, struct conn, timer);

    agent_conn_tell(c, caller_ended(c->medium, ETIMEDOUT, "the peer does not answer"));
}

/* For the answer to the memory. A peer that is not run for seconds is no reason to do without
 * rings; half of the handshake's limit is left for the next transport. */
static uint64_t answer_limit_ns(const struct agent *a)
{
    return a->options->handshake_timeout_ms * 500000u;
}

static uint32_t send_memory(struct medium *m)
{
    struct conn *c = m->conn;
    struct reactor *r = &c->agent->reactor;
    size_t role = c->role < CONN_CHANNEL + 1 ? c->role : CONN_CHANNEL + 1;
    int e = ring_setup_call(c->source.fd, ring_size[role], &m->end);

    if (e)
        return caller_ended(m, e, NULL);
    m->state = RING_ASKED;
    c->timer.fire = answer_late;
    reactor_arm(r, &c->timer, now_ns() + answer_limit_ns(c->agent));
    e = reactor_rewatch(r, &c->source, EVENTS);
    return e ? caller_ended(m, e, NULL) : 0;
}

static uint32_t take_answer(struct medium *m)
{
    const char *why;
    int e = ring_setup_answered(m->conn->source.fd, &why);

    if (e == EAGAIN)
        return 0;
    if (!e) {
        why = NULL;
        e = open_end(m);
    }
    return caller_ended(m, e, why);
}

/* Before it is open. */
static uint32_t caller_events(struct medium *m, uint32_t fetched)
{
    if (m->error)
        return EPOLLERR;
    switch (m->state) {
    case RING_REACHED:
        return fetched & (EPOLLOUT | CONN_END) ? send_memory(m) : 0;
    case RING_ASKED:
        return take_answer(m);
    default:
        return 0;
    }
}

/* Each bell is an edge for the loop, whether others lie before it or not: a few are left, for
 * to take each away would cost a sleeping loop one system call more for each call. */
static void take_bells_as_loop(struct medium *m)
{
    if (atomic_load_explicit(&m->bells_due, memory_order_relaxed) < BELLS_LEFT)
        return;
    atomic_store_explicit(&m->bells_due, 0, memory_order_relaxed);
    pthread_mutex_lock(&m->bells);
    if (!m->sleeper && bells_are_alone(m->conn))
        take_bells(m->conn);
    pthread_mutex_unlock(&m->bells);
}

static uint32_t ring_events(struct conn *c, uint32_t fetched)
{
    struct medium *m = c->medium;
    uint32_t room;

    if (m->dropped)
        return 0;
    if (m->caller && m->state != RING_OPEN)
        return caller_events(m, fetched);
    if (m->state == RING_CALLED && !m->error)
        take_memory(m);
    else if (fetched & EPOLLIN)
        take_bells_as_loop(m);
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

    return m->error || m->state == RING_OPEN ? m->error : ECONNRESET;
}

static int watch_socket(struct medium *m)
{
    struct conn *c = m->conn;

    m->watched = true;
    if (m->caller && m->state != RING_REACHED)
        return 0; /* carrier_ring_reached does */
    return reactor_watch(&c->agent->reactor, &c->source,
                         m->caller ? EPOLLOUT | EPOLLRDHUP | EPOLLET : EVENTS);
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
    ask_for_bell(m, word);
    if (has_news(m) || atomic_load(&m->ended))
        reactor_post(&c->agent->reactor, &m->recheck);
    return 0;
}

/* ---- sleeping for longer than a futex should ---- */

/* A bell that this thread takes away may have been the loop's. */
static void take_bells_as_sleeper(struct medium *m, bool sleeps)
{
    struct conn *c = m->conn;
    bool rang;

    pthread_mutex_lock(&m->bells);
    m->sleeper = sleeps;
    rang = bells_are_alone(c) && take_bells(c);
    pthread_mutex_unlock(&m->bells);
    if (rang && (atomic_load(&m->hears) == HEARS_ALL || atomic_load(&m->wants_room)))
        reactor_post(&c->agent->reactor, &m->recheck);
}

static bool ring_sleep_long(struct conn *c, struct conn_sleep *ret)
{
    struct medium *m = c->medium;
    const struct ring_reader *r = &m->end.in;

    take_bells_as_sleeper(m, true);
    ask_for_bell(m, &r->words->reader_sleeps);
    *ret = bells_are_alone(c) ? (struct conn_sleep){ .fd = c->source.fd }
                              : (struct conn_sleep){ .fd = -1, .ns = BLIND_NS };
    return ring_head(r) == r->tail && !atomic_load(&m->ended);
}

static void ring_awake_long(struct conn *c)
{
    struct medium *m = c->medium;

    take_bells_as_sleeper(m, false);
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
    reactor_look_remove(&m->look);
}

static void ring_free(struct conn *c)
{
    struct medium *m = c->medium;

    close(c->source.fd);
    if (!m)
        return;
    ring_end_close(&m->end);
    pthread_mutex_destroy(&m->bells);
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
    pthread_mutex_init(&m->bells, NULL);
    m->look.look = look;
    m->look.found = look_found;
    m->recheck.run = recheck_run;
    c->medium = m;
    return c;
}
