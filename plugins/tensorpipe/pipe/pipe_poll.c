/* SPDX-License-Identifier: Apache-2.0 */
/* pipe_poll.c - callers that read their answers themselves.
 *
 * A thread that waits for an answer acquires the reader's role of the pipe that carries the answer
 * and reads there until its wait is over, so a call costs no thread switch. One thread has the role
 * at a time; others queue up and are woken one by one when the reader leaves. */
#include "pipe/pipe.h"
#include "pipe/pipe_send.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

#define MASK_AFTER 2          /* polls in a row without another thread's send ... */
#define MASK_STEPS 4          /* ... or reads in one poll */
#define BUSY_POLL_NS 2000000u /* progress: busy spins so long before it sleeps */
#define CLOCK_EVERY 32        /* rounds of spinning between two readings of the clock */

static bool poll_is_done(const struct tenrec_wait *w)
{
    return __atomic_load_n(w->done, __ATOMIC_ACQUIRE) != 0;
}

/* Sleeps until the wake_fd is readable, or that of one of `also`. Returns false if the deadline has
 * passed. */
static bool poll_await(const struct tenrec_wait *w, const struct conn_sleep *also, unsigned n_also)
{
    struct pollfd set[3] = { { .fd = w->wake_fd, .events = POLLIN } };
    struct timespec limit;
    uint64_t ns = 0, n;

    for (unsigned i = 0; i < n_also; i++) {
        set[1 + i] = (struct pollfd){ .fd = also[i].fd, .events = POLLIN };
        if (also[i].ns && (!ns || also[i].ns < ns))
            ns = also[i].ns;
    }
    if (w->deadline_ns) {
        uint64_t now = clock_now_ns();

        if (now >= w->deadline_ns)
            return false;
        if (!ns || ns > w->deadline_ns - now)
            ns = w->deadline_ns - now;
    }
    limit = (struct timespec){ (time_t)(ns / 1000000000u), (long)(ns % 1000000000u) };
    if (ppoll(set, 1 + n_also, ns ? &limit : NULL, NULL) > 0 && (set[0].revents & POLLIN))
        while (read(w->wake_fd, &n, sizeof n) < 0 && errno == EINTR)
            continue;
    return true;
}

/* The same, or until one of the connections has data. */
static bool poll_await_data(const struct tenrec_wait *w, struct conn *const c[], unsigned n)
{
    struct conn_sleep sleep[2];
    bool in_time = true, may = true;
    unsigned asked;

    for (asked = 0; asked < n && may; asked++)
        may = c[asked]->stream->sleep(c[asked], &sleep[asked]);
    if (may)
        in_time = poll_await(w, sleep, n);
    for (unsigned i = 0; i < asked; i++)
        if (c[i]->stream->awake)
            c[i]->stream->awake(c[i]);
    return in_time;
}

/* The same, or until there is more to read from the pipe. */
static bool poll_await_pipe(const struct tenrec_wait *w, struct pipe *p)
{
    const struct reading *r = &p->read;
    struct conn *c[2];
    unsigned n = 0;

    if (r->more)
        return true;
    if (!r->front.ended && !reading_is_behind(r, false))
        c[n++] = p->conns.of[CONN_DESCRIPTOR];
    if (r->waiting)
        c[n++] = p->conns.of[r->back.want];
    return poll_await_data(w, c, n);
}

/* One poll of the one that reads. */
struct pipe_reader {
    struct pipe *p;
    const struct tenrec_wait *w;
    bool spinning; /* role.taken says so */
    bool counted;  /* in ep->spinners */
    bool waited;   /* in a read, once */
    unsigned steps;
};

/* In ep->spinners. */
static void reader_count(struct pipe_reader *r, bool counted)
{
    if (r->counted == counted)
        return;
    r->counted = counted;
    atomic_fetch_add_explicit(&r->p->ep->spinners, counted ? 1u : -1u, memory_order_relaxed);
}

/* From here on the kernel must report room. */
static void reader_stop_spinning(struct pipe_reader *r)
{
    r->spinning = false;
    reader_count(r, false);
    atomic_store(&r->p->role.taken, ROLE_TAKEN);
    if (pipe_is_full(r->p))
        pipe_push(r->p);
}

