/* SPDX-License-Identifier: Apache-2.0 */
/* node.c - a minimal host, and calls over it. */
#include "node.h"
#include "agent/agent.h"
#include "pipe/pipe.h"

#include "../support/message_hooks.h"
#include "core/backend/backend.h"
#include "core/backend/chain_layer.h"
#include "rpc/call/serve.h"
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <tenrec/plugin.h>
#include <time.h>
#include <unistd.h>

uint64_t clock_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

void nap(void)
{
    poll(NULL, 0, 1);
}

static struct node *node_of(const void *agent)
{
    return (struct node *)((uintptr_t)agent - offsetof(struct node, agent));
}

/* ---- the host ---- */

static struct tenrec_msg *host_msg_new(struct tenrec_agent *self, uint64_t len, uint32_t n)
{
    (void)self;
    return message_new(len, n);
}

static struct tenrec_msg *host_exception_new(struct tenrec_agent *self,
                                             const struct tenrec_msg *msg, const tenrec_error *why)
{
    struct tenrec_msg *ret = answer_exception_new(msg, why);

    (void)self;
    if (ret)
        ret->id = msg->id;
    return ret;
}

static tenrec_status host_place(struct tenrec_agent *self, tenrec_peer from, struct tenrec_msg *msg,
                                tenrec_error *err)
{
    struct node *n = node_of(self);
    void *into = NULL;

    (void)from;
    if (atomic_load(&n->refuse_place))
        return tenrec_fail(err, TENREC_ETOOBIG, "the test wants no tensors");
    pthread_mutex_lock(&n->lock);
    if ((msg->type & TENREC_MSG_RESPONSE_BIT) && n->call[msg->id % NODE_CALLS] &&
        n->call[msg->id % NODE_CALLS]->id == msg->id)
        into = n->call[msg->id % NODE_CALLS]->into;
    pthread_mutex_unlock(&n->lock);
    if (into && msg->n_tensors == 1) {
        tenrec_msg_tensor(msg, 0)->data = into;
        return TENREC_OK;
    }
    return message_place(msg, err);
}

static bool host_accepts(struct tenrec_agent *self)
{
    return !atomic_load(&node_of(self)->refuse_requests);
}

static void call_done(struct call *c, struct tenrec_msg *answer, const tenrec_error *err)
{
    uint64_t one = 1;
    int fd = c->wake_fd;

    c->answer = answer;
    c->status = err ? err->code : TENREC_OK;
    if (err)
        c->err = *err;
    if (c->then) {
        c->then(c);
        return;
    }
    atomic_store(&c->done, true);
    /* From here on `c` may be gone. */
    if (fd >= 0 && write(fd, &one, sizeof one) < 0)
        abort();
}

static struct call *take_call(struct node *n, int64_t id)
{
    struct call *c;

    pthread_mutex_lock(&n->lock);
    c = n->call[id % NODE_CALLS];
    if (c && c->id == id)
        n->call[id % NODE_CALLS] = NULL;
    else
        c = NULL;
    pthread_mutex_unlock(&n->lock);
    return c;
}

static void host_deliver(struct tenrec_agent *self, tenrec_peer from, struct tenrec_msg *msg)
{
    struct node *n = node_of(self);
    void (*on_request)(struct node *, tenrec_peer, struct tenrec_msg *);
    struct call *c;

    if (!(msg->type & TENREC_MSG_RESPONSE_BIT)) {
        n->last_from = from;
        atomic_fetch_add(&n->requests, 1);
        on_request = n->on_request;
        (on_request ? on_request : echo_request)(n, from, msg);
        return;
    }
    c = take_call(n, msg->id);
    if (c) {
        call_done(c, msg, NULL);
        return;
    }
    atomic_fetch_add(&n->stray_answers, 1);
    msg->release(msg);
}

