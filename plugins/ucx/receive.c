/* SPDX-License-Identifier: Apache-2.0 */
/* receive.c - active messages on their way in, and their order. Parts that arrive before the list
 * of their tensors is read are held back, as are heads before their turn; both are rare. */
#include "conn.h"
#include "send.h"

#include <stdlib.h>

enum { HELD_MAX = 4096 }; /* active messages held back, per connection */

struct held {
    struct held *next;
    struct head head;
    struct bytes bytes;
    bool copied; /* data is ours */
    uint64_t charged;
};
/* ---- parts, hellos, notes ------------------------------------------------------------ */

static void receive_part(struct conn *c, struct incoming *in, const struct head *h, struct bytes *b)
{
    const struct tenrec_tensor_desc *t;
    void *to = NULL;
    uint64_t len;

    if (!in || !in->state || h->count > in->head.count || in->state[h->count] != PART_AWAITED) {
        conn_break(c, TENREC_EPROTOCOL, "part %u of a message that has no such part", h->count);
        return;
    }
    in->state[h->count] = PART_COMING;
    if (!in->msg) {
        incoming_skip(in);
        return;
    }
    if (h->count == 0) {
        to = in->msg->payload;
        len = in->head.length;
    } else {
        t = tenrec_msg_tensor(in->msg, h->count - 1);
        to = t->data;
        len = t->bytes;
    }
    if (b->len != len)
        conn_break(c, TENREC_EPROTOCOL, "part %u has %zu bytes, expected %llu", h->count, b->len,
                   (unsigned long long)len);
    else
        incoming_fetch(in, b, to);
}

static void receive_hello(struct conn *c, const struct head *h)
{
    struct ucx *u = c->u;

    if (!c->outgoing) {
        if ((tenrec_peer)h->count != u->me || h->length != u->incarnation) {
            conn_break(c, TENREC_EPROTOCOL, "it expects worker %d of another life",
                       (tenrec_peer)h->count);
            return;
        }
        if (!prove_agrees(c, h->type, (uint64_t)h->id)) {
            conn_break(c, TENREC_EPROTOCOL, "it claims to be worker %d, and has proved to be %d",
                       h->type, c->proof.id);
            return;
        }
        pthread_mutex_lock(&u->lock);
        c->peer = h->type < 0 ? TENREC_ANONYMOUS : h->type;
        c->incarnation = (uint64_t)h->id;
        conn_name(c);
        pthread_mutex_unlock(&u->lock);
    } else if (h->type != c->peer || (uint64_t)h->id != c->incarnation) {
        conn_break(c, TENREC_ECONNECT, "at %s is worker %d of another life", c->address, h->type);
        return;
    }
    c->known = true;
    c->max_message = h->list_len;
    u->unknown--;
    conn_read_lanes(c);
    fallback_check(c);
    if (!c->outgoing)
        send_hello(c);
    else
        send_waiting(c);
}

static void receive_bye(struct conn *c)
{
    if (!c->said_bye)
        send_bye(c);
    conn_break(c, TENREC_EPEER_LOST, "it has shut down");
}

static void receive_taken(struct conn *c, const struct head *h)
{
    if (!c->outgoing || h->length < c->window.taken_by_peer || h->length > c->window.sent) {
        conn_break(c, TENREC_EPROTOCOL, "it has taken %llu bytes of %llu",
                   (unsigned long long)h->length, (unsigned long long)c->window.sent);
        return;
    }
    c->window.taken_by_peer = h->length;
    send_waiting(c);
}
/* ---- order --------------------------------------------------------------------------- */

/* Returns true if `h` must be held back. */
static bool receive_is_early(struct conn *c, const struct head *h)
{
    const struct incoming *in;

    if (h->kind == HEAD_TAKEN)
        return !c->known;
    if (h->sequence >= c->inbox.sequence)
        return h->kind == HEAD_PART || h->sequence > c->inbox.sequence;
    in = h->kind == HEAD_PART ? incoming_find(c, h->sequence) : NULL;
    return in && !in->listed;
}

static void receive_one(struct conn *c, const struct head *h, struct bytes *b)
{
    if (h->kind == HEAD_PART) {
        receive_part(c, incoming_find(c, h->sequence), h, b);
        return;
    }
    if (h->kind == HEAD_TAKEN) {
        receive_taken(c, h);
        return;
    }
    if (h->sequence != c->inbox.sequence || (h->kind == HEAD_HELLO) == c->known) {
        conn_break(c, TENREC_EPROTOCOL, "kind %u at number %llu, expected number %llu", h->kind,
                   (unsigned long long)h->sequence, (unsigned long long)c->inbox.sequence);
        return;
    }
    c->inbox.sequence++;
    if (h->kind == HEAD_HELLO)
        receive_hello(c, h);
    else if (h->kind == HEAD_BYE)
        receive_bye(c);
    else
        incoming_begin(c, h, b);
}

