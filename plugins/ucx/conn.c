/* SPDX-License-Identifier: Apache-2.0 */
/* conn.c - connections: one endpoint of UCX each, from their begin to the report of their loss. */
#include "conn.h"
#include "send.h"

#include <inttypes.h>
#include <stdlib.h>
#include <sys/socket.h>

/* ---- the table ----------------------------------------------------------------------- */

static bool table_grow(struct ucx *u)
{
    const uint32_t n = u->n_slots ? u->n_slots * 2 : 16;
    struct conn **more = realloc(u->conn, n * sizeof(struct conn *));

    if (!more)
        return false;
    memset(more + u->n_slots, 0, (n - u->n_slots) * sizeof(struct conn *));
    u->conn = more;
    u->n_slots = n;
    return true;
}

struct conn *conn_new(struct ucx *u, bool outgoing, tenrec_peer peer)
{
    struct conn *c;
    uint32_t slot = 0;

    while (slot < u->n_slots && u->conn[slot])
        slot++;
    if (slot == u->n_slots && !table_grow(u))
        return NULL;
    c = calloc(1, sizeof *c);
    if (!c)
        return NULL;
    c->u = u;
    c->slot = slot;
    c->serial = ++u->last_serial;
    c->outgoing = outgoing;
    c->proof.must_prove = u->proves;
    c->peer = peer;
    c->shared.refs = 1;
    c->window.last = &c->window.first;
    c->inbox.last = &c->inbox.first;
    u->conn[slot] = c;
    u->n_conns++;
    return c;
}

void conn_drop_locked(struct conn *c)
{
    if (--c->shared.refs == 0)
        free(c);
}

void conn_drop(struct conn *c)
{
    struct ucx *u = c->u;

    pthread_mutex_lock(&u->lock);
    conn_drop_locked(c);
    pthread_mutex_unlock(&u->lock);
}

void conn_hold(struct conn *c)
{
    pthread_mutex_lock(&c->u->lock);
    c->shared.refs++;
    pthread_mutex_unlock(&c->u->lock);
}

bool conn_at(struct ucx *u, uint32_t slot, struct conn **ret)
{
    bool ok;

    pthread_mutex_lock(&u->lock);
    ok = slot < u->n_slots;
    *ret = ok ? u->conn[slot] : NULL;
    pthread_mutex_unlock(&u->lock);
    return ok;
}

static struct conn **bucket_of(struct ucx *u, ucp_ep_h ep)
{
    return &u->bucket[((uintptr_t)ep >> 6) % UCX_BUCKETS];
}

struct conn *conn_of_endpoint(struct ucx *u, ucp_ep_h ep)
{
    struct conn *c = *bucket_of(u, ep);

    while (c && c->ep != ep)
        c = c->next_ep;
    return c;
}

static void bucket_remove(struct conn *c)
{
    struct conn **at = bucket_of(c->u, c->ep);

    while (*at && *at != c)
        at = &(*at)->next_ep;
    if (*at)
        *at = c->next_ep;
}

tenrec_peer conn_from_locked(const struct conn *c)
{
    const struct ucx *u = c->u;
    const tenrec_peer from = c->peer;

    if (c->outgoing)
        return from;
    if (from < 0 || (uint32_t)from >= u->n_peers || !u->peer[from] || u->peer[from]->left ||
        u->peer[from]->incarnation != c->incarnation)
        return TENREC_ANONYMOUS;
    return from;
}

tenrec_peer conn_from(struct conn *c)
{
    tenrec_peer from;

    pthread_mutex_lock(&c->u->lock);
    from = conn_from_locked(c);
    pthread_mutex_unlock(&c->u->lock);
    return from;
}

void conn_name(struct conn *c)
{
    const struct ucx *u = c->u;
    const char *role = c->outgoing ? "worker" : "caller";

    if (c->peer < 0)
        snprintf(c->label, sizeof c->label, "a %s that is no member", role);
    else if ((uint32_t)c->peer < u->n_peers && u->peer[c->peer])
        snprintf(c->label, sizeof c->label, "%s \"%s\"", role, u->peer[c->peer]->name);
    else
        snprintf(c->label, sizeof c->label, "%s %d", role, c->peer);
}