static void host_peer_lost(struct tenrec_agent *self, tenrec_peer peer, const tenrec_error *why)
{
    struct node *n = node_of(self);
    struct call *c[NODE_CALLS];

    (void)peer;
    pthread_mutex_lock(&n->lock);
    n->lost_why = *why;
    memcpy(c, n->call, sizeof c);
    memset(n->call, 0, sizeof n->call);
    pthread_mutex_unlock(&n->lock);
    for (int i = 0; i < NODE_CALLS; i++)
        if (c[i])
            call_done(c[i], NULL, why);
    atomic_fetch_add(&n->lost, 1);
}

static void host_caller_lost(struct tenrec_agent *self, tenrec_peer peer, const tenrec_error *why)
{
    (void)peer, (void)why;
    atomic_fetch_add(&node_of(self)->callers_lost, 1);
}

static bool host_needs(struct tenrec_agent *self, tenrec_peer peer)
{
    (void)peer;
    return atomic_load(&node_of(self)->needs);
}

static bool host_log_enabled(const void *self, enum tenrec_log_level level)
{
    (void)self;
    return getenv("TENREC_TEST_LOG") || level == TENREC_LOG_ERROR;
}

TENREC_PRINTF(3, 4)
static void host_log(const void *self, enum tenrec_log_level level, const char *fmt, ...)
{
    va_list ap;

    (void)level;
    fprintf(stderr, "# %s: ", node_of(self)->name);
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
}

/* ---- life ---- */

void node_init(struct node *n, tenrec_peer id)
{
    const char *preferred = getenv("TENREC_TEST_TRANSPORT");

    memset(n, 0, sizeof *n);
    n->transport[0].s = preferred ? preferred : "uv";
    n->transport[1].s = "uv";
    n->channel[0].s = "basic";
    n->options = (struct tp_options){
        .transports = { n->transport, strcmp(n->transport[0].s, "uv") == 0 ? 1 : 2 },
        .channels = { n->channel, 1 },
        .progress = "sleep",
        .ifname = "",
        .listen = "",
        .family = "any",
        .port = "0",
        .shm_dir = "",
        .connect_timeout_ms = 10000,
        .hello_timeout_ms = 10000,
        .handshake_timeout_ms = 10000,
        .keepalive_ms = 60000,
        .idle_timeout_ms = TENREC_FOREVER,
        .max_object = 1 << 20,
        .max_message = UINT64_C(1) << 34,
        .max_queued_bytes = 256 << 20,
        .max_stranger_bytes = UINT64_C(1) << 30,
        .max_source_bytes = 256 << 20,
        .inline_max = 32 << 10,
        .lanes = 1,
        .pull_min = 512 << 10,
        .pull_max = 16 << 20,
        .cuda_staging = 64 << 20,
        .cuda_cache = 1 << 30,
    };
    n->host = (struct tenrec_host){
        .size = sizeof n->host,
        .abi_major = TENREC_ABI_MAJOR,
        .abi_minor = TENREC_ABI_MINOR,
        .deliver_outer = host_deliver,
        .msg_new = host_msg_new,
        .place = host_place,
        .accepts = host_accepts,
        .peer_lost = host_peer_lost,
        .caller_lost = host_caller_lost,
        .log_enabled = host_log_enabled,
        .log = host_log,
        .exception_new = host_exception_new,
        .budget = chain_host.budget,
        .needs = host_needs,
    };
    snprintf(n->name, sizeof n->name, "worker%d", (int)id);
    n->member = (struct tenrec_member){ .size = sizeof n->member,
                                        .id = id,
                                        .incarnation = 1000 + (uint64_t)id,
                                        .name = n->name,
                                        .address = n->address,
                                        .token = 0x70656e0000 + (uint64_t)id };
    pthread_mutex_init(&n->lock, NULL);
}

void node_share_memory(struct node *n)
{
    n->transport[0].s = "shm";
    n->transport[1].s = "uv";
    n->channel[0].s = "cma";
    n->channel[1].s = "basic";
    n->options.transports.n = n->options.channels.n = 2;
}