/* Reads without sleeping for a while. Returns true if bytes arrived. */
static bool reader_spin(struct pipe_reader *r, uint64_t for_ns)
{
    const struct tenrec_wait *w = r->w;
    uint64_t until = 0;
    bool full;

    r->spinning = true;
    atomic_store_explicit(&r->p->role.taken, ROLE_SPINS, memory_order_relaxed);
    for (unsigned round = 0;; round++) {
        /* Bytes that did not fit into the socket would else wait for the loop thread,
         * which may have to share a CPU with this one. */
        full = pipe_is_full(r->p);
        if (full && pipe_push(r->p))
            until = 0; /* the answer follows the last byte at the earliest */
        if (pipe_read(r->p, READ_NOW) != READ_NOTHING || poll_is_done(w))
            return true;
        if (round % CLOCK_EVERY == CLOCK_EVERY - 1) {
            uint64_t now = clock_now_ns();

            /* The agent counts short ones by its calls of poll. */
            reader_count(r, true);
            /* A peer that takes nothing has no processor: ours may be what it needs. */
            if (!until)
                until = now + (full && for_ns > SPIN_NS ? SPIN_NS : for_ns);
            if (now >= until || (w->deadline_ns && now >= w->deadline_ns))
                return false;
        }
    }
}

/* How long to spin before the next sleep. */
static uint64_t reader_spin_time(struct endpoint *ep, struct spin *s)
{
    switch (ep->progress) {
    case PROGRESS_BUSY:
        return BUSY_POLL_NS;
    case PROGRESS_ADAPTIVE:
        if (ep->one_cpu)
            return 0;
        if (!s->skip)
            return SPIN_NS;
        s->skip--;
        return 0;
    case PROGRESS_SLEEP:
        break;
    }
    return 0;
}

/* Waiting in a read saves one system call and two descriptor checks over ppoll and a read. But it
 * is deaf to the wake_fd (another thread gives the call up), so it is done once, for CONN_WAIT_MS,
 * and not near the deadline. */
static bool reader_may_wait(const struct pipe_reader *r)
{
    uint64_t deadline = r->w->deadline_ns;

    if (r->waited || r->p->read.waiting || !deadline)
        return !r->waited && !r->p->read.waiting;
    /* Some milliseconds old, in a fraction of the time. */
    return clock_about_ns() + UINT64_C(3000000) * CONN_WAIT_MS < deadline;
}

/* Returns false when the deadline has expired. */
static bool reader_step(struct pipe_reader *r)
{
    struct pipe *p = r->p;
    struct spin *s = &p->role.spin;
    uint64_t ns = reader_spin_time(p->ep, s);

    if ((atomic_load_explicit(&p->role.streak, memory_order_relaxed) >= MASK_AFTER ||
         ++r->steps >= MASK_STEPS) &&
        !atomic_load(&p->role.masked))
        role_mask_events(p);
    if (ns) {
        bool came = reader_spin(r, ns);

        /* No answer can arrive before the peer has taken the request. */
        if (p->ep->progress == PROGRESS_ADAPTIVE && (came || !pipe_is_full(p)))
            spin_ended(s, came);
        if (came)
            return true;
    }
    if (r->spinning)
        reader_stop_spinning(r);
    if (reader_may_wait(r)) {
        r->waited = pipe_read(p, READ_WAITING) == READ_NOTHING;
        return true;
    }
    if (!poll_await_pipe(r->w, p))
        return false;
    if (!poll_is_done(r->w))
        pipe_read(p, READ_NOW);
    return true;
}

tenrec_status pipe_poll(struct pipe *p, const struct tenrec_wait *w)
{
    struct waiter me = { .wake_fd = w->wake_fd };
    struct pipe_reader r = { .p = p, .w = w };
    bool reader, done, in_time = true;

    if (pipe_state(p) != PIPE_ESTABLISHED)
        return TENREC_EUNSUPPORTED;
    batch_flush_all();
    reader = role_enter(&p->role, &me);
    while (!(done = poll_is_done(w)) && in_time && pipe_state(p) == PIPE_ESTABLISHED) {
        if (reader)
            in_time = reader_step(&r);
        else
            in_time = poll_await(w, NULL, 0);
        if (!reader)
            reader = role_promote(&p->role, &me);
    }
    if (r.counted)
        reader_count(&r, false);
    if (reader)
        role_leave(p);
    else
        role_give_up(p, &me);
    if (pipe_is_full(p))
        pipe_push(p);
    /* Calls on a broken pipe are about to fail: the core waits for that. */
    return in_time && !done ? TENREC_EUNSUPPORTED : TENREC_OK;
}