static void held_free(struct ucx *u, struct held *held)
{
    if (held->copied)
        free(held->bytes.data);
    else if (!held->bytes.taken && held->bytes.data)
        ucp_am_data_release(u->worker, held->bytes.data);
    budget_give(u, &held->charged);
    free(held);
}

/* Delivers the messages that waited for an earlier one. */
void receive_held(struct conn *c)
{
    struct held **at = &c->inbox.held;

    while (*at && c->why.code == TENREC_OK) {
        struct held *held = *at;

        if (receive_is_early(c, &held->head)) {
            at = &held->next;
            continue;
        }
        *at = held->next;
        c->inbox.n_held--;
        receive_one(c, &held->head, &held->bytes);
        held_free(c->u, held);
        at = &c->inbox.held;
    }
}

static ucs_status_t receive_hold(struct conn *c, const struct head *h, const struct bytes *b)
{
    const uint64_t cost = sizeof(struct held) + (b->how == ANNOUNCED ? 0 : b->len);
    struct held *held = c->inbox.n_held < HELD_MAX ? calloc(1, sizeof *held) : NULL;
    tenrec_error err;

    if (held && budget_take(c, cost, &held->charged, &err) != TENREC_OK) {
        free(held);
        conn_break(c, TENREC_EAGAIN, "%s", err.text);
        return UCS_OK;
    }
    if (held && b->how == PLAIN) {
        held->copied = true;
        held->bytes.data = malloc(b->len + 1);
        if (held->bytes.data && b->len)
            memcpy(held->bytes.data, b->data, b->len);
    } else if (held) {
        held->bytes.data = b->data;
    }
    if (!held || !held->bytes.data) {
        if (held)
            budget_give(c->u, &held->charged);
        free(held);
        conn_break(c, TENREC_EPROTOCOL, "%u messages arrive before their turn", c->inbox.n_held);
        return UCS_OK;
    }
    held->head = *h;
    held->bytes.len = b->len;
    held->bytes.how = b->how;
    held->next = c->inbox.held;
    c->inbox.held = held;
    c->inbox.n_held++;
    return b->how == PLAIN ? UCS_OK : UCS_INPROGRESS;
}

static ucs_status_t on_active_message(void *arg, const void *header, size_t header_len, void *data,
                                      size_t len, const ucp_am_recv_param_t *param)
{
    struct ucx *u = arg;
    struct conn *c = param->recv_attr & UCP_AM_RECV_ATTR_FIELD_REPLY_EP
                         ? conn_of_endpoint(u, param->reply_ep)
                         : NULL;
    struct bytes b = { .data = data, .len = len };
    struct head h;
    tenrec_error err;
    tenrec_status st;

    if (!c || c->ended || c->why.code != TENREC_OK)
        return UCS_OK;
    if (!(param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV))
        atomic_fetch_add(&c->inbox.arrived, len);
    atomic_fetch_add(&c->inbox.arrived, HEAD_LEN);
    st = head_read(header, header_len, &h, &err);
    if (!prove_owns(c, st, &h, &err))
        return UCS_OK;
    if (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV)
        b.how = ANNOUNCED;
    else if (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_DATA)
        b.how = KEPT;
    if (prove_take(c, &h, &b))
        return UCS_OK;
    if (receive_is_early(c, &h))
        return receive_hold(c, &h, &b);
    receive_one(c, &h, &b);
    if (c->inbox.held)
        receive_held(c);
    return b.taken ? UCS_INPROGRESS : UCS_OK;
}

tenrec_status receive_open(struct ucx *u, tenrec_error *err)
{
    const ucp_am_handler_param_t param = {
        .field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_FLAGS |
                      UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG,
        .id = UCX_AM,
        .flags = UCP_AM_FLAG_WHOLE_MSG,
        .cb = on_active_message,
        .arg = u,
    };
    const ucs_status_t st = ucp_worker_set_am_recv_handler(u->worker, &param);

    return st == UCS_OK ? TENREC_OK
                        : tenrec_fail(err, TENREC_EOS, "UCX: cannot receive active messages: %s",
                                      ucs_status_string(st));
}

void receive_drop_all(struct conn *c)
{
    while (c->inbox.held) {
        struct held *held = c->inbox.held;

        c->inbox.held = held->next;
        held_free(c->u, held);
    }
    incoming_drop_all(c);
}
