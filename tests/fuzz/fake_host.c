/* SPDX-License-Identifier: Apache-2.0 */
/* fake_host.c - the host of an agent that is led by the fuzz target. */
#include "fake_host.h"
#include "fake_wire.h"
#include "fuzz.h"
#include "pipe/pipe.h"
#include "reactor/reactor_inside.h"

#include "../support/message_hooks.h"
#include "core/backend/account.h"
#include "core/backend/backend.h"
#include "core/backend/chain_layer.h"
#include "rpc/call/serve.h"
#include <unistd.h>

static struct fake_host *host_of(struct tenrec_agent *a)
{
    return (struct fake_host *)(void *)((char *)a - offsetof(struct fake_host, agent));
}

struct agent *fake_host_agent(struct fake_host *h)
{
    return h->agent.impl;
}

/* A task of the loop runs here, as this thread leads it. */
void __wrap_agent_call_loop(struct agent *a, void (*fn)(struct agent *a));
void __wrap_agent_call_loop(struct agent *a, void (*fn)(struct agent *a))
{
    if (fn)
        fn(a);
    reactor_round(&a->ep.reactor, 0);
}

/* ---- messages ---- */

static void send_done(void *arg, const tenrec_error *err)
{
    struct fake_host *h = arg;

    h->told++;
    fuzz_expect(h->told <= h->sent);
    if (err)
        fuzz_expect(err->code != TENREC_OK && memchr(err->text, '\0', sizeof err->text));
}

static struct tenrec_msg *message_of(struct fake_host *h, const struct fake_message *m)
{
    static unsigned char data[1 << 17];
    struct tenrec_msg *msg = message_new(m->payload_len, m->n_tensors);

    fuzz_expect(msg != NULL);
    h->sent_bytes += m->payload_len + (uint64_t)m->n_tensors * m->tensor_len;
    msg->type = m->type;
    msg->flags = m->flags;
    if (m->lag_ms)
        msg->deadline_ns = fake_wire.now_ns + m->lag_ms * UINT64_C(1000000);
    if (m->payload_len)
        memset(msg->payload, 7, m->payload_len);
    for (uint32_t i = 0; i < m->n_tensors; i++) {
        struct tenrec_tensor_desc *t = tenrec_msg_tensor(msg, i);

        t->data = data;
        t->bytes = m->tensor_len;
        t->dtype = (struct tenrec_dtype){ TENREC_DTYPE_UINT, 8, 1 };
        t->ndim = 1;
        t->shape[0] = (int64_t)m->tensor_len;
        t->strides[0] = 1;
        t->device = t->target = (struct tenrec_device){ TENREC_CPU, 0 };
    }
    return msg;
}

void fake_host_send(struct fake_host *h, tenrec_peer to, const struct fake_message *m)
{
    struct tenrec_msg *msg = message_of(h, m);

    msg->id = h->next_id++;
    h->sent++;
    h->agent.ops->send(&h->agent, to, msg, (struct tenrec_done){ send_done, h });
}

static void answer_request(struct fake_host *h, struct tenrec_msg *request,
                           const struct fake_message *m)
{
    struct tenrec_msg *msg = message_of(h, m);

    msg->id = request->id;
    msg->route = request->route;
    h->sent++;
    h->agent.ops->send(&h->agent, TENREC_ANONYMOUS, msg, (struct tenrec_done){ send_done, h });
    request->release(request);
}

void fake_host_answer(struct fake_host *h, unsigned which, const struct fake_message *m)
{
    struct tenrec_msg *request;

    if (!h->n_kept)
        return;
    which %= h->n_kept;
    request = h->kept[which];
    h->kept[which] = h->kept[--h->n_kept];
    answer_request(h, request, m);
}

/* ---- the host's operations ---- */

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
    (void)from;
    if (host_of(self)->mood & MOOD_NO_PLACE)
        return tenrec_fail(err, TENREC_ETOOBIG, "the host wants no tensors");
    return message_place(msg, err);
}

static bool host_accepts(struct tenrec_agent *self)
{
    return !(host_of(self)->mood & MOOD_REFUSES);
}

static void host_deliver(struct tenrec_agent *self, tenrec_peer from, struct tenrec_msg *msg)
{
    static const struct fake_message echo = { .type = TENREC_MSG_RET, .payload_len = 100 };
    static const struct fake_message next = { .type = TENREC_MSG_CALL, .payload_len = 900 };
    struct fake_host *h = host_of(self);

    h->delivered++;
    fuzz_expect(from < ENDPOINT_PEERS);
    fuzz_touch(msg->payload, (size_t)msg->payload_len);
    for (uint32_t i = 0; i < msg->n_tensors; i++)
        fuzz_touch(tenrec_msg_tensor(msg, i)->data, (size_t)tenrec_msg_tensor(msg, i)->bytes);
    if (msg->type & TENREC_MSG_RESPONSE_BIT) {
        msg->release(msg);
        if ((h->mood & MOOD_CALLS) && from > 0)
            fake_host_send(h, from, &next);
    } else if (h->mood & MOOD_ECHOES) {
        answer_request(h, msg, &echo);
    } else if (h->n_kept < FAKE_KEPT) {
        h->kept[h->n_kept++] = msg;
    } else {
        msg->release(msg);
    }
}

