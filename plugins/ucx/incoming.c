/* SPDX-License-Identifier: Apache-2.0 */
/* incoming.c - turns arriving bytes into a message of the host. Every field is checked before it is
 * used. */
#include "conn.h"

#include <stdlib.h>

enum { LIST_MAX = 64 << 20 }; /* bytes of a list of tensors */

void incoming_free(struct incoming *in)
{
    if (in->msg)
        in->msg->release(in->msg);
    free(in->list);
    free(in->state);
    budget_give(in->conn->u, &in->charged);
    conn_drop(in->conn);
    free(in);
}
/* ---- fetching ------------------------------------------------------------------------ */

static void incoming_check_ready(struct conn *c)
{
    if (c->inbox.first && c->inbox.first->listed && c->inbox.first->left == 0)
        conn_ready(c);
}

static void incoming_read_list(struct incoming *in, const unsigned char *data, size_t len);

static void incoming_fetched(struct incoming *in, ucs_status_t status)
{
    struct conn *c = in->conn;

    if (in->orphan) {
        if (in->fetches == 0)
            incoming_free(in);
        return;
    }
    if (status != UCS_OK) {
        conn_break(c, TENREC_EPEER_LOST, "cannot fetch its data: %s", ucs_status_string(status));
        return;
    }
    in->left--;
    if (!in->listed)
        incoming_read_list(in, in->list, in->head.list_len + in->head.inline_len);
    incoming_check_ready(c);
}

static void on_fetched(void *request, ucs_status_t status, size_t length, void *arg)
{
    struct incoming *in = arg;
    struct conn *c = in->conn;
    const bool orphan = in->orphan;

    ucp_request_free(request);
    atomic_fetch_add(&c->inbox.arrived, length);
    c->u->operations--;
    in->fetches--;
    incoming_fetched(in, status);
    if (!orphan && c->inbox.held)
        receive_held(c);
}

void incoming_fetch(struct incoming *in, struct bytes *b, void *to)
{
    struct ucx *u = in->conn->u;
    const ucp_request_param_t param = { .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
                                                        UCP_OP_ATTR_FIELD_USER_DATA,
                                        .cb.recv_am = on_fetched,
                                        .user_data = in };
    ucs_status_ptr_t st;

    if (b->how != ANNOUNCED) {
        if (b->len)
            memcpy(to, b->data, b->len);
        incoming_fetched(in, UCS_OK);
        return;
    }
    b->taken = true;
    st = ucp_am_recv_data_nbx(u->worker, b->data, to, b->len, &param);
    if (UCS_PTR_IS_PTR(st)) {
        u->operations++;
        in->fetches++;
        return;
    }
    atomic_fetch_add(&in->conn->inbox.arrived, b->len);
    incoming_fetched(in, UCS_PTR_STATUS(st));
}

void incoming_skip(struct incoming *in)
{
    incoming_fetched(in, UCS_OK);
}
/* ---- messages ------------------------------------------------------------------------ */

static void incoming_fail(struct incoming *in, const tenrec_error *why)
{
    if (in->msg && in->state && in->state[0] == PART_HERE && in->msg->payload_len > 0) {
        in->n_begun = in->msg->payload_len < sizeof in->begun ? (uint32_t)in->msg->payload_len
                                                              : (uint32_t)sizeof in->begun;
        memcpy(in->begun, in->msg->payload, in->n_begun);
    }
    if (in->msg)
        in->msg->release(in->msg);
    in->msg = NULL;
    in->why = *why;
}

/* Bytes of the payload that are kept: none if it is too large. Tensors may be beside it. */
static uint64_t incoming_wanted(const struct incoming *in)
{
    return in->head.length > in->conn->u->opt->max_message_bytes ? 0 : in->head.length;
}

static struct tenrec_msg *incoming_make_message(struct incoming *in)
{
    struct conn *c = in->conn;
    struct ucx *u = c->u;
    struct tenrec_msg *msg = u->host->msg_new(u->self, incoming_wanted(in), in->head.count);

    if (!msg)
        return NULL;
    msg->type = in->head.type;
    msg->id = in->head.id;
    if (c->proof.proved)
        msg->flags |= TENREC_MSG_PROVED;
    if (!c->outgoing)
        msg->route = (struct tenrec_route){ c->slot, c->serial };
    return msg;
}

