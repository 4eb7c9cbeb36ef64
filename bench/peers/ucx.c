/* SPDX-License-Identifier: Apache-2.0 */
/* ucx.c - UCX's active messages, each answered with one, and its reads and writes of remote memory.
 *
 *     ucx_peer latency|rate|bandwidth|get|put busy|sleep sm|tcp|tcp_peer|environment
 *
 * tcp_peer is tcp with endpoints that report the loss of their peer, as the backend ucx has them;
 * environment likewise, over what UCX_TLS and UCX_NET_DEVICES name.
 * A bare message is less than a call: it looks up no function and decodes no
 * result. */
#include "../driver.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <ucp/api/ucp.h>
#include <unistd.h>

enum { AM_ASK, AM_ANSWER, AM_END };

struct ucx {
    ucp_context_h context;
    ucp_worker_h worker;
    ucp_ep_h peer;
    struct trial *trial;
    unsigned char *data; /* sent by the caller; the callee's receive buffer */
    size_t got;          /* messages, at the callee; answers at the caller */
    ucp_rkey_h key;      /* of the callee's data, which is at `remote` there */
    uint64_t remote;
    bool ended;
};

static void must(ucs_status_t s, const char *what)
{
    if (s == UCS_OK)
        return;
    fprintf(stderr, "bench: ucx: %s: %s\n", what, ucs_status_string(s));
    _exit(1);
}

static void sent(void *request, ucs_status_t s, void *arg)
{
    (void)arg;
    must(s, "send");
    ucp_request_free(request);
}

static void post(struct ucx *u, unsigned id, const void *data, size_t n)
{
    ucp_request_param_t p = { .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK, .cb.send = sent };
    ucs_status_ptr_t r = ucp_am_send_nbx(u->peer, id, NULL, 0, data, n, &p);

    if (UCS_PTR_IS_ERR(r))
        must(UCS_PTR_STATUS(r), "ucp_am_send_nbx");
}

static void progress(struct ucx *u)
{
    if (ucp_worker_progress(u->worker))
        return;
    if (u->trial->busy)
        pair_relax();
    else
        ucp_worker_wait(u->worker);
}

/* ---- receiving ----------------------------------------------------------------------- */

static void answer(struct ucx *u)
{
    static const unsigned char bytes[PAIR_SMALL];

    if (u->got++ == 0 && u->trial->size > PAIR_SMALL)
        pair_expect("ucx", u->data, u->trial->size);
    post(u, AM_ANSWER, bytes, sizeof bytes);
}

static void fetched(void *request, ucs_status_t s, size_t n, void *arg)
{
    (void)n;
    must(s, "receive");
    ucp_request_free(request);
    answer(arg);
}

static ucs_status_t on_ask(void *arg, const void *head, size_t head_n, void *data, size_t n,
                           const ucp_am_recv_param_t *param)
{
    ucp_request_param_t p = { .op_attr_mask =
                                  UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA,
                              .cb.recv_am = fetched,
                              .user_data = arg };
    struct ucx *u = arg;
    ucs_status_ptr_t r;

    (void)head;
    (void)head_n;
    if (!(param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV)) {
        memcpy(u->data, data, n);
        answer(u);
        return UCS_OK;
    }
    r = ucp_am_recv_data_nbx(u->worker, data, u->data, n, &p);
    if (UCS_PTR_IS_ERR(r))
        must(UCS_PTR_STATUS(r), "ucp_am_recv_data_nbx");
    if (!r)
        answer(u);
    return UCS_OK;
}

static ucs_status_t on_answer(void *arg, const void *head, size_t head_n, void *data, size_t n,
                              const ucp_am_recv_param_t *param)
{
    (void)head;
    (void)head_n;
    (void)data;
    (void)n;
    (void)param;
    ((struct ucx *)arg)->got++;
    return UCS_OK;
}

