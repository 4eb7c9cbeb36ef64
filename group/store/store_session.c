/* SPDX-License-Identifier: Apache-2.0 */
#include "group/store/store_session.h"

#include "core/base/clock.h"
#include "core/base/memory.h"
#include "group/store/store_answer.h"
#include "group/store/store_request.h"

#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#define FLUSH_AT ((size_t)64 << 10)
#define MAX_BEHIND ((size_t)1 << 20) /* bytes behind a waiting request */
#define TURN_STEPS 512               /* at most some 0.2 ms, but for a single long request */

tenrec_status store_hub_init(struct store_hub *hub, size_t limit)
{
    *hub = (struct store_hub){ .max_held = STORE_MAX_HELD };
    return store_table_init(&hub->table, limit);
}

void store_hub_finish(struct store_hub *hub)
{
    store_table_finish(&hub->table);
}

void store_session_make_ready(struct store_session *s)
{
    if (s->ready)
        return;
    s->ready = true;
    DL_APPEND2(s->hub->ready, s, ready_prev, ready_next);
}

static void make_unready(struct store_session *s)
{
    if (!s->ready)
        return;
    s->ready = false;
    DL_DELETE2(s->hub->ready, s, ready_prev, ready_next);
}

/* Returns true if the session hangs on `e`. Sessions wait one at a time, so its link is the last;
 * of those that watch there is one for each session. */
static bool hangs_on(const struct store_session *s, const struct store_entry *e,
                     enum store_link_kind kind)
{
    const struct store_link *link = e->links[kind];

    if (!link || kind != STORE_LINK_WATCH)
        return link && link->prev->owner == s;
    for (; link && link->owner != s; link = link->next)
        s->hub->walked++, s->hub->steps++;
    return link;
}

bool store_session_hang(struct store_session *s, struct store_entry *e, enum store_link_kind kind)
{
    struct store_link *link;

    if (hangs_on(s, e, kind))
        return true;
    if (!(link = store_entry_link(&s->hub->table, e, kind, s)))
        return false;
    DL_PREPEND2(s->links, link, owner_prev, owner_next);
    s->n_missing += kind == STORE_LINK_WAIT;
    return true;
}

void store_session_unhang(struct store_session *s, struct store_link *link)
{
    DL_DELETE2(s->links, link, owner_prev, owner_next);
    s->n_missing -= link->kind == STORE_LINK_WAIT;
    store_link_drop(&s->hub->table, link);
}

void store_session_unhang_all(struct store_session *s, int keep)
{
    struct store_link *link, *next;

    for (link = s->links; link; link = next) {
        struct store_entry *e = link->entry;
        next = link->owner_next;
        if ((int)link->kind == keep)
            continue;
        store_session_unhang(s, link);
        store_table_tidy(&s->hub->table, e);
    }
}

/* ---- the budget ----------------------------------------------------------------- */

static void session_account(struct store_session *s)
{
    const size_t now = s->in.len + s->out.len + s->unread;

    s->hub->held += now - s->held;
    s->held = now;
}

/* Closes a session at once: its memory is needed. */
static void session_evict(struct store_session *s)
{
    s->dead = true;
    bytes_free(&s->out);
    if (s != s->hub->running)
        bytes_free(&s->in);
    session_account(s);
    s->ops->close(s->arg,
                  "the peer held most of the 256 MiB that all connections may hold together");
}

static struct store_session *holds_most(const struct store_hub *hub)
{
    struct store_session *most = NULL;

    for (struct store_session *s = hub->sessions; s; s = s->next)
        if (!s->dead && (!most || s->held > most->held))
            most = s;
    return most;
}

static void session_charge(struct store_session *s)
{
    struct store_hub *hub = s->hub;
    struct store_session *most;

    session_account(s);
    /* The memory of a closed connection is freed soon, and counts until then. */
    while (hub->held > hub->max_held && (most = holds_most(hub)) && most->held > 0)
        session_evict(most);
}

void store_session_unread(struct store_session *s, size_t bytes)
{
    s->unread = bytes;
    session_charge(s);
}

void store_hub_expire(struct store_hub *hub, uint64_t now_ns)
{
    for (struct store_session *s = hub->sessions, *next; s; s = next) {
        next = s->next;
        if (s->begun_ns && !s->dead && now_ns > s->begun_ns + STORE_REQUEST_MS * UINT64_C(1000000))
            store_session_kill(s, "the peer's request was not whole after 30 s");
    }
}

/* ---- answers -------------------------------------------------------------------- */

static void session_flush(struct store_session *s)
{
    if (s->out.failed && !s->dead) {
        s->dead = true;
        s->ops->close(s->arg, "no memory for the peer's answer");
    }
    if (s->out.len && !s->dead)
        s->ops->write(s->arg, s->out.data, s->out.len);
    bytes_drop_front(&s->out, s->out.len);
    session_charge(s);
}

