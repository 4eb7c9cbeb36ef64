/* link_receive.c - tensors for devices, or from them, as they arrive. */
#include "agent/agent.h"
#include "cuda/link_parts.h"

#include <stdlib.h>
#include <string.h>

#define CONTAINER(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

/* ---- announced, by who reads the pipe ---- */

static tenrec_status read_note(struct landing *at, struct nop_bytes note, tenrec_error *err)
{
    if (!link_is_note(note) ||
        note.len != (note.data[0] == NOTE_KIND + WAY_IPC ? NOTE_IPC : NOTE_SHORT))
        return tenrec_fail(err, TENREC_EPROTOCOL,
                           "descriptor: a tensor of a device that does not say how it comes");
    at->way = (enum way)(note.data[0] - NOTE_KIND);
    at->number = get_le64(note.data + 1);
    if (at->way != WAY_IPC)
        return TENREC_OK;
    at->offset = get_le64(note.data + 9);
    at->key.base = get_le64(note.data + 17);
    at->key.buffer = get_le64(note.data + 25);
    memcpy(at->key.handle.bytes, note.data + 33, sizeof at->key.handle.bytes);
    memcpy(at->event.bytes, note.data + 97, sizeof at->event.bytes);
    return TENREC_OK;
}

tenrec_status link_announced(struct pipe *p, struct arriving **in, uint32_t n, uint32_t tensor,
                             struct nop_bytes note, const struct descriptor_tensor *t,
                             tenrec_error *err)
{
    struct landing *at;
    tenrec_status st;

    (void)p;
    if (!*in) {
        *in = calloc(1, sizeof **in + n * sizeof(struct landing));
        if (!*in)
            return tenrec_fail(err, TENREC_ENOMEM, "no memory for %u tensors", n);
        (*in)->n = n;
    }
    at = &(*in)->landing[tensor];
    st = read_note(at, note, err);
    if (st)
        return st;
    at->is_ours = true;
    at->len = t->length;
    device_from_wire(&t->source, &at->source);
    device_from_wire(&t->target, &at->target);
    if (at->way != WAY_BASIC && (at->source.kind != TENREC_CUDA || at->target.kind != TENREC_CUDA))
        return tenrec_fail(err, TENREC_EPROTOCOL,
                           "descriptor: memory of the host that shall be mapped as a device's");
    (*in)->left++;
    return TENREC_OK;
}

void link_drop_arriving(struct arriving *in)
{
    if (!in)
        return;
    if (in->msg)
        in->msg->release(in->msg);
    pipe_unref(in->pipe);
    free(in);
}

void link_hand_over(struct pipe *p, struct arriving *in, struct tenrec_msg *msg, int32_t type,
                    int64_t id, const tenrec_error *why)
{
    pipe_ref(p);
    in->pipe = p;
    in->msg = msg;
    in->type = type;
    in->id = id;
    in->skipped = msg == NULL;
    if (!msg)
        in->why = *why;
    pthread_mutex_lock(&p->lock);
    in->next = p->device_handed;
    p->device_handed = in;
    pthread_mutex_unlock(&p->lock);
    if (reactor_is_me(&p->agent->reactor) && p->link)
        link_run(p);
    else
        pipe_post(p, &p->device_task);
}

/* ---- the loop thread's ---- */

static struct tenrec_tensor_desc *tensor_of(const struct arriving *m, const struct landing *at)
{
    return m->msg ? tenrec_msg_tensor(m->msg, (uint32_t)(at - m->landing)) : NULL;
}

/* From now on what comes of it is thrown away. Copies that are queued end before
 * its memory is used again: both are in the order of one stream. */
static void skip(struct arriving *m, const tenrec_error *why)
{
    if (m->skipped)
        return;
    m->skipped = true;
    m->why = *why;
    if (m->msg)
        m->msg->release(m->msg);
    m->msg = NULL;
}

static void finish(struct pipe *p, struct arriving *m)
{
    struct arriving **at = &p->link->arriving;
    struct tenrec_msg *msg = m->msg;

    while (*at != m)
        at = &(*at)->next;
    *at = m->next;
    if (!*at)
        p->link->last_arriving = at;
    m->msg = NULL;
    message_deliver(p, msg, m->type, m->id, &m->why);
    link_drop_arriving(m);
}

static void landed(struct landing *at, struct arriving *m)
{
    if (at->is_there)
        return;
    at->is_there = true;
    m->left--;
}

/* ---- out of the sender's memory ---- */

