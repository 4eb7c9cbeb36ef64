#include "group/store_session.h"

#include "base/memory.h"
#include "group/store_answer.h"

#include <stdlib.h>
#include <string.h>

#define FLUSH_AT ((size_t)64 << 10)

tenrec_status store_hub_init(struct store_hub *hub, size_t limit)
{
    hub->first_ready = hub->last_ready = NULL;
    return store_table_init(&hub->table, limit);
}

void store_hub_finish(struct store_hub *hub)
{
    store_table_finish(&hub->table);
}

void store_session_make_ready(struct store_session *s)
{
    struct store_hub *hub = s->hub;

    if (s->ready)
        return;
    s->ready = true;
    s->ready_next = NULL;
    s->ready_prev = hub->last_ready;
    *(hub->last_ready ? &hub->last_ready->ready_next : &hub->first_ready) = s;
    hub->last_ready = s;
}

static void make_unready(struct store_session *s)
{
    struct store_hub *hub = s->hub;

    if (!s->ready)
        return;
    s->ready = false;
    *(s->ready_prev ? &s->ready_prev->ready_next : &hub->first_ready) = s->ready_next;
    *(s->ready_next ? &s->ready_next->ready_prev : &hub->last_ready) = s->ready_prev;
}

struct store_link *store_session_hang(struct store_session *s, struct store_entry *e,
                                      enum store_link_kind kind)
{
    struct store_link *link = store_entry_link(&s->hub->table, e, kind, s);

    if (!link)
        return NULL;
    link->owner_next = s->links;
    if (s->links)
        s->links->owner_prev = link;
    s->links = link;
    s->n_missing += kind == STORE_LINK_WAIT;
    return link;
}

void store_session_unhang(struct store_session *s, struct store_link *link)
{
    *(link->owner_prev ? &link->owner_prev->owner_next : &s->links) = link->owner_next;
    if (link->owner_next)
        link->owner_next->owner_prev = link->owner_prev;
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

static void flush(struct store_session *s)
{
    if (s->out.failed && !s->dead) {
        s->dead = true;
        s->ops->close(s->arg, "no memory for its answer");
    }
    if (s->out.len && !s->dead)
        s->ops->write(s->arg, s->out.data, s->out.len);
    bytes_drop_front(&s->out, s->out.len);
}

void store_session_kill(struct store_session *s, const char *why)
{
    if (s->dead)
        return;
    flush(s);
    s->dead = true;
    s->ops->close(s->arg, why);
}

void store_session_release(struct store_session *s)
{
    s->state = STORE_READING;
    bytes_add_u8(&s->out, 0);
    store_session_make_ready(s);
}

/* Whether the next byte, which comes while the session waits, may be taken. */
static bool may_take(const struct store_session *s, uint8_t number)
{
    return s->state == STORE_READING ||
           (s->state == STORE_WAITING &&
            number == store_op_number(s->dialect, STORE_OP_CANCEL_WAIT));
}

/* Runs the requests that are whole, as far as the session's state allows. */
static void run_session(struct store_session *s)
{
    struct store_request r;
    const char *why = "";
    size_t at = 0;

    if (s->dialect == STORE_DIALECT_UNKNOWN)
        s->dialect = store_dialect_of(s->in.data, s->in.len);
    while (!s->dead && s->dialect != STORE_DIALECT_UNKNOWN && s->in.len - at >= s->need &&
           at < s->in.len && may_take(s, s->in.data[at])) {
        if (s->out.len >= FLUSH_AT)
            flush(s);
        if (s->dead || s->ops->full(s->arg))
            break;
        s->need = 0;
        switch (store_request_parse(s->dialect, s->in.data + at, s->in.len - at, &r, &why)) {
        case STORE_PARSE_WHOLE:
            store_answer(s, &r);
            at += r.len;
            break;
        case STORE_PARSE_PART:
            s->need = r.len;
            break;
        case STORE_PARSE_BAD:
            store_session_kill(s, why);
            break;
        }
    }
    bytes_drop_front(&s->in, at);
    if (s->in.len > STORE_MAX_REQUEST)
        store_session_kill(s, "sent more than 32 MiB behind a request that still waits");
    flush(s);
}

static void run_ready(struct store_hub *hub)
{
    struct store_session *s;

    while ((s = hub->first_ready)) {
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
    }
    return s;
}

void store_session_drop(struct store_session *s)
{
    if (!s)
        return;
    store_session_unhang_all(s, -1);
    make_unready(s);
    bytes_free(&s->in);
    bytes_free(&s->out);
    free(s);
}

void store_session_feed(struct store_session *s, const void *data, size_t len)
{
    if (s->dead)
        return;
    bytes_add(&s->in, data, len);
    if (s->in.failed)
        store_session_kill(s, "no memory for its request");
    else
        run_session(s);
    run_ready(s->hub);
}

void store_session_resume(struct store_session *s)
{
    run_session(s);
    run_ready(s->hub);
}
