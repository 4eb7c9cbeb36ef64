/* SPDX-License-Identifier: Apache-2.0 */
/* send.c - messages on their way out: from any thread into a queue, and by the driver into
 * UCX. */
#include "send.h"
#include "conn.h"

#include <stdlib.h>
#include <time.h>

/* ---- the queue ----------------------------------------------------------------------- */

static tenrec_status send_find_route(struct ucx *u, struct tenrec_route route, struct conn **ret,
                                     tenrec_error *err)
{
    *ret = route.pipe < u->n_slots ? u->conn[route.pipe] : NULL;
    if (*ret && (*ret)->serial == route.generation && !(*ret)->shared.gone)
        return TENREC_OK;
    return tenrec_fail(err, TENREC_EPEER_LOST, "the caller's connection is gone");
}

/* The connection for requests to `to`, made here if there is none. With the lock. */
static tenrec_status send_find_conn(struct ucx *u, tenrec_peer to, struct conn **ret,
                                    tenrec_error *err)
{
    struct peer *p = to >= 0 && (uint32_t)to < u->n_peers ? u->peer[to] : NULL;

    if (!p || p->left)
        return tenrec_fail(err, TENREC_EPEER_UNKNOWN, "there is no worker %d", to);
    if (p->telling)
        return tenrec_fail(err, TENREC_EPEER_LOST, "worker \"%s\": its connection broke", p->name);
    if (!p->conn) {
        p->conn = conn_new(u, true, to);
        if (!p->conn)
            return tenrec_fail(err, TENREC_ENOMEM, "no memory for a connection to worker \"%s\"",
                               p->name);
        p->conn->incarnation = p->incarnation;
        snprintf(p->conn->address, sizeof p->conn->address, "%s", p->address);
        conn_name(p->conn);
    }
    *ret = p->conn;
    return TENREC_OK;
}

/* With the lock, which it gives up while it waits. */
static tenrec_status send_enqueue(struct ucx *u, tenrec_peer to, struct outgoing *o,
                                  tenrec_error *err)
{
    const bool may_wait = (o->msg->flags & TENREC_MSG_MAY_WAIT) && !drive_is_mine(u);
    const uint64_t until_ns = o->msg->deadline_ns ? o->msg->deadline_ns : CLOCK_NEVER;
    struct conn *c = NULL;
    tenrec_status st;

    for (;;) {
        if (!u->serving)
            return tenrec_fail(err, TENREC_ECANCELED, "%s is shut down", u->address);
        st = o->msg->route.generation ? send_find_route(u, o->msg->route, &c, err)
                                      : send_find_conn(u, to, &c, err);
        if (st != TENREC_OK)
            return st;
        if (c->shared.queued == 0 || (o->msg->flags & TENREC_MSG_CONTROL) ||
            (o->bytes <= u->opt->max_queued_bytes &&
             c->shared.queued <= u->opt->max_queued_bytes - o->bytes))
            break;
        if (!may_wait || !clock_cond_wait(&u->moved, &u->lock, until_ns))
            return tenrec_fail(err, TENREC_EAGAIN,
                               "%llu bytes wait to be written to %s; max_queued_bytes is %llu",
                               (unsigned long long)c->shared.queued, c->label,
                               (unsigned long long)u->opt->max_queued_bytes);
    }
    if (o->msg->route.generation && budget_take_locked(c, o->bytes, &o->charged, err) != TENREC_OK)
        return TENREC_EAGAIN;
    o->conn = c;
    c->shared.refs++;
    c->shared.queued += o->bytes;
    u->pending++;
    *u->out_last = o;
    u->out_last = &o->next;
    return TENREC_OK;
}

void send_message(struct tenrec_agent *self, tenrec_peer to, struct tenrec_msg *msg,
                  struct tenrec_done done)
{
    struct ucx *u = self->impl;
    tenrec_error err;
    struct outgoing *o = outgoing_new(msg, done, &err);
    tenrec_status st;
    bool drives = false;
    int wake = -1;