/* Reads all entries. Their bytes in the data must be there exactly. */
static tenrec_status incoming_read_entries(struct incoming *in, const unsigned char *at,
                                           uint64_t inline_len, uint64_t *ret_bytes,
                                           tenrec_error *err)
{
    const unsigned char *end = at + in->head.list_len;
    uint64_t all = in->head.length, here = 0;
    bool apart;

    if (in->head.flags & HEAD_APART)
        in->state[0] = PART_AWAITED;
    else
        here = in->head.length;
    for (uint32_t i = 0; i < in->head.count; i++) {
        const struct tenrec_tensor_desc *t = tenrec_msg_tensor(in->msg, i);

        if (head_tensor_read(&at, end, in->msg, i, &apart, err) != TENREC_OK)
            return err->code;
        if (t->target.kind != TENREC_CPU && t->target.kind != 0)
            return tenrec_fail(err, TENREC_EPROTOCOL, "tensor %u is for a device", i);
        if (apart)
            in->state[i + 1] = PART_AWAITED;
        if (t->same_storage)
            continue;
        if (__builtin_add_overflow(all, t->bytes, &all) ||
            (!apart && __builtin_add_overflow(here, t->bytes, &here)))
            return tenrec_fail(err, TENREC_EPROTOCOL, "its tensors take more than any memory");
    }
    if (at != end || here != inline_len)
        return tenrec_fail(err, TENREC_EPROTOCOL, "its list of tensors does not fit its data");
    *ret_bytes = all;
    return TENREC_OK;
}

static tenrec_status incoming_check_bytes(const struct incoming *in, uint64_t bytes,
                                          tenrec_error *err)
{
    const uint64_t most = in->conn->u->opt->max_message_bytes;

    if (bytes <= most)
        return TENREC_OK;
    return tenrec_fail(err, TENREC_ETOOBIG, "a message of %llu bytes; max_message is %llu",
                       (unsigned long long)bytes, (unsigned long long)most);
}

/* The host reads the payload when it places the tensors. */
static tenrec_status incoming_place(struct incoming *in, const unsigned char *at, tenrec_error *err)
{
    struct ucx *u = in->conn->u;
    tenrec_status st;

    if (in->state[0] == PART_HERE && in->head.length) {
        memcpy(in->msg->payload, at, in->head.length);
        at += in->head.length;
    }
    st = u->host->place(u->self, conn_from(in->conn), in->msg, err);
    if (st != TENREC_OK)
        return st;
    for (uint32_t i = 0; i < in->head.count; i++) {
        const struct tenrec_tensor_desc *t = tenrec_msg_tensor(in->msg, i);

        if (in->state[i + 1] != PART_HERE || t->same_storage || t->bytes == 0)
            continue;
        memcpy(t->data, at, t->bytes);
        at += t->bytes;
    }
    return TENREC_OK;
}

static void incoming_count(struct incoming *in, uint64_t bytes)
{
    in->cost = bytes + HEAD_COST;
    in->conn->window.held += in->cost;
}

/* Bytes that the message takes beside those of its tensors. */
static uint64_t incoming_overhead(const struct incoming *in)
{
    return sizeof *in + HEAD_COST + incoming_wanted(in) +
           (uint64_t)in->head.count * (1 + sizeof(struct tenrec_tensor_desc));
}

/* The list of tensors and what is with it have arrived. */
static void incoming_read_list(struct incoming *in, const unsigned char *data, size_t len)
{
    struct conn *c = in->conn;
    tenrec_error err;
    uint64_t bytes = 0;

    in->state = calloc((size_t)in->head.count + 1, 1);
    in->msg = in->state ? incoming_make_message(in) : NULL;
    if (!in->msg) {
        conn_break(c, TENREC_ENOMEM, "no memory for its message of %u tensors", in->head.count);
        return;
    }
    if (incoming_read_entries(in, data, len - in->head.list_len, &bytes, &err) != TENREC_OK) {
        conn_break(c, TENREC_EPROTOCOL, "%s", err.text);
        return;
    }
    in->listed = true; /* a message that is not is never delivered */
    incoming_count(in, bytes);
    for (uint32_t i = 0; i <= in->head.count; i++)
        in->left += in->state[i] == PART_AWAITED;
    if (budget_take(c, bytes - in->head.length, &in->charged, &err) != TENREC_OK ||
        incoming_check_bytes(in, bytes, &err) != TENREC_OK ||
        incoming_place(in, data + in->head.list_len, &err) != TENREC_OK)
        incoming_fail(in, &err);
}