tenrec_status node_try_open(struct node *n, tenrec_error *err)
{
    const struct tenrec_init in = {
        .size = sizeof in,
        .me = n->member.id,
        .world = n->dynamic ? 0 : 2,
        .incarnation = n->member.incarnation,
        .token = n->member.token,
        .name = n->name,
        .backend = "tensorpipe",
        .options = &n->options,
    };
    tenrec_status st = tenrec_construct_options(&n->options, err);

    n->agent.host = &n->host;
    return st ? st : tenrec_init_agent(&in, &n->agent, err);
}

void node_open(struct node *n)
{
    tenrec_error err;

    if (node_try_open(n, &err))
        fail_msg("open: %s", err.text);
    snprintf(n->address, sizeof n->address, "%s", n->agent.ops->address(&n->agent));
}

void nodes_start(struct node *n, size_t count)
{
    tenrec_error err;

    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < count; k++)
            n[i].all[k] = n[k].member;
        if (n[i].agent.ops->start(&n[i].agent, n[i].all, (uint32_t)count, &err))
            fail_msg("start: %s", err.text);
        n[i].started = true;
    }
}

void node_shutdown(struct node *n)
{
    if (n->started)
        n->agent.ops->shutdown(&n->agent);
    n->started = false;
}

void node_close(struct node *n)
{
    if (n->agent.impl) {
        node_shutdown(n);
        n->agent.ops->destroy(&n->agent);
    }
    pthread_mutex_destroy(&n->lock);
}

void group_open(struct node *n, size_t count, const char *progress)
{
    for (size_t i = 0; i < count; i++) {
        node_init(&n[i], (tenrec_peer)i);
        n[i].options.progress = progress;
        node_open(&n[i]);
    }
    nodes_start(n, count);
}

void group_close(struct node *n, size_t count)
{
    for (size_t i = 0; i < count; i++)
        node_shutdown(&n[i]);
    for (size_t i = 0; i < count; i++)
        node_close(&n[i]);
}

/* ---- messages and calls ---- */

struct tenrec_msg *message_of(int32_t type, const void *payload, size_t len, uint32_t n, void *data,
                              uint64_t bytes)
{
    struct tenrec_msg *msg = message_new(len, n);

    msg->type = type;
    if (len)
        memcpy(msg->payload, payload, len);
    for (uint32_t i = 0; i < n; i++) {
        struct tenrec_tensor_desc *t = tenrec_msg_tensor(msg, i);

        t->data = data ? (char *)data + i * bytes : NULL;
        t->bytes = bytes;
        t->dtype = (struct tenrec_dtype){ TENREC_DTYPE_UINT, 8, 1 };
        t->ndim = 1;
        t->shape[0] = (int64_t)bytes;
        t->strides[0] = 1;
        t->device = t->target = (struct tenrec_device){ TENREC_CPU, 0 };
    }
    return msg;
}

void answer(struct node *n, struct tenrec_msg *request, struct tenrec_msg *response)
{
    const struct tenrec_done nobody = { NULL, NULL };

    response->id = request->id;
    response->route = request->route;
    n->agent.ops->send(&n->agent, TENREC_ANONYMOUS, response, nobody);
}

static void release_request(void *arg, struct tenrec_msg *response)
{
    struct tenrec_msg *request = arg;

    (void)response;
    request->release(request);
}

void echo_request(struct node *n, tenrec_peer from, struct tenrec_msg *msg)
{
    struct tenrec_msg *response =
        message_of(TENREC_MSG_RET, msg->payload, (size_t)msg->payload_len, msg->n_tensors, NULL, 0);

    (void)from;
    for (uint32_t i = 0; i < msg->n_tensors; i++)
        *tenrec_msg_tensor(response, i) = *tenrec_msg_tensor(msg, i);
    /* The tensors go back from where they are. */
    message_on_release(response, release_request, msg);
    answer(n, msg, response);
}

struct sent {
    struct node *n;
    int64_t id;
};

static void sent_done(void *arg, const tenrec_error *err)
{
    struct sent *s = arg;
    struct call *c = err ? take_call(s->n, s->id) : NULL;

    atomic_fetch_add(&s->n->told, 1);
    if (c)
        call_done(c, NULL, err);
    free(s);
}

