/* SPDX-License-Identifier: Apache-2.0 */
/* link_send.c - tensors of devices on their way out. */
#include "cuda/link/link_parts.h"
#include "endpoint.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define ORPHAN_NS UINT64_C(1000000000) /* that a peer whose pipe broke may go on reading */

/* ---- the end of what was lent ---- */

static void lent_free(struct lent *l)
{
    device_event_give(l->event);
    if (l->handover)
        handover_end(l->handover, true);
    l->pipe->services->unref(l->pipe);
    free(l);
}

void lent_end(struct lent *l)
{
    struct pipe *p = l->pipe;

    *l->prev = l->next;
    if (l->next)
        l->next->prev = l->prev;
    p->services->part_done(p, l->request);
    lent_free(l);
}

bool lent_is_done(const struct lent *l)
{
    return l->method == METHOD_BASIC && !l->busy && (l->stopped || l->issued == l->bytes);
}

void lent_failed(struct lent *l, const tenrec_error *why)
{
    unsigned char body[SAID_MAX] = { SAID_FAILED };
    const size_t n = strnlen(why->text, sizeof body - 9);

    if (l->stopped)
        return;
    l->stopped = true;
    l->waits = false;
    put_le64(body + 1, l->number);
    memcpy(body + 9, why->text, n);
    endpoint_log(l->pipe->ep, TENREC_LOG_WARN, "a tensor cannot be sent: %s", why->text);
    if (pipe_state(l->pipe) == PIPE_ESTABLISHED)
        link_say(l->pipe, body, 9 + n);
}

/* ---- messages ---- */

void link_take_back(struct pipe *p)
{
    struct link *l = p->devices.link;

    for (uint32_t i = 0; i < l->n_lending; i++)
        if (l->lending[i])
            lent_free(l->lending[i]);
    free(l->lending);
    l->lending = NULL;
    l->n_lending = 0;
}

tenrec_status link_lend(struct pipe *p, const struct tenrec_msg *msg, tenrec_error *err)
{
    struct link *link = p->devices.link;

    link->lending = calloc(msg->n_tensors, sizeof(struct lent *));
    if (!link->lending)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for %u tensors", msg->n_tensors);
    link->n_lending = msg->n_tensors;
    for (uint32_t i = 0; i < msg->n_tensors; i++) {
        const struct tenrec_tensor_desc *t = tenrec_msg_tensor(msg, i);
        struct lent *l;
        tenrec_status st;

        if (!tensor_is_on_device(t))
            continue;
        l = link->lending[i] = calloc(1, sizeof *l);
        if (!l) {
            link_take_back(p);
            return tenrec_fail(err, TENREC_ENOMEM, "no memory for a tensor");
        }
        p->services->ref(p);
        l->pipe = p;
        l->data = t->data;
        l->bytes = t->bytes;
        l->stream = (struct tenrec_stream){ t->device, t->stream };
        st = lent_choose(l, t, err);
        if (st) {
            tenrec_error_prefix(err, "tensor %u", i);
            link_take_back(p);
            return st;
        }
        l->note[0] = (unsigned char)(NOTE_KIND + l->method);
        put_le64(l->note + 1, l->number);
    }
    return TENREC_OK;
}

void link_put_note(struct pipe *p, struct send_request *request, uint32_t tensor,
                   struct descriptor_note *note)
{
    struct lent *l = p->devices.link->lending[tensor];

    l->request = request;
    request->parts++;
    note->len = l->note_len;
    memcpy(note->bytes, l->note, l->note_len);
}

void link_lent(struct pipe *p)
{
    struct link *link = p->devices.link;
    struct cuda *c = p->ep->cuda;
    struct lent **all = link->lending;
    const uint32_t n = link->n_lending;

    link->lending = NULL;
    link->n_lending = 0;
    for (uint32_t i = 0; i < n; i++) {
        struct lent *l = all[i];

        if (!l)
            continue;
        l->next = c->lent;
        l->prev = &c->lent;
        if (c->lent)
            c->lent->prev = &l->next;
        c->lent = l;
        counter_add(&c->sent[l->method], 1);
        if (l->method == METHOD_XTH) {
            c->inflight.lookouts++;
            inflight_list_look_soon(&c->inflight);
        }
    }
    for (uint32_t i = 0; i < n; i++)
        if (all[i] && all[i]->method == METHOD_BASIC)
            lent_pump(all[i]);
    free(all);
}

void link_greeted(struct pipe *p)
{
    link_receive_handed(p);
    while (p->services->send_device_message(p))
        continue;
}

/* ---- what the peer says, and what becomes of it without him ---- */

static struct lent *lent_find(struct pipe *p, uint64_t number)
{
    struct lent *l = p->ep->cuda->lent;

    while (l && !(l->pipe == p && l->method == METHOD_IPC && l->number == number))
        l = l->next;
    return l;
}

bool lent_taken(struct pipe *p, uint64_t number)
{
    struct lent *l = lent_find(p, number);

    if (l)
        lent_end(l);
    return l != NULL;
}

bool lent_refused(struct pipe *p, uint64_t number)
{
    struct lent *l = lent_find(p, number);
    struct cuda *c = p->ep->cuda;
    tenrec_error err;

    if (!l)
        return false;
    counter_add(&c->sent[0], 1);
    p->devices.link->refused[l->stream.device.index % DEVICES_MAX] = true;
    endpoint_log(p->ep, TENREC_LOG_INFO,
                 "\"%s\" cannot map memory of cuda:%d: tensors from there are staged",
                 p->outgoing ? p->to->name : p->remote.name, (int)l->stream.device.index);
    lent_in_pieces(l);
    if (!(c->methods & p->devices.link->methods & METHOD_BIT(METHOD_BASIC))) {
        tenrec_fail(&err, TENREC_EUNSUPPORTED,
                    "the memory cannot be mapped there, and cuda_basic is not listed by both");
        lent_failed(l, &err);
    }
    lent_pump(l);
    return true;
}

/* Returns true if the peer's process is gone, if known, or has had time enough. */
static bool orphan_is_over(const struct lent *l)
{
    return clock_now_ns() >= l->orphan_ns ||
           (l->pipe->remote.pid && kill(l->pipe->remote.pid, 0) != 0 && errno == ESRCH);
}

/* Loans and orphans end without a notification: poll them. */
void lent_look(struct inflight_list *fs)
{
    struct cuda *c = CONTAINER(fs, struct cuda, inflight);
    struct lent *l, *next;

    for (l = c->lent; l && fs->lookouts; l = next) {
        bool over = false;

        next = l->next;
        if (l->method == METHOD_XTH) {
            over = handover_end(l->handover, pipe_state(l->pipe) == PIPE_BROKEN);
            if (over)
                l->handover = NULL;
        } else if (l->orphan_ns) {
            over = orphan_is_over(l);
        }
        if (!over)
            continue;
        fs->lookouts--;
        lent_end(l);
    }
}

void lent_of_broken(struct pipe *p)
{
    struct cuda *c = p->ep->cuda;
    struct lent *l, *next;

    for (l = c->lent; l; l = next) {
        next = l->next;
        if (l->pipe != p)
            continue;
        l->stopped = true;
        l->waits = false;
        if (l->method == METHOD_IPC && !l->orphan_ns) {
            l->orphan_ns = clock_now_ns() + ORPHAN_NS;
            c->inflight.lookouts++;
        }
        if (lent_is_done(l))
            lent_end(l);
    }
    if (c->inflight.lookouts)
        inflight_list_look_soon(&c->inflight);
}