static void host_lost(struct tenrec_agent *self, tenrec_peer peer, const tenrec_error *why)
{
    fuzz_expect(peer >= 0 && peer < FAKE_MEMBERS && why->code != TENREC_OK);
    host_of(self)->lost++;
}

static bool host_log_enabled(const void *self, enum tenrec_log_level level)
{
    (void)self, (void)level;
    return true;
}

TENREC_PRINTF(3, 4)
static void host_log(const void *self, enum tenrec_log_level level, const char *fmt, ...)
{
    char line[2048];
    va_list ap;

    (void)self, (void)level;
    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
}

/* ---- sharing, of which only the notes matter here ---- */

static struct tenrec_sharing *host_sharing_open(struct tenrec_agent *self)
{
    host_of(self)->sharings++;
    return malloc(1);
}

static void host_sharing_close(struct tenrec_agent *self, struct tenrec_sharing *s)
{
    host_of(self)->sharings--;
    free(s);
}

static bool host_share(struct tenrec_agent *self, struct tenrec_sharing *s,
                       const struct tenrec_tensor_desc *desc, struct tenrec_share *ret)
{
    struct fake_host *h = host_of(self);

    (void)s, (void)desc;
    if (!(h->mood & MOOD_SHARES))
        return false;
    *ret = (struct tenrec_share){ .size = sizeof *ret };
    if (h->share_number++ % 2) {
        ret->fd[0] = dup(h->options.transports.n ? STDERR_FILENO : -1);
        ret->n_fds = ret->fd[0] >= 0;
    }
    return true;
}

static void host_share_close(struct tenrec_share *share)
{
    fuzz_expect(share->n_fds <= TENREC_SHARE_FDS);
    for (uint32_t i = 0; i < share->n_fds; i++)
        close(share->fd[i]);
    share->n_fds = 0;
}

static void host_share_back(struct tenrec_agent *self, struct tenrec_sharing *s,
                            struct tenrec_share *share)
{
    (void)self, (void)s;
    host_share_close(share);
}

static tenrec_status host_shared(struct tenrec_agent *self, struct tenrec_sharing *s,
                                 struct tenrec_share *share, struct tenrec_tensor_desc *desc,
                                 tenrec_error *err)
{
    (void)s, (void)desc;
    host_share_close(share);
    if (host_of(self)->mood & MOOD_NO_SHARING)
        return tenrec_fail(err, TENREC_ENOMEM, "the host maps nothing");
    return TENREC_OK;
}

/* ---- life ---- */

static void choose_options(struct fake_host *h, uint32_t kind)
{
    static const char *const progress[] = { "sleep", "adaptive", "sleep", "busy" };

    h->transport[0].s = kind & 1 ? FAKE_FAR : FAKE_NEAR;
    h->transport[1].s = kind & 1 ? FAKE_NEAR : FAKE_FAR;
    h->channel[0].s = "cma";
    h->channel[1].s = "basic";
    h->channel[2].s = "cuda_xth";
    h->channel[3].s = "cuda_ipc";
    h->channel[4].s = "cuda_basic";
    h->options = (struct tp_options){
        .transports = { h->transport, 2 },
        .channels = { h->channel + (kind >> 1 & 1),
                      (kind & FAKE_HAS_DEVICES ? 5 : 2) - (kind >> 1 & 1) },
        .progress = progress[kind >> 2 & 3],
        .ifname = "",
        .listen = "",
        .family = "any",
        .port = "0",
        .shm_dir = "",
        .connect_timeout_ms = 10000,
        .hello_timeout_ms = 5000,
        .handshake_timeout_ms = 10000,
        .max_stranger_bytes = 64 << 10,
        .max_source_bytes = 32 << 10,
        .keepalive_ms = 60000,
        .max_object = 4096,
        .max_message = 1 << 17,
        .max_queued_bytes = 16384,
        .inline_max = 128,
        .lanes = 3,
        .pull_min = 512,
        .pull_max = 16384,
        .cuda_staging = 4 << 20,
        .cuda_cache = 0,
    };
}

static void use_devices(struct fake_host *h)
{
    static const struct tenrec_device all[] = { { TENREC_CUDA, 0 }, { TENREC_CUDA, 1 } };
    tenrec_error err;

    fuzz_expect(h->agent.ops->use_devices(&h->agent, all, 2, &err) == TENREC_OK);
}