static ucs_status_t on_end(void *arg, const void *head, size_t head_n, void *data, size_t n,
                           const ucp_am_recv_param_t *param)
{
    (void)head;
    (void)head_n;
    (void)data;
    (void)n;
    (void)param;
    ((struct ucx *)arg)->ended = true;
    return UCS_OK;
}

/* ---- both sides ------------------------------------------------------------------------- */

static void handle(struct ucx *u, unsigned id, ucp_am_recv_callback_t fn)
{
    ucp_am_handler_param_t p = { .field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID |
                                               UCP_AM_HANDLER_PARAM_FIELD_CB |
                                               UCP_AM_HANDLER_PARAM_FIELD_ARG,
                                 .id = id,
                                 .cb = fn,
                                 .arg = u };

    must(ucp_worker_set_am_recv_handler(u->worker, &p), "ucp_worker_set_am_recv_handler");
}

/* The caller leaves when all is measured. */
static void lost(void *arg, ucp_ep_h of, ucs_status_t s)
{
    (void)arg, (void)of;
    if (s != UCS_ERR_CONNECTION_RESET)
        must(s, "connection");
}

static void connect_to_other(struct ucx *u)
{
    ucp_address_t *own;
    unsigned char other[4096];
    size_t n;
    ucp_ep_params_t p = { .field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS,
                          .address = (ucp_address_t *)other };

    must(ucp_worker_get_address(u->worker, &own, &n), "ucp_worker_get_address");
    driver_say(u->trial, own, n);
    ucp_worker_release_address(u->worker, own);
    driver_hear(u->trial, other, sizeof other);
    if (!strcmp(u->trial->via, "tcp_peer") || !strcmp(u->trial->via, "environment")) {
        p.field_mask |= UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
        p.err_mode = UCP_ERR_HANDLING_MODE_PEER;
        p.err_handler.cb = lost;
    }
    must(ucp_ep_create(u->worker, &p, &u->peer), "ucp_ep_create");
}

/* ---- remote memory ----------------------------------------------------------------------- */

static bool is_remote(const struct trial *t)
{
    return !strcmp(t->mode, "get") || !strcmp(t->mode, "put");
}

/* The callee: registers its data, and says where they are. */
static void offer_data(struct ucx *u)
{
    ucp_mem_map_params_t p = { .field_mask =
                                   UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH,
                               .address = u->data,
                               .length = u->trial->size };
    const uint64_t at = (uintptr_t)u->data;
    ucp_mem_h memory;
    void *key;
    size_t n;

    pair_fill(u->data, u->trial->size);
    must(ucp_mem_map(u->context, &p, &memory), "ucp_mem_map");
    must(ucp_rkey_pack(u->context, memory, &key, &n), "ucp_rkey_pack");
    driver_say(u->trial, &at, sizeof at);
    driver_say(u->trial, key, n);
    ucp_rkey_buffer_release(key);
}

static void find_data(struct ucx *u)
{
    unsigned char key[4096];

    driver_hear(u->trial, &u->remote, sizeof u->remote);
    driver_hear(u->trial, key, sizeof key);
    must(ucp_ep_rkey_unpack(u->peer, key, &u->key), "ucp_ep_rkey_unpack");
}

static void await(struct ucx *u, ucs_status_ptr_t r)
{
    if (UCS_PTR_IS_ERR(r))
        must(UCS_PTR_STATUS(r), "remote memory");
    if (!r)
        return;
    while (ucp_request_check_status(r) == UCS_INPROGRESS)
        progress(u);
    must(ucp_request_check_status(r), "remote memory");
    ucp_request_free(r);
}

/* After the flush the bytes of a put are there. */
static void access_data(struct ucx *u, bool puts)
{
    const ucp_request_param_t p = { 0 };
    const size_t n = u->trial->size;

    await(u, puts ? ucp_put_nbx(u->peer, u->data, n, u->remote, u->key, &p)
                  : ucp_get_nbx(u->peer, u->data, n, u->remote, u->key, &p));
    if (puts)
        await(u, ucp_ep_flush_nbx(u->peer, &p));
}