static struct incoming *incoming_new(struct conn *c, const struct head *h)
{
    struct incoming *in = calloc(1, sizeof *in);

    if (!in)
        return NULL;
    in->conn = c;
    conn_hold(c);
    in->head = *h;
    in->left = 1;
    *c->inbox.last = in;
    c->inbox.last = &in->next;
    return in;
}

/* Payload and nothing else. */
static void incoming_begin_plain(struct incoming *in, struct bytes *b)
{
    struct conn *c = in->conn;
    tenrec_error err;

    if (in->head.list_len || in->head.flags || in->head.length != b->len) {
        conn_break(c, TENREC_EPROTOCOL, "a payload of %llu bytes in %zu",
                   (unsigned long long)in->head.length, b->len);
        return;
    }
    in->listed = true;
    incoming_count(in, b->len);
    if (b->len > c->u->opt->max_message_bytes)
        tenrec_fail(&err, TENREC_ETOOBIG, "a message of %zu bytes; max_message is %llu", b->len,
                    (unsigned long long)c->u->opt->max_message_bytes);
    else if (budget_take(c, incoming_overhead(in), &in->charged, &err) == TENREC_OK &&
             !(in->msg = incoming_make_message(in)))
        tenrec_fail(&err, TENREC_ENOMEM, "no memory for a message of %zu bytes", b->len);
    if (in->msg) {
        incoming_fetch(in, b, in->msg->payload);
    } else {
        incoming_fail(in, &err);
        incoming_skip(in);
    }
}

static void incoming_begin_listed(struct incoming *in, struct bytes *b)
{
    struct conn *c = in->conn;
    struct head *h = &in->head;
    tenrec_error err;

    if (h->list_len > LIST_MAX || h->list_len > b->len ||
        h->count > h->list_len / HEAD_TENSOR_LEAST || b->len - h->list_len > HEAD_INLINE_ALL ||
        h->length > INT64_MAX) {
        conn_break(c, TENREC_EPROTOCOL,
                   "a list of %llu bytes for %u tensors, and a payload of %llu, in %zu bytes",
                   (unsigned long long)h->list_len, h->count, (unsigned long long)h->length,
                   b->len);
        return;
    }
    h->inline_len = b->len - h->list_len;
    /* Without its list nothing is known of the parts to skip. */
    if (budget_take(c, incoming_overhead(in) + (b->how == ANNOUNCED ? b->len : 0), &in->charged,
                    &err) != TENREC_OK) {
        conn_break(c, TENREC_EAGAIN, "%s", err.text);
        return;
    }
    if (b->how != ANNOUNCED) {
        in->left--;
        incoming_read_list(in, b->data, b->len);
        incoming_check_ready(c);
        return;
    }
    in->list = malloc(b->len);
    if (in->list)
        incoming_fetch(in, b, in->list);
    else
        conn_break(c, TENREC_ENOMEM, "no memory for its list of %zu bytes", b->len);
}

void incoming_begin(struct conn *c, const struct head *h, struct bytes *b)
{
    struct incoming *in;

    if (!c->outgoing && c->window.held >= UCX_WINDOW) {
        conn_break(c, TENREC_EPROTOCOL, "it sends more than the window of %d bytes", UCX_WINDOW);
        return;
    }
    in = incoming_new(c, h);
    if (!in)
        conn_break(c, TENREC_ENOMEM, "no memory for its message");
    else if (h->count == 0)
        incoming_begin_plain(in, b);
    else
        incoming_begin_listed(in, b);
}
struct incoming *incoming_find(struct conn *c, uint64_t sequence)
{
    struct incoming *in = c->inbox.first;

    while (in && in->head.sequence != sequence)
        in = in->next;
    return in;
}

void incoming_drop_all(struct conn *c)
{
    while (c->inbox.first) {
        struct incoming *in = c->inbox.first;

        c->inbox.first = in->next;
        in->orphan = true;
        if (in->fetches == 0)
            incoming_free(in);
    }
    c->inbox.last = &c->inbox.first;
}