    if (!o) {
        msg->release(msg);
    } else {
        pthread_mutex_lock(&u->lock);
        st = send_enqueue(u, to, o, &err);
        if (st == TENREC_OK)
            drives = drive_try(u);
        if (st == TENREC_OK && !drives)
            wake = drive_waker(u);
        pthread_mutex_unlock(&u->lock);
        drive_wake(wake);
        if (drives) {
            progress_sends(u);
            drive_leave(u);
        }
        if (st == TENREC_OK)
            return;
        outgoing_free(o);
    }
    if (done.fn)
        done.fn(done.arg, &err);
}

/* ---- into UCX ------------------------------------------------------------------------ */

static void posted_add(struct outgoing *o)
{
    struct ucx *u = o->conn->u;

    o->next_posted = u->posted;
    if (u->posted)
        u->posted->prev_posted = o;
    u->posted = o;
    o->is_posted = true;
}

static void posted_remove(struct outgoing *o)
{
    if (!o->is_posted)
        return;
    if (o->prev_posted)
        o->prev_posted->next_posted = o->next_posted;
    else
        o->conn->u->posted = o->next_posted;
    if (o->next_posted)
        o->next_posted->prev_posted = o->prev_posted;
    o->is_posted = false;
}

static void send_part_ended(struct outgoing *o, ucs_status_t status)
{
    struct ucx *u = o->conn->u;

    if (status == UCS_OK)
        o->conn->used |= o->head.kind != HEAD_PROOF;
    else if (o->status == UCS_OK)
        o->status = status;
    if (--o->left > 0)
        return;
    posted_remove(o);
    o->next = NULL;
    *u->ended_last = o;
    u->ended_last = &o->next;
}

static void on_sent(void *request, ucs_status_t status, void *arg)
{
    struct outgoing *o = arg;

    ucp_request_free(request);
    o->conn->u->operations--;
    send_part_ended(o, status);
}

static ucs_status_t send_post_part(struct outgoing *o, const unsigned char *wire, const void *data,
                                   uint64_t len)
{
    /* A proof is read where it arrives. */
    const uint32_t eager = o->head.kind == HEAD_PROOF ? UCP_AM_SEND_FLAG_EAGER : 0;
    const ucp_request_param_t param = { .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
                                                        UCP_OP_ATTR_FIELD_USER_DATA |
                                                        UCP_OP_ATTR_FIELD_FLAGS,
                                        .flags = UCP_AM_SEND_FLAG_REPLY | eager,
                                        .cb.send = on_sent,
                                        .user_data = o };
    ucs_status_ptr_t st = ucp_am_send_nbx(o->conn->ep, UCX_AM, wire, HEAD_LEN, data, len, &param);

    if (UCS_PTR_IS_PTR(st)) {
        o->conn->u->operations++;
        return UCS_OK;
    }
    send_part_ended(o, UCS_PTR_STATUS(st));
    return UCS_PTR_STATUS(st);
}

/* Bytes that the receiver counts: of a message, not of the plugin's own heads. */
static uint64_t send_bytes(const struct outgoing *o)
{
    return o->msg ? o->bytes - HEAD_COST : 0;
}

static bool send_is_too_big(const struct outgoing *o)
{
    return o->conn->max_message && send_bytes(o) > o->conn->max_message;
}

/* Never leaves a gap in the sequence: the connection breaks when UCX refuses a part. */
static void send_post(struct outgoing *o)
{
    struct conn *c = o->conn;
    const uint32_t n = o->n_parts;
    ucs_status_t st;

    if (send_is_too_big(o)) {
        o->left = 1;
        send_part_ended(o, UCS_ERR_EXCEEDS_LIMIT);
        return;
    }
    if (o->head.kind != HEAD_TAKEN)
        o->head.sequence = c->window.sequence++;
    memcpy(o->head.cookie, c->proof.peer_cookie, sizeof o->head.cookie);
    head_write(o->wire, &o->head);
    c->window.sent += o->bytes;
    o->left = 1 + n;
    posted_add(o);
    st = send_post_part(o, o->wire, o->data, o->data_len);
    for (uint32_t i = 0; i < n; i++) {
        struct outgoing_part *part = &o->part[i];
        struct head h = { .kind = HEAD_PART, .sequence = o->head.sequence, .count = part->index };

        memcpy(h.cookie, c->proof.peer_cookie, sizeof h.cookie);
        head_write(part->wire, &h);
        if (st == UCS_OK)
            st = send_post_part(o, part->wire, part->data, part->len);
        else
            send_part_ended(o, st);
    }
    if (st != UCS_OK)
        conn_break(c, TENREC_EPEER_LOST, "UCX refuses to send: %s", ucs_status_string(st));
}