/* A copy under way, and what must stay until it is done. */
struct copy {
    struct flight flight;
    struct pipe *pipe; /* owns a reference */
    uint64_t number;
    struct loan *loan;
    struct import *import;
};

static void copy_free(struct copy *c, bool tell)
{
    if (c->loan)
        loan_return(c->loan);
    if (c->import) {
        import_drop(c->import);
        if (tell && pipe_state(c->pipe) == PIPE_ESTABLISHED)
            link_say_number(c->pipe, SAID_TAKEN, c->number);
    }
    pipe_unref(c->pipe);
    free(c);
}

/* The message was delivered in the order of its stream: only the pipe is left to
 * tell. */
static void copy_failed(struct pipe *p, const tenrec_error *why)
{
    pipe_failf(p, why->code, 0, "a copy of a tensor has failed: %s", why->text);
}

static void copy_landed(struct flight *f, const tenrec_error *why)
{
    struct copy *c = CONTAINER(f, struct copy, flight);

    if (why)
        copy_failed(c->pipe, why);
    copy_free(c, true);
}

/* Queues it behind what is on the tensor's stream, and watches it. Takes `c`. */
static tenrec_status start_copy(struct copy *c, const struct tenrec_tensor_desc *t,
                                const void *from, tenrec_error *err)
{
    const struct tenrec_stream s = { t->device, t->stream };
    const int index = t->device.index;
    tenrec_status st = device_enter(index, err);

    if (!st) {
        st = DRIVER(copy, index, err, (uintptr_t)t->data, (uintptr_t)from, (size_t)t->bytes,
                    (void *)(uintptr_t)s.stream);
        if (!st) {
            st = flight_start(&c->pipe->agent->cuda.flights, &c->flight, &s, err);
            if (st)
                driver()->stream_sync((void *)(uintptr_t)s.stream);
        }
        device_leave();
    }
    if (st)
        copy_free(c, true);
    return st;
}

static struct copy *copy_new(struct pipe *p, uint64_t number, tenrec_error *err)
{
    struct copy *c = calloc(1, sizeof *c);

    if (!c) {
        tenrec_fail(err, TENREC_ENOMEM, "no memory for a copy");
        return NULL;
    }
    pipe_ref(p);
    c->pipe = p;
    c->number = number;
    c->flight.landed = copy_landed;
    return c;
}

static tenrec_status wait_for_loan(const struct tenrec_tensor_desc *t, const struct loan *loan,
                                   tenrec_error *err)
{
    const int index = t->device.index;
    tenrec_status st = device_enter(index, err);

    if (st)
        return st;
    st = DRIVER(stream_wait, index, err, (void *)(uintptr_t)t->stream, loan_event(loan)->event, 0);
    device_leave();
    return st;
}

static tenrec_status land_xth(struct pipe *p, struct landing *at,
                              const struct tenrec_tensor_desc *t, tenrec_error *err)
{
    struct loan *loan = p->link->same_process ? loan_take(at->number, at->len) : NULL;
    struct copy *c;
    tenrec_status st;

    if (!loan)
        return tenrec_fail(err, TENREC_EPROTOCOL, "a tensor of this process that nobody has lent");
    if (!t) {
        loan_return(loan);
        return TENREC_OK;
    }
    c = copy_new(p, at->number, err);
    if (!c) {
        loan_return(loan);
        return TENREC_ENOMEM;
    }
    c->loan = loan;
    st = wait_for_loan(t, loan, err);
    if (st) {
        copy_free(c, true);
        return st;
    }
    return start_copy(c, t, loan_data(loan), err);
}

/* EAGAIN: it cannot be mapped here; the sender is asked to stage it. */
static tenrec_status land_ipc(struct pipe *p, struct landing *at,
                              const struct tenrec_tensor_desc *t, tenrec_error *err)
{
    const struct link *l = p->link;
    const struct tenrec_stream s = { t->device, t->stream };
    const int there = at->source.index;
    const int here = there < (int)l->n_uuids ? device_of_uuid(l->uuid[there]) : -1;
    struct import *import;
    driver_address from;
    struct copy *c;
    tenrec_status st = TENREC_OK;

    memcpy(at->key.owner, l->token, sizeof at->key.owner);
    if (here >= 0 && !device_reaches(t->device.index, here))
        st = tenrec_fail(err, TENREC_EAGAIN, "cuda:%d does not reach cuda:%d", t->device.index,
                         here);
    if (!st)
        st = import_open(&at->key, t->device.index, at->offset, at->len, &import, &from, err);
    if (st == TENREC_EPROTOCOL) {
        pipe_failf(p, st, 0, "%s", err->text);
        return st;
    }
    if (st) {
        agent_log(p->agent, TENREC_LOG_DEBUG, "a tensor is asked for in pieces: %s", err->text);
        return TENREC_EAGAIN;
    }
    st = import_wait(&s, l->token, &at->event, err);
    c = st ? NULL : copy_new(p, at->number, err);
    if (!c) {
        import_drop(import);
        return st ? TENREC_EAGAIN : TENREC_ENOMEM;
    }
    c->import = import;
    return start_copy(c, t, (const void *)(uintptr_t)from, err);
}