static void check_data(struct ucx *u)
{
    if (!strcmp(u->trial->mode, "put"))
        access_data(u, true);
    memset(u->data, 0, u->trial->size);
    access_data(u, false);
    pair_expect("ucx", u->data, u->trial->size);
}

/* ---- the processes ------------------------------------------------------------------------- */

static struct ucx *make(struct trial *t)
{
    struct ucx *u = calloc(1, sizeof *u);
    ucp_params_t p = { .field_mask = UCP_PARAM_FIELD_FEATURES,
                       .features = UCP_FEATURE_AM | (t->busy ? 0 : UCP_FEATURE_WAKEUP) |
                                   (is_remote(t) ? UCP_FEATURE_RMA : 0) };
    ucp_worker_params_t w = { .field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
                              .thread_mode = UCS_THREAD_MODE_SINGLE };
    ucp_config_t *c;

    if (!u)
        pair_die("calloc");
    if (strcmp(t->via, "environment")) {
        setenv("UCX_TLS", strcmp(t->via, "sm") ? "tcp" : "sm", 1);
        setenv("UCX_NET_DEVICES", strcmp(t->via, "sm") ? "lo" : "all", 1);
    }
    u->trial = t;
    u->data = pair_memory(t->size, false);
    must(ucp_config_read(NULL, NULL, &c), "ucp_config_read");
    must(ucp_init(&p, c, &u->context), "ucp_init");
    ucp_config_release(c);
    must(ucp_worker_create(u->context, &w, &u->worker), "ucp_worker_create");
    handle(u, AM_ASK, on_ask);
    handle(u, AM_ANSWER, on_answer);
    handle(u, AM_END, on_end);
    connect_to_other(u);
    return u;
}

static int serve(struct trial *t)
{
    struct ucx *u = make(t);

    if (is_remote(t))
        offer_data(u);
    while (!u->ended)
        progress(u);
    return 0;
}

static void start(struct trial *t)
{
    struct ucx *u = make(t);

    pair_fill(u->data, t->size);
    t->state = u;
    if (!is_remote(t))
        return;
    find_data(u);
    check_data(u);
}

static void call(struct trial *t)
{
    struct ucx *u = t->state;
    size_t before = u->got;

    if (u->key) {
        access_data(u, !strcmp(t->mode, "put"));
        return;
    }
    post(u, AM_ASK, u->data, t->size);
    while (u->got == before)
        progress(u);
}

static void flood(struct trial *t, size_t calls)
{
    struct ucx *u = t->state;
    size_t end = u->got + calls, posted = u->got;

    while (u->got < end) {
        for (; posted < end && posted - u->got < PAIR_INFLIGHT; posted++)
            post(u, AM_ASK, u->data, t->size);
        progress(u);
    }
}

static void end(struct trial *t)
{
    struct ucx *u = t->state;
    ucp_request_param_t p = { 0 };
    ucs_status_ptr_t r;

    post(u, AM_END, NULL, 0);
    r = ucp_worker_flush_nbx(u->worker, &p);
    while (UCS_PTR_IS_PTR(r) && ucp_request_check_status(r) == UCS_INPROGRESS)
        ucp_worker_progress(u->worker);
}

#define UCX_WAY(name)                                                                              \
    {                                                                                              \
        .peer = "ucx", .via = name, .modes = "latency rate bandwidth get put",                     \
        .progress = "busy sleep", .serve = serve, .open = start, .call = call, .flood = flood,     \
        .close = end                                                                               \
    }

int main(int argc, char **argv)
{
    const struct way ways[] = { UCX_WAY("sm"), UCX_WAY("tcp"), UCX_WAY("tcp_peer"),
                                UCX_WAY("environment") };

    return driver_main(argc, argv, ways, sizeof ways / sizeof ways[0]);
}
