/* SPDX-License-Identifier: Apache-2.0 */
/* ring_events.c - edges of the rings and of the socket beside them, for the loop thread. */
#include "endpoint.h"
#include "transport/ring/ring_medium.h"

/* Returns the events that the loop watches and that were not reported yet. */
static uint32_t events_news(struct ring_medium *m)
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
        /* The peer that rang took the wish for a bell away. */
        reactor_look_add(&m->conn->ep->reactor, &m->look);
        head = ring_head(&m->end.in);
        if (head != atomic_load_explicit(&m->seen, memory_order_relaxed)) {
            atomic_store_explicit(&m->seen, head, memory_order_relaxed);
            events |= EPOLLIN;
        }
    }
    return events;
}

static void events_tell(struct ring_medium *m)
{
    uint32_t events = m->conn->dropped ? 0 : events_news(m);

    if (events)
        m->conn->on_events(m->conn, events);
}

static void events_recheck(struct reactor_task *t)
{
    events_tell(CONTAINER(t, struct ring_medium, recheck));
}

static void events_found(struct reactor_look *l)
{
    events_tell(CONTAINER(l, struct ring_medium, look));
}

static enum reactor_looked events_look(struct reactor_look *l, bool sleeps)
{
    struct ring_medium *m = CONTAINER(l, struct ring_medium, look);
    _Atomic uint32_t *word = &m->end.in.words->reader_sleeps;

    if (atomic_load(&m->hears) != HEARS_ALL)
        return LOOK_NO_MORE;
    if (sleeps)
        bells_ask(&m->bells, word);
    if (!ring_medium_has_news(m))
        return sleeps ? LOOK_NO_MORE : LOOK_NOTHING;
    if (sleeps)
        ring_awake(word, RING_BELL);
    return LOOK_FOUND;
}

void ring_events_init(struct ring_medium *m)
{
    m->look.look = events_look;
    m->look.found = events_found;
    m->recheck.run = events_recheck;
}

uint32_t ring_events(struct conn *c, uint32_t fetched)
{
    struct ring_medium *m = c->medium;
    uint32_t room;

    if (m->bare)
        return m->error ? EPOLLERR : fetched;
    if (m->caller && m->state != RING_OPEN)
        return ring_opening_caller(m, fetched);
    if (m->state == RING_CALLED && !m->error)
        ring_opening_listener(m);
    else if (fetched & EPOLLIN)
        bells_take_as_loop(&m->bells);
    if (!(fetched & CONN_END) && !m->error)
        return events_news(m);
    ring_medium_end(m);
    room = atomic_exchange(&m->wants_room, false) ? EPOLLOUT : 0;
    return room | events_news(m) | EPOLLIN | EPOLLRDHUP;
}

int ring_events_hear(struct conn *c, enum conn_hears what)
{
    struct ring_medium *m = c->medium;
    _Atomic uint32_t *word;

    atomic_store(&m->hears, (int)what);
    if (!m->watched && what != HEARS_NOTHING)
        return ring_opening_watch(m);
    if (m->state != RING_OPEN)
        return 0;
    word = &m->end.in.words->reader_sleeps;
    if (what != HEARS_ALL) {
        ring_awake(word, RING_BELL);
        return 0;
    }
    /* Bytes that were reported and not read are reported again. */
    atomic_store(&m->seen, atomic_load(&m->got));
    if (reactor_mine == &c->ep->reactor) {
        reactor_look_add(&c->ep->reactor, &m->look);
        return 0;
    }
    bells_ask(&m->bells, word);
    if (ring_medium_has_news(m) || atomic_load(&m->ended))
        reactor_post(&c->ep->reactor, &m->recheck);
    return 0;
}