/* Requests wait for the end of the proof and for room in the window, large ones for the limit of
 * their receiver. */
static bool send_may_post(const struct outgoing *o)
{
    const struct conn *c = o->conn;

    return !c->proof.must_prove && (c->known || send_bytes(o) <= HEAD_MESSAGE_LEAST) &&
           c->window.sent - c->window.taken_by_peer < UCX_WINDOW;
}

static void send_post_or_wait(struct outgoing *o)
{
    struct conn *c = o->conn;

    if (!c->ended && c->why.code == TENREC_OK && c->outgoing && !c->ep)
        conn_connect(c);
    if (c->ended || c->why.code != TENREC_OK) {
        o->left = 1;
        send_part_ended(o, UCS_ERR_CANCELED);
    } else if (c->outgoing && (c->window.first || !send_may_post(o))) {
        o->next = NULL;
        *c->window.last = o;
        c->window.last = &o->next;
    } else {
        send_post(o);
    }
}

/* All that senders have queued. */
static struct outgoing *send_take_queued(struct ucx *u)
{
    struct outgoing *list;

    pthread_mutex_lock(&u->lock);
    list = u->out_first;
    u->out_first = NULL;
    u->out_last = &u->out_first;
    pthread_mutex_unlock(&u->lock);
    return list;
}

bool send_queued(struct ucx *u)
{
    struct outgoing *list = send_take_queued(u);

    if (!list)
        return false;
    while (list) {
        struct outgoing *o = list;

        list = o->next;
        send_post_or_wait(o);
    }
    return true;
}

static struct outgoing *send_wait_pop(struct conn *c)
{
    struct outgoing *o = c->window.first;

    c->window.first = o->next;
    if (!c->window.first)
        c->window.last = &c->window.first;
    return o;
}

void send_waiting(struct conn *c)
{
    while (c->window.first && !c->ended && c->why.code == TENREC_OK &&
           send_may_post(c->window.first))
        send_post(send_wait_pop(c));
}

static void send_fail_list(struct outgoing *list)
{
    while (list) {
        struct outgoing *o = list;

        list = o->next;
        o->left = 1;
        send_part_ended(o, UCS_ERR_CANCELED);
    }
}

void send_fail_waiting(struct conn *c)
{
    struct outgoing *list = c->window.first;

    c->window.first = NULL;
    c->window.last = &c->window.first;
    send_fail_list(list);
}

void send_fail_queued(struct ucx *u)
{
    send_fail_list(send_take_queued(u));
}

void send_fail_posted(struct ucx *u)
{
    while (u->posted) {
        u->posted->left = 1;
        send_part_ended(u->posted, UCS_ERR_CANCELED);
    }
}

/* Of the plugin itself: no message, no bytes that are counted. */
static void send_head(struct conn *c, const struct head *h, const void *data, size_t len)
{
    struct outgoing *o = calloc(1, sizeof *o);
    unsigned char *copy = len ? malloc(len) : NULL;

    if (!o || (len && !copy)) {
        free(o);
        free(copy);
        conn_break(c, TENREC_ENOMEM, "no memory for a head");
        return;
    }
    if (len)
        memcpy(copy, data, len);
    o->data = o->data_owned = copy;
    o->data_len = len;
    o->conn = c;
    conn_hold(c);
    o->head = *h;
    send_post(o);
}