static void add_members(struct fake_host *h)
{
    static const char *const address[FAKE_MEMBERS] = { FAKE_FAR "://127.0.0.1:1",
                                                       FAKE_FAR "://127.0.0.1:2",
                                                       FAKE_NEAR "://there", "uv://nowhere" };
    struct tenrec_member member = { .size = sizeof member, .name = "member" };
    tenrec_error err;

    for (tenrec_peer id = 0; id < FAKE_MEMBERS; id++) {
        member.id = id;
        member.incarnation = FAKE_LIFE(id);
        member.address = address[id];
        fuzz_expect(agent_add_member(fake_host_agent(h), &member, &err) == TENREC_OK);
    }
}

void fake_host_start(struct fake_host *h, uint32_t kind)
{
    const struct tenrec_init in = {
        .size = sizeof in,
        .me = 0,
        .world = kind & 32 ? 0 : FAKE_MEMBERS,
        .incarnation = FAKE_LIFE(0),
        .name = "fuzzed",
        .backend = "tensorpipe",
        .options = &h->options,
    };
    struct agent *a;
    tenrec_error err;

    *h = (struct fake_host){ .next_id = 1 };
    h->host = (struct tenrec_host){
        .size = sizeof h->host,
        .abi_major = TENREC_ABI_MAJOR,
        .abi_minor = TENREC_ABI_MINOR,
        .deliver_outer = host_deliver,
        .msg_new = host_msg_new,
        .place = host_place,
        .accepts = host_accepts,
        .peer_lost = host_lost,
        .caller_lost = host_lost,
        .log_enabled = host_log_enabled,
        .log = host_log,
        .sharing_open = host_sharing_open,
        .sharing_close = host_sharing_close,
        .share = host_share,
        .share_back = host_share_back,
        .shared = host_shared,
        .exception_new = host_exception_new,
        .budget = chain_host.budget,
    };
    choose_options(h, kind);
    h->agent.host = &h->host;
    fuzz_expect(agent_new(&in, &h->agent, &err) == TENREC_OK);
    a = fake_host_agent(h);
    reactor_mine = &a->ep.reactor;
    if (kind & FAKE_HAS_DEVICES)
        use_devices(h);
    add_members(h);
    fuzz_expect(listener_start(&a->listener, &err) == TENREC_OK);
    atomic_store(&a->ep.state, AGENT_STARTED);
}

void fake_host_run(struct fake_host *h, unsigned rounds)
{
    struct agent *a = fake_host_agent(h);

    while (rounds-- > 0) {
        const bool told = fake_wire_tell();

        if (!told && !atomic_load(&a->ep.reactor.waiting) && !a->ep.reactor.looks)
            break;
        reactor_round(&a->ep.reactor, 0);
    }
}

/* A round fires timers, though nothing else has happened. */
void fake_host_wait(struct fake_host *h, uint32_t ms)
{
    fake_wire.now_ns += ms * UINT64_C(1000000);
    reactor_round(&fake_host_agent(h)->ep.reactor, 0);
}

struct fake_poll {
    const struct reactor *reactor;
    unsigned left;
    uint32_t done;
    void (*between)(void *arg);
    void *arg;
};

/* What happens meanwhile happens on the loop thread. */
static void poll_reads(void *arg)
{
    struct fake_poll *p = arg;

    if (p->done)
        return;
    reactor_mine = p->reactor;
    p->between(p->arg);
    reactor_mine = NULL;
    p->done = --p->left == 0;
}

void fake_host_poll(struct fake_host *h, tenrec_peer peer, unsigned times,
                    void (*between)(void *arg), void *arg)
{
    struct fake_poll p = { &fake_host_agent(h)->ep.reactor, times, 0, between, arg };
    const struct tenrec_wait w = { .size = sizeof w,
                                   .wake_fd = -1,
                                   .deadline_ns = fake_wire.now_ns + 100000000u,
                                   .done = &p.done };

    reactor_mine = NULL;
    fake_wire.poller_reads = poll_reads;
    fake_wire.poller = &p;
    h->agent.ops->poll(&h->agent, peer, &w);
    fake_wire.poller_reads = NULL;
    reactor_mine = &fake_host_agent(h)->ep.reactor;
}

void fake_host_finish(struct fake_host *h)
{
    struct agent *a = fake_host_agent(h);

    while (h->n_kept) {
        struct tenrec_msg *msg = h->kept[--h->n_kept];

        msg->release(msg);
    }
    h->mood = MOOD_REFUSES;
    h->agent.ops->shutdown(&h->agent);
    while (atomic_load(&a->ep.reactor.waiting))
        reactor_round(&a->ep.reactor, 0);
    reactor_mine = NULL;
    h->agent.ops->destroy(&h->agent);
    fuzz_expect(h->told == h->sent && h->sharings == 0);
    fuzz_expect(accounts_held() == 0);
}