void call_start(struct node *n, struct call *c, tenrec_peer to, struct tenrec_msg *msg)
{
    struct sent *s = malloc(sizeof *s);

    atomic_store(&c->done, false);
    c->answer = NULL;
    pthread_mutex_lock(&n->lock);
    do /* a call that takes long keeps its place while others come and go */
        c->id = atomic_fetch_add(&n->next_id, 1);
    while (n->call[c->id % NODE_CALLS]);
    msg->id = c->id;
    *s = (struct sent){ n, c->id };
    n->call[c->id % NODE_CALLS] = c;
    pthread_mutex_unlock(&n->lock);
    n->agent.ops->send(&n->agent, to, msg, (struct tenrec_done){ sent_done, s });
}

void call_wait(struct node *n, struct call *c, tenrec_peer to)
{
    const struct tenrec_wait w = { sizeof w, c->wake_fd, clock_ns() + NODE_LIMIT_NS,
                                   (const uint32_t *)&c->done };
    struct pollfd fd = { .fd = c->wake_fd, .events = POLLIN };
    uint64_t one;

    while (!atomic_load(&c->done)) {
        if (n->agent.ops->poll(&n->agent, to, &w) == TENREC_OK)
            break;
        poll(&fd, 1, 20000);
        if (read(c->wake_fd, &one, sizeof one) < 0)
            break;
    }
    if (!atomic_load(&c->done))
        fail_msg("%s: no answer to call %lld", n->name, (long long)c->id);
}

void call_finish(struct call *c)
{
    if (c->answer)
        c->answer->release(c->answer);
    c->answer = NULL;
}

tenrec_status call_sync(struct node *n, tenrec_peer to, struct tenrec_msg *msg, struct call *c)
{
    static _Thread_local int fd = -1;

    /* One per thread, as in the core; it goes with the process. */
    if (fd < 0)
        fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    c->wake_fd = fd;
    msg->flags |= TENREC_MSG_MAY_WAIT;
    call_start(n, c, to, msg);
    call_wait(n, c, to);
    return c->status;
}

void assert_ping(struct node *n, tenrec_peer to)
{
    struct call c = { .id = 0 };

    if (call_sync(n, to, message_of(TENREC_MSG_CALL, "p", 1, 0, NULL, 0), &c))
        fail_msg("ping: %s", c.err.text);
    assert_int_equal(c.answer->payload_len, 1);
    assert_memory_equal(c.answer->payload, "p", 1);
    call_finish(&c);
}

/* ---- what is inside ---- */

static void look_at_pipe(struct pipe *p, void *arg)
{
    bool *clogged = arg;

    pthread_mutex_lock(&p->lock);
    *clogged = *clogged || (p->queue.full && pipe_is_full(p));
    pthread_mutex_unlock(&p->lock);
}

bool node_is_clogged(struct node *n)
{
    bool clogged = false;

    pipe_table_each(&((struct agent *)n->agent.impl)->pipes, look_at_pipe, &clogged);
    return clogged;
}

struct lookup {
    const char *key;
    uint64_t value;
    bool found;
};

static void look_up(void *arg, const char *key, const char *value)
{
    struct lookup *l = arg;

    if (strcmp(key, l->key) == 0) {
        l->value = strtoull(value, NULL, 10);
        l->found = true;
    }
}

uint64_t node_counter(struct node *n, const char *key)
{
    struct lookup l = { key, 0, false };

    n->agent.ops->debug_info(&n->agent, look_up, &l);
    if (!l.found)
        fail_msg("debug_info has no \"%s\"", key);
    return l.value;
}

struct tenrec_msg *request(const char *text)
{
    return message_of(TENREC_MSG_CALL, text, strlen(text), 0, NULL, 0);
}

void keep_request(struct node *n, tenrec_peer from, struct tenrec_msg *msg)
{
    (void)n;
    (void)from;
    msg->release(msg);
}

void assert_call_fails(struct call *c, tenrec_status code)
{
    assert_becomes(atomic_load(&c->done));
    assert_int_equal(c->status, code);
}