void conn_ready(struct conn *c)
{
    if (c->ready)
        return;
    c->ready = true;
    c->next_ready = c->u->ready;
    c->u->ready = c;
    conn_hold(c);
}

/* ---- begin --------------------------------------------------------------------------- */

static void on_error(void *arg, ucp_ep_h ep, ucs_status_t status)
{
    struct conn *c = arg;

    (void)ep;
    conn_break(c, c->known || c->used ? TENREC_EPEER_LOST : TENREC_ECONNECT, "%s",
               ucs_status_string(status));
}

/* With `params` that name the other side. */
static ucs_status_t open_endpoint(struct conn *c, ucp_ep_params_t *params, uint64_t ms)
{
    struct ucx *u = c->u;
    struct conn **at;
    ucs_status_t st;

    params->field_mask |= UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
    params->err_mode = UCP_ERR_HANDLING_MODE_PEER;
    params->err_handler = (ucp_err_handler_t){ on_error, c };
    st = ucp_ep_create(u->worker, params, &c->ep);
    if (st != UCS_OK) {
        c->ep = NULL;
        return st;
    }
    at = bucket_of(u, c->ep);
    c->next_ep = *at;
    *at = c;
    u->unknown++;
    c->deadline_ns = clock_now_ns() + ms * 1000000;
    return UCS_OK;
}

tenrec_status conn_connect(struct conn *c)
{
    struct sockaddr_storage to;
    ucp_ep_params_t params = { .field_mask =
                                   UCP_EP_PARAM_FIELD_FLAGS | UCP_EP_PARAM_FIELD_SOCK_ADDR,
                               .flags = UCP_EP_PARAMS_FLAGS_CLIENT_SERVER };
    ucs_status_t st;

    params.sockaddr.addrlen = (socklen_t)context_sockaddr(c->address, &to);
    params.sockaddr.addr = (const struct sockaddr *)&to;
    if (params.sockaddr.addrlen == 0) {
        conn_break(c, TENREC_ECONNECT, "its address is \"%s\", which is none of backend ucx",
                   c->address);
        return TENREC_ECONNECT;
    }
    st = open_endpoint(c, &params, c->u->opt->connect_timeout_ms);
    if (st != UCS_OK) {
        conn_break(c, TENREC_ECONNECT, "cannot connect to %s: %s", c->address,
                   ucs_status_string(st));
        return TENREC_ECONNECT;
    }
    if (!prove_dial(c))
        send_hello(c);
    return TENREC_OK;
}

void conn_accept(ucp_conn_request_h request, void *agent)
{
    struct ucx *u = agent;
    ucp_ep_params_t params = { .field_mask = UCP_EP_PARAM_FIELD_CONN_REQUEST,
                               .conn_request = request };
    struct conn *c = NULL;

    pthread_mutex_lock(&u->lock);
    if (u->serving && u->unknown < UCX_STRANGERS)
        c = conn_new(u, false, TENREC_ANONYMOUS);
    if (c)
        conn_name(c);
    pthread_mutex_unlock(&u->lock);
    if (!c) {
        ucp_listener_reject(u->listener, request);
        return;
    }
    if (open_endpoint(c, &params, UCX_HELLO_MS) != UCS_OK)
        conn_end(c);
}

/* ---- end ----------------------------------------------------------------------------- */

void conn_break(struct conn *c, tenrec_status code, const char *fmt, ...)
{
    struct ucx *u = c->u;
    va_list ap;

    if (c->ended || c->why.code != TENREC_OK)
        return;
    if (c->awaits_bye)
        u->byes--;
    c->awaits_bye = false;
    va_start(ap, fmt);
    tenrec_vfail(&c->why, code, fmt, ap);
    va_end(ap);
    if (c->proof.refusal.code != TENREC_OK)
        c->why = c->proof.refusal;
    tenrec_error_prefix(&c->why, "%s", c->label);
    conn_hold(c);
    c->next_broken = u->broken;
    u->broken = c;
}

static void on_closed(void *request, ucs_status_t status, void *arg)
{
    struct conn *c = arg;

    (void)status;
    c->u->operations--;
    conn_drop(c);
    ucp_request_free(request);
}