void send_proof(struct conn *c, const void *bytes, size_t len)
{
    const struct head h = { .kind = HEAD_PROOF };
    unsigned char data[HEAD_COOKIE_LEN + UCX_PROOF_MAX];

    if (len > UCX_PROOF_MAX) {
        conn_break(c, TENREC_EPROTOCOL, "a proof of %zu bytes", len);
        return;
    }
    memcpy(data, c->proof.cookie, HEAD_COOKIE_LEN);
    memcpy(data + HEAD_COOKIE_LEN, bytes, len);
    send_head(c, &h, data, HEAD_COOKIE_LEN + len);
}

void send_hello(struct conn *c)
{
    const struct head h = { .kind = HEAD_HELLO,
                            .type = c->u->me,
                            .id = (int64_t)c->u->incarnation,
                            .count = (uint32_t)c->peer,
                            .length = c->incarnation,
                            .list_len = c->u->opt->max_message_bytes };

    send_head(c, &h, NULL, 0);
}

void send_taken(struct conn *c)
{
    const struct head h = { .kind = HEAD_TAKEN, .length = c->window.taken };

    c->window.taken_told = c->window.taken;
    send_head(c, &h, NULL, 0);
}

void send_bye(struct conn *c)
{
    const struct head h = { .kind = HEAD_BYE };

    c->said_bye = true;
    send_head(c, &h, NULL, 0);
}

void send_on(struct conn *c, struct tenrec_msg *msg)
{
    const struct tenrec_done none = { NULL, NULL };
    struct outgoing *o;
    tenrec_error err;
    bool fits;

    o = outgoing_new(msg, none, &err);
    if (!o) {
        msg->release(msg);
        conn_break(c, err.code, "%s", err.text);
        return;
    }
    o->conn = c;
    pthread_mutex_lock(&c->u->lock);
    fits = c->shared.queued <= c->u->opt->max_queued_bytes &&
           budget_take_locked(c, o->bytes, &o->charged, NULL) == TENREC_OK;
    c->shared.refs++;
    c->shared.queued += o->bytes;
    c->u->pending++;
    pthread_mutex_unlock(&c->u->lock);
    if (!fits)
        conn_break(c, TENREC_EAGAIN, "it does not read its answers");
    send_post_or_wait(o);
}

/* ---- the end of sends ---------------------------------------------------------------- */

static void send_complete_one(struct outgoing *o)
{
    struct conn *c = o->conn;
    struct ucx *u = c->u;
    const bool counted = o->msg != NULL;
    const uint64_t bytes = o->bytes;
    uint64_t charged = o->charged;
    const struct tenrec_done done = o->done;
    const bool ok = o->status == UCS_OK;
    tenrec_error err = c->why;

    if (!ok && u->stopping)
        tenrec_fail(&err, TENREC_ECANCELED, "%s is shut down", u->address);
    else if (!ok && send_is_too_big(o))
        tenrec_fail(&err, TENREC_ETOOBIG,
                    "a message of %llu bytes; %s takes %llu at most (its max_message)",
                    (unsigned long long)send_bytes(o), c->label,
                    (unsigned long long)c->max_message);
    else if (!ok && err.code == TENREC_OK)
        tenrec_fail(&err, TENREC_EPEER_LOST, "%s: %s", c->label, ucs_status_string(o->status));
    outgoing_free(o);
    if (counted && done.fn)
        done.fn(done.arg, ok ? NULL : &err);
    /* Last of all: drain waits for `pending`. */
    pthread_mutex_lock(&u->lock);
    budget_give(u, &charged);
    if (counted) {
        c->shared.queued -= bytes;
        u->pending--;
        u->sent += ok;
        pthread_cond_broadcast(&u->moved);
    }
    conn_drop_locked(c);
    pthread_mutex_unlock(&u->lock);
}

bool send_complete(struct ucx *u)
{
    const bool any = u->ended_first != NULL;

    while (u->ended_first) {
        struct outgoing *o = u->ended_first;

        u->ended_first = o->next;
        if (!u->ended_first)
            u->ended_last = &u->ended_first;
        send_complete_one(o);
    }
    return any;
}