static void land(struct pipe *p, struct arriving *m, struct landing *at)
{
    const struct tenrec_tensor_desc *t = tensor_of(m, at);
    tenrec_status st = TENREC_OK;
    tenrec_error why;

    if (at->way == WAY_BASIC)
        return;
    if (at->way == WAY_XTH) {
        st = land_xth(p, at, t, &why);
    } else if (!t) {
        link_say_number(p, SAID_TAKEN, at->number);
    } else {
        st = land_ipc(p, at, t, &why);
        if (st == TENREC_EAGAIN) {
            at->way = WAY_BASIC;
            link_say_number(p, SAID_REFUSED, at->number);
            return;
        }
    }
    landed(at, m);
    if (st)
        skip(m, &why);
}

static void receive(struct pipe *p, struct arriving *m)
{
    m->next = NULL;
    *p->link->last_arriving = m;
    p->link->last_arriving = &m->next;
    for (uint32_t i = 0; i < m->n; i++)
        if (m->landing[i].is_ours)
            land(p, m, &m->landing[i]);
    if (!m->left)
        finish(p, m);
}

static struct arriving *take_handed(struct pipe *p)
{
    struct arriving *in, *first = NULL;

    pthread_mutex_lock(&p->lock);
    in = p->device_handed;
    p->device_handed = NULL;
    pthread_mutex_unlock(&p->lock);
    while (in) {
        struct arriving *next = in->next;

        in->next = first;
        first = in;
        in = next;
    }
    return first;
}

void link_receive_handed(struct pipe *p)
{
    struct arriving *in = take_handed(p);

    while (in) {
        struct arriving *next = in->next;

        if (pipe_state(p) == PIPE_ESTABLISHED)
            receive(p, in);
        else
            link_drop_arriving(in);
        in = next;
    }
}

/* ---- in pieces ---- */

static struct landing *find(const struct link *l, uint64_t number, struct arriving **ret)
{
    for (struct arriving *m = l->arriving; m; m = m->next)
        for (uint32_t i = 0; i < m->n; i++) {
            struct landing *at = &m->landing[i];

            if (at->is_ours && at->way == WAY_BASIC && !at->is_there && at->number == number) {
                *ret = m;
                return at;
            }
        }
    return NULL;
}

bool link_knows(const struct link *l, uint64_t number)
{
    struct arriving *m;

    return find(l, number, &m) != NULL;
}

static void starve(struct pipe *p)
{
    struct cuda *c = &p->agent->cuda;
    struct link *l = p->link;

    if (l->is_starved)
        return;
    l->is_starved = true;
    l->next_starved = c->starved;
    c->starved = l;
    l->pipe = p;
    pipe_ref(p);
}

void link_feed(struct cuda *c)
{
    struct link *l = c->starved, *next;

    c->starved = NULL;
    for (; l; l = next) {
        struct pipe *p = l->pipe;

        next = l->next_starved;
        l->is_starved = false;
        if (pipe_state(p) == PIPE_ESTABLISHED)
            link_read(p);
        pipe_unref(p);
    }
}

/* A piece on its way from pinned memory to the device. */
struct piece_in {
    struct flight flight;
    struct pipe *pipe; /* owns a reference */
    struct staging_piece *piece;
};

static void piece_landed(struct flight *f, const tenrec_error *why)
{
    struct piece_in *i = CONTAINER(f, struct piece_in, flight);
    struct cuda *c = &i->pipe->agent->cuda;

    if (why)
        copy_failed(i->pipe, why);
    staging_give(&c->in, i->piece);
    pipe_unref(i->pipe);
    free(i);
    link_feed(c);
}

/* Nothing was done with it; others may wait for one. */
static void give_back(struct cuda *c, struct staging_piece *piece)
{
    staging_give(&c->in, piece);
    reactor_post(&c->agent->reactor, &c->task);
}

