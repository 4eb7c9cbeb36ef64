/* SPDX-License-Identifier: Apache-2.0 */
/* link_receive.c - tensors for devices, or from them, as they arrive. */
#include "cuda/link/link_parts.h"
#include "endpoint.h"

#include <stdlib.h>
#include <string.h>

/* ---- announced, on the thread that reads the pipe ---- */

static tenrec_status read_note(struct landing *at, struct nop_bytes note, tenrec_error *err)
{
    if (!link_is_note(note) ||
        note.len != (note.data[0] == NOTE_KIND + METHOD_IPC ? NOTE_IPC : NOTE_SHORT))
        return tenrec_fail(err, TENREC_EPROTOCOL,
                           "descriptor: a tensor of a device without a channel");
    at->method = (enum method)(note.data[0] - NOTE_KIND);
    at->number = get_le64(note.data + 1);
    if (at->method != METHOD_IPC)
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
    if (at->method != METHOD_BASIC &&
        (at->source.kind != TENREC_CUDA || at->target.kind != TENREC_CUDA))
        return tenrec_fail(err, TENREC_EPROTOCOL,
                           "descriptor: memory of the host is announced as a device's mapping");
    (*in)->left++;
    return TENREC_OK;
}

void link_drop_arriving(struct arriving *in)
{
    if (!in)
        return;
    if (in->msg)
        in->msg->release(in->msg);
    if (in->pipe)
        in->pipe->services->unref(in->pipe);
    free(in);
}

void link_hand_over(struct pipe *p, struct arriving *in, struct tenrec_msg *msg, int32_t type,
                    int64_t id, const tenrec_error *why)
{
    p->services->ref(p);
    in->pipe = p;
    in->msg = msg;
    in->type = type;
    in->id = id;
    in->skipped = msg == NULL;
    if (!msg)
        in->why = *why;
    pthread_mutex_lock(&p->lock);
    in->next = p->devices.handed;
    p->devices.handed = in;
    pthread_mutex_unlock(&p->lock);
    if (reactor_mine == &p->ep->reactor && p->devices.link)
        link_run(p);
    else
        p->services->post(p, &p->devices.task);
}

/* ---- the loop thread's ---- */

struct tenrec_tensor_desc *landing_tensor(const struct arriving *m, const struct landing *at)
{
    return m->msg ? tenrec_msg_tensor(m->msg, (uint32_t)(at - m->landing)) : NULL;
}

void link_skip(struct arriving *m, const tenrec_error *why)
{
    if (m->skipped)
        return;
    m->skipped = true;
    m->why = *why;
    if (m->msg)
        m->msg->release(m->msg);
    m->msg = NULL;
}

void link_finish(struct pipe *p, struct arriving *m)
{
    struct arriving **at = &p->devices.link->arriving;
    struct tenrec_msg *msg = m->msg;

    while (*at != m)
        at = &(*at)->next;
    *at = m->next;
    if (!*at)
        p->devices.link->last_arriving = at;
    m->msg = NULL;
    p->services->deliver(p, msg, m->type, m->id, &m->why);
    link_drop_arriving(m);
}

void link_landed(struct landing *at, struct arriving *m)
{
    if (at->is_there)
        return;
    at->is_there = true;
    m->left--;
}

/* Queues the copy, with the target entered for all calls of the driver. */
static tenrec_status landing_copy(struct pipe *p, struct landing *at,
                                  const struct tenrec_tensor_desc *t, tenrec_error *err)
{
    const bool entered = t && device_enter(t->device.index, NULL) == TENREC_OK;
    tenrec_status st = TENREC_OK;

    if (at->method == METHOD_XTH)
        st = link_copy_lent(p, at, t, err);
    else if (t)
        st = link_copy_mapped(p, at, t, err);
    else
        link_say_number(p, SAID_TAKEN, at->number);
    if (entered)
        device_leave();
    return st;
}

static void landing_land(struct pipe *p, struct arriving *m, struct landing *at)
{
    tenrec_status st;
    tenrec_error why;

    if (at->method == METHOD_BASIC)
        return;
    st = landing_copy(p, at, landing_tensor(m, at), &why);
    if (st == TENREC_EAGAIN && at->method == METHOD_IPC) {
        at->method = METHOD_BASIC;
        link_say_number(p, SAID_REFUSED, at->number);
        return;
    }
    link_landed(at, m);
    if (st)
        link_skip(m, &why);
}

static void link_receive(struct pipe *p, struct arriving *m)
{
    m->next = NULL;
    *p->devices.link->last_arriving = m;
    p->devices.link->last_arriving = &m->next;
    for (uint32_t i = 0; i < m->n; i++)
        if (m->landing[i].is_ours)
            landing_land(p, m, &m->landing[i]);
    if (!m->left)
        link_finish(p, m);
}

static struct arriving *take_handed(struct pipe *p)
{
    struct arriving *in, *first = NULL;

    pthread_mutex_lock(&p->lock);
    in = p->devices.handed;
    p->devices.handed = NULL;
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
            link_receive(p, in);
        else
            link_drop_arriving(in);
        in = next;
    }
}

bool link_failed(struct pipe *p, uint64_t number, const char *text, size_t len)
{
    struct arriving *m;
    struct landing *at = link_find(p->devices.link, number, &m);
    tenrec_error why;

    if (!at)
        return false;
    tenrec_fail(&why, TENREC_EREMOTE, "its sender could not send a tensor: %.*s", (int)len, text);
    link_landed(at, m);
    link_skip(m, &why);
    if (!m->left)
        link_finish(p, m);
    return true;
}

static void drop_all(struct arriving *in)
{
    while (in) {
        struct arriving *next = in->next;

        link_drop_arriving(in);
        in = next;
    }
}

void link_receive_broken(struct pipe *p)
{
    struct link *l = p->devices.link;

    drop_all(take_handed(p));
    drop_all(l->arriving);
    l->arriving = NULL;
    l->last_arriving = &l->arriving;
    link_pieces_broken(p);
}