static void close_endpoint(struct conn *c)
{
    const ucp_request_param_t param = { .op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS |
                                                        UCP_OP_ATTR_FIELD_CALLBACK |
                                                        UCP_OP_ATTR_FIELD_USER_DATA,
                                        .flags = UCP_EP_CLOSE_FLAG_FORCE,
                                        .cb.send = on_closed,
                                        .user_data = c };
    ucs_status_ptr_t st;

    bucket_remove(c);
    if (!c->known)
        c->u->unknown--;
    conn_hold(c);
    st = ucp_ep_close_nbx(c->ep, &param);
    if (UCS_PTR_IS_PTR(st))
        c->u->operations++;
    else
        conn_drop(c);
    c->ep = NULL;
}

void conn_end(struct conn *c)
{
    struct ucx *u = c->u;

    if (c->ended)
        return;
    c->ended = true;
    pthread_mutex_lock(&u->lock);
    c->shared.gone = true;
    if (c->outgoing && u->peer[c->peer] && u->peer[c->peer]->conn == c)
        u->peer[c->peer]->conn = NULL;
    u->conn[c->slot] = NULL;
    u->n_conns--;
    pthread_cond_broadcast(&u->moved);
    pthread_mutex_unlock(&u->lock);
    prove_close(c);
    receive_drop_all(c);
    send_fail_waiting(c);
    if (c->ep)
        close_endpoint(c);
    conn_drop(c);
}

/* Returns true if the loss is to be reported. */
static bool end_one(struct conn *c, tenrec_peer *ret_from)
{
    struct ucx *u = c->u;
    bool report;

    *ret_from = conn_from(c);
    pthread_mutex_lock(&u->lock);
    report =
        !c->shared.told && !u->stopping && *ret_from != TENREC_ANONYMOUS && (c->known || c->used);
    c->shared.told = true;
    if (report && c->outgoing)
        u->peer[c->peer]->telling++;
    pthread_mutex_unlock(&u->lock);
    conn_end(c);
    return report;
}

bool conn_end_broken(struct ucx *u)
{
    const bool any = u->broken != NULL;

    while (u->broken) {
        struct conn *c = u->broken;
        tenrec_peer from;

        u->broken = c->next_broken;
        if (c->outgoing && !c->known && c->why.code == TENREC_ECONNECT && !u->stopping)
            context_check_refused(c->address, &c->why);
        u->host->log(u->self, TENREC_LOG_DEBUG, "connection ended: %s", c->why.text);
        if (end_one(c, &from)) {
            tenrec_error why = c->why;

            why.code = TENREC_EPEER_LOST;
            if (!c->outgoing) {
                u->host->caller_lost(u->self, from, &why);
            } else {
                u->host->peer_lost(u->self, from, &why);
                pthread_mutex_lock(&u->lock);
                u->peer[from]->telling--;
                pthread_mutex_unlock(&u->lock);
            }
        }
        conn_drop(c);
    }
    return any;
}

bool conn_end_detached(struct ucx *u)
{
    struct conn *list;
    bool any;

    pthread_mutex_lock(&u->lock);
    list = u->detached;
    u->detached = NULL;
    pthread_mutex_unlock(&u->lock);
    any = list != NULL;
    while (list) {
        struct conn *c = list;

        list = c->shared.next_detached;
        if (c->why.code == TENREC_OK)
            tenrec_fail(&c->why, TENREC_EPEER_LOST, "%s: disconnected", c->label);
        conn_end(c);
        conn_drop(c);
    }
    return any;
}

int conn_check_deadlines(struct ucx *u)
{
    const uint64_t now = clock_now_ns();
    uint64_t next = UINT64_MAX;
    struct conn *c;

    if (u->unknown == 0)
        return -1;
    for (uint32_t i = 0; conn_at(u, i, &c); i++) {
        if (!c || !c->ep || c->known)
            continue;
        if (c->deadline_ns <= now)
            conn_break(c, TENREC_ECONNECT, "no %s within %" PRIu64 " ms",
                       c->proof.must_prove ? "proof of the group secret" : "hello",
                       c->outgoing ? u->opt->connect_timeout_ms : (uint64_t)UCX_HELLO_MS);
        else if (c->deadline_ns < next)
            next = c->deadline_ns;
    }
    if (u->broken)
        return 0;
    return next == UINT64_MAX ? -1 : (int)((next - now) / 1000000 + 1);
}
