/* SPDX-License-Identifier: Apache-2.0 */
/* shm_watch.c - polls connections that wake no thread. */
#include "transport/tp_shm/shm_watch.h"
#include "endpoint.h"
#include "transport/conn.h"

/* The loop looks anyway before it sleeps: being run is all. */
static void look_run(struct reactor_task *t)
{
    (void)t;
}

void shm_watch_init(struct shm_watch *w)
{
    w->look_task.run = look_run;
}

void shm_watch_add(struct shm_watch *w, struct shm_medium *m)
{
    m->next = w->first;
    m->prev = &w->first;
    if (m->next)
        m->next->prev = &m->next;
    w->first = m;
    w->last_ns = now_ns();
    atomic_fetch_add(&w->n, 1);
}

void shm_watch_remove(struct shm_watch *w, struct shm_medium *m)
{
    if (!m->prev)
        return;
    *m->prev = m->next;
    if (m->next)
        m->next->prev = m->prev;
    m->prev = NULL;
    atomic_fetch_sub(&w->n, 1);
}

void shm_watch_wake(struct endpoint *ep)
{
    if (reactor_mine != &ep->reactor)
        reactor_post(&ep->reactor, &ep->shm->look_task);
}

/* Nothing comes on a reply connection that anybody waits for: tensors of ours
 * always say where they go. */
static bool is_expecting(const struct shm_medium *m)
{
    return (atomic_load_explicit(&m->hears, memory_order_relaxed) == HEARS_ALL &&
            m->conn->role != CONN_REPLY) ||
           atomic_load_explicit(&m->wants_room, memory_order_relaxed) || shm_link_owes(&m->link);
}

/* Returns true if the peer has written since the last poll. */
static bool has_news(struct shm_medium *m)
{
    uint64_t written = shm_link_written(&m->link);
    bool news = written != m->written;

    m->written = written;
    return news;
}

static bool has_room(struct shm_medium *m)
{
    if (!atomic_load(&m->wants_room) ||
        shm_link_taken(&m->link) == atomic_load_explicit(&m->taken, memory_order_relaxed))
        return false;
    atomic_store(&m->wants_room, false);
    return true;
}

/* `ret_news`: something happened, though others may have seen to it by now. */
static uint32_t look_at(struct shm_medium *m, bool *ret_news)
{
    bool again = atomic_load_explicit(&m->look_again, memory_order_relaxed) &&
                 atomic_exchange(&m->look_again, false);
    int hears = atomic_load(&m->hears);
    bool news = has_news(m);
    uint32_t events = 0;

    shm_link_tend(&m->link);
    if (hears == HEARS_ALL && (news || again) && shm_link_is_unread(&m->link))
        events |= EPOLLIN;
    if (has_room(m))
        events |= EPOLLOUT;
    if (again && hears != HEARS_NOTHING && atomic_load(&m->ended))
        events |= EPOLLIN | EPOLLRDHUP;
    *ret_news = news || (events & EPOLLOUT);
    return events;
}

uint64_t shm_watch_look(struct endpoint *ep)
{
    struct shm_watch *w = ep->shm;
    bool expecting = false, news;
    struct shm_medium *next;
    uint64_t now;

    if (!w->first)
        return UINT64_MAX;
    now = now_ns();
    for (struct shm_medium *m = w->first; m; m = next) {
        uint32_t events;

        /* Connections go only when the loop has come around (reactor_defer). */
        next = m->next;
        if (!is_expecting(m))
            continue;
        expecting = true;
        events = look_at(m, &news);
        if (news)
            w->last_ns = now;
        if (events)
            m->conn->on_events(m->conn, events);
    }
    if (!expecting)
        return UINT64_MAX;
    conn_count(&w->looks, 1);
    return shm_pause_ns(now - w->last_ns);
}