void store_session_flush_much(struct store_session *s)
{
    if (s->out.len >= FLUSH_AT)
        session_flush(s);
}

void store_session_kill(struct store_session *s, const char *why)
{
    if (s->dead)
        return;
    session_flush(s);
    s->dead = true;
    s->ops->close(s->arg, why);
}

void store_session_release(struct store_session *s)
{
    s->state = STORE_READING;
    bytes_add_u8(&s->out, 0);
    store_session_make_ready(s);
}

/* Returns true if the request that begins with `number` may run in this state. */
static bool may_run(const struct store_session *s, uint8_t number)
{
    return s->state == STORE_READING || number == store_op_number(s->dialect, STORE_OP_CANCEL_WAIT);
}

/* Continues to parse the request at `at`, and runs a whole one. Returns the request's length, 0
 * until it is done. */
static size_t run_request(struct store_session *s, size_t at)
{
    struct store_request r;
    const char *why = "";

    s->need = 0;
    switch (
        store_request_parse(&s->parser, s->dialect, s->in.data + at, s->in.len - at, &r, &why)) {
    case STORE_PARSE_WHOLE:
        s->spoke = true;
        s->hub->steps += 1 + r.n + r.len / 1024;
        if (!store_answer(s, &r))
            return 0;
        atomic_fetch_add(&s->hub->requests, 1);
        s->parser = (struct store_parser){ .at = 0 };
        s->n_answered = s->answered_len = 0;
        return r.len;
    case STORE_PARSE_PART:
        s->need = r.len;
        break;
    case STORE_PARSE_BAD:
        store_session_kill(s, why);
        break;
    }
    return 0;
}

/* An incomplete request has a deadline, from its first byte on. */
static void session_note_begin(struct store_session *s, bool ran)
{
    if (s->in.len == 0 || s->state != STORE_READING || s->ops->full(s->arg))
        s->begun_ns = 0;
    else if (!s->begun_ns || ran)
        s->begun_ns = clock_now_ns();
}

/* Runs the whole requests of a turn, as far as the session's state allows. */
static void run_session(struct store_session *s)
{
    const uint64_t end = s->ops->behind ? s->hub->steps + TURN_STEPS : UINT64_MAX;
    size_t at = 0, len = 1;

    s->hub->running = s;
    if (s->dialect == STORE_DIALECT_UNKNOWN)
        s->dialect = store_dialect_of(s->in.data, s->in.len);
    while (len > 0 && !s->dead && s->dialect != STORE_DIALECT_UNKNOWN &&
           s->in.len - at >= s->need && at < s->in.len && may_run(s, s->in.data[at])) {
        store_session_flush_much(s);
        if (s->dead || s->ops->full(s->arg))
            break;
        if (s->ops->behind && s->hub->steps >= end) {
            s->ops->behind(s->arg);
            break;
        }
        len = run_request(s, at);
        at += len;
    }
    s->hub->running = NULL;
    bytes_drop_front(&s->in, s->dead ? s->in.len : at);
    if (s->state == STORE_WAITING && s->in.len > MAX_BEHIND)
        store_session_kill(s, "the peer sent more than 1 MiB behind a request that still waits");
    session_flush(s);
    session_note_begin(s, at > 0);
}

static void run_ready(struct store_hub *hub)
{
    struct store_session *s;

    while ((s = hub->ready)) {
        make_unready(s);
        run_session(s);
    }
}

struct store_session *store_session_new(struct store_hub *hub, const struct store_session_ops *ops,
                                        void *arg)
{
    struct store_session *s = memory_new(1, sizeof *s);

    if (s) {
        s->hub = hub;
        s->ops = ops;
        s->arg = arg;
        DL_PREPEND(hub->sessions, s);
    }
    return s;
}

void store_session_drop(struct store_session *s)
{
    if (!s)
        return;
    store_session_unhang_all(s, -1);
    make_unready(s);
    DL_DELETE(s->hub->sessions, s);
    s->hub->held -= s->held;
    bytes_free(&s->in);
    bytes_free(&s->out);
    free(s);
}

bool store_session_has_spoken(const struct store_session *s)
{
    return s->spoke;
}

void store_session_feed(struct store_session *s, const void *data, size_t len)
{
    if (s->dead)
        return;
    bytes_add(&s->in, data, len);
    session_charge(s);
    if (s->in.failed)
        store_session_kill(s, "no memory for the peer's request");
    else if (!s->dead)
        run_session(s);
    run_ready(s->hub);
}

void store_session_resume(struct store_session *s)
{
    run_session(s);
    run_ready(s->hub);
}