/* Where the next bytes go. False: not now; what else is wrong is the message's. */
static bool find_room(struct pipe *p, struct arriving *m, const struct landing *at)
{
    struct link *l = p->link;
    const struct tenrec_tensor_desc *t = tensor_of(m, at);
    tenrec_error why;
    tenrec_status st;

    l->in.piece = NULL;
    l->in.to = NULL;
    if (!t)
        return true;
    if (t->device.kind != TENREC_CUDA) {
        l->in.to = (unsigned char *)t->data + at->got;
        return true;
    }
    st = staging_get(&p->agent->cuda.in, t->device.index, &l->in.piece, &why);
    if (st == TENREC_EAGAIN) {
        starve(p);
        return false;
    }
    if (st)
        skip(m, &why);
    else
        l->in.to = l->in.piece->data;
    return true;
}

bool link_piece_begin(struct pipe *p, uint64_t number, uint64_t offset, uint64_t len)
{
    struct link *l = p->link;
    struct arriving *m;
    struct landing *at = find(l, number, &m);

    if (!at)
        return false; /* its message comes on another connection */
    if (offset != at->got || !len || len > STAGING_PIECE || len > at->len - at->got) {
        pipe_failf(p, TENREC_EPROTOCOL, 0, "sent %llu bytes of a tensor that were not expected",
                   (unsigned long long)len);
        return false;
    }
    if (!find_room(p, m, at))
        return false;
    l->in.on = true;
    l->in.number = number;
    l->in.len = len;
    l->in.got = 0;
    l->in.message = m;
    l->in.tensor = (uint32_t)(at - m->landing);
    return true;
}

/* Queues the copy of the piece that was read. */
static tenrec_status start_piece(struct pipe *p, const struct tenrec_tensor_desc *t, uint64_t at,
                                 struct staging_piece *piece, uint64_t len, tenrec_error *err)
{
    const struct tenrec_stream s = { t->device, t->stream };
    const int index = t->device.index;
    struct piece_in *i = calloc(1, sizeof *i);
    tenrec_status st;

    if (!i)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for a piece of a tensor");
    *i = (struct piece_in){ .flight.landed = piece_landed, .pipe = p, .piece = piece };
    st = device_enter(index, err);
    if (!st) {
        st = DRIVER(copy_from_host, index, err, (uintptr_t)t->data + at, piece->data, (size_t)len,
                    (void *)(uintptr_t)s.stream);
        if (!st) {
            st = flight_start(&p->agent->cuda.flights, &i->flight, &s, err);
            if (st)
                driver()->stream_sync((void *)(uintptr_t)s.stream);
        }
        device_leave();
    }
    if (st)
        free(i);
    else
        pipe_ref(p);
    return st;
}

void link_piece_end(struct pipe *p)
{
    struct cuda *c = &p->agent->cuda;
    struct link *l = p->link;
    struct arriving *m = l->in.message;
    struct landing *at = &m->landing[l->in.tensor];
    const struct tenrec_tensor_desc *t = tensor_of(m, at);
    tenrec_error why;

    l->in.on = false;
    if (l->in.piece && (!t || start_piece(p, t, at->got, l->in.piece, l->in.len, &why))) {
        give_back(c, l->in.piece);
        if (t)
            skip(m, &why);
    }
    l->in.piece = NULL;
    at->got += l->in.len;
    if (at->got == at->len)
        landed(at, m);
    if (!m->left)
        finish(p, m);
}

bool link_failed(struct pipe *p, uint64_t number, const char *text, size_t len)
{
    struct arriving *m;
    struct landing *at = find(p->link, number, &m);
    tenrec_error why;

    if (!at)
        return false;
    tenrec_fail(&why, TENREC_EREMOTE, "its sender could not send a tensor: %.*s", (int)len, text);
    landed(at, m);
    skip(m, &why);
    if (!m->left)
        finish(p, m);
    return true;
}

void link_receive_broken(struct pipe *p)
{
    struct link *l = p->link;
    struct arriving *in = take_handed(p), *next;

    for (; in; in = next) {
        next = in->next;
        link_drop_arriving(in);
    }
    in = l->arriving;
    l->arriving = NULL;
    l->last_arriving = &l->arriving;
    for (; in; in = next) {
        next = in->next;
        link_drop_arriving(in);
    }
    if (l->in.piece)
        give_back(&p->agent->cuda, l->in.piece);
    l->in.piece = NULL;
    l->in.on = false;
}
