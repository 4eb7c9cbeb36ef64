/* SPDX-License-Identifier: Apache-2.0 */
/* agent_info.c - the debug info of an agent. */
#include "agent/agent.h"
#include "pipe/pipe.h"

#include <inttypes.h>
#include <stdlib.h>

TENREC_PRINTF(4, 5)
static void info_push(tenrec_sink_fn *sink, void *arg, const char *key, const char *fmt, ...)
{
    char value[320];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(value, sizeof value, fmt, ap);
    va_end(ap);
    sink(arg, key, value);
}

static void push_counters(struct agent *a, tenrec_sink_fn *sink, void *arg)
{
    static const char *const data[COUNTS] = {
        [COUNT_SENDS] = "sends",
        [COUNT_RECEIVES] = "receives",
        [COUNT_BYTES_SENT] = "bytes_sent",
        [COUNT_BYTES_RECEIVED] = "bytes_received",
        [COUNT_MESSAGES_SENT] = "messages_sent",
        [COUNT_MESSAGES_RECEIVED] = "messages_received",
    };
    const struct {
        const char *key;
        atomic_uint_fast64_t *value;
    } events[] = {
        { "messages_dropped", &a->ep.count.messages_dropped },
        { "messages_skipped", &a->ep.count.messages_skipped },
        { "answers_dropped", &a->ep.count.answers_dropped },
        { "pipes_opened", &a->ep.count.pipes_opened },
        { "pipes_accepted", &a->ep.count.pipes_accepted },
        { "pipes_parted", &a->ep.count.pipes_parted },
        { "pipes_broken", &a->ep.count.pipes_broken },
        { "handshakes_failed", &a->ep.count.handshakes_failed },
        { "hellos", &a->ep.count.hellos },
        { "proofs", &a->ep.count.proofs },
        { "proofs_refused", &a->ep.count.proofs_refused },
        { "tensors_pulled", &a->ep.count.tensors_pulled },
        { "pulls_refused", &a->ep.count.pulls_refused },
        { "tensors_shared", &a->ep.count.tensors_shared },
        { "tensors_mapped", &a->ep.count.tensors_mapped },
    };
    uint64_t sum[COUNTS] = { 0 };

    pipe_table_count(&a->pipes, sum);
    for (int i = 0; i < COUNTS; i++)
        info_push(sink, arg, data[i], "%" PRIu64, sum[i]);
    for (size_t i = 0; i < sizeof events / sizeof events[0]; i++)
        info_push(sink, arg, events[i].key, "%" PRIu64, (uint64_t)atomic_load(events[i].value));
}

/* ---- peers and callers: the keys are the same as long as the members are ---- */

/* A value that is a list, with "; " between its items. */
struct agent_info_list {
    char *text; /* owns; NULL: nothing yet, or no memory */
    size_t len;
};

TENREC_PRINTF(2, 3)
static void list_add(struct agent_info_list *l, const char *fmt, ...)
{
    char item[256], *grown;
    va_list ap;
    size_t n;

    va_start(ap, fmt);
    vsnprintf(item, sizeof item, fmt, ap);
    va_end(ap);
    n = strlen(item);
    grown = realloc(l->text, l->len + 2 + n + 1);
    if (!grown)
        return;
    l->text = grown;
    if (l->len) {
        memcpy(l->text + l->len, "; ", 2);
        l->len += 2;
    }
    memcpy(l->text + l->len, item, n + 1);
    l->len += n;
}

static void list_push(struct agent_info_list *l, tenrec_sink_fn *sink, void *arg, const char *key)
{
    sink(arg, key, l->text ? l->text : "");
    free(l->text);
}

/* Lists better transports and channels that the peer did not choose. */
static void list_better(struct agent_info_list *l, const struct pipe *p)
{
    const struct endpoint *ep = p->ep;

    for (unsigned i = 0; ep->transports[i] && ep->transports[i] != p->terms.transport; i++)
        if (p->handshake.avoided & 1u << i)
            list_add(l, "transport %s: no connection could be made that way: %s",
                     ep->transports[i]->name, p->handshake.avoided_why);
        else
            list_add(l,
                     "transport %s: the peer does not offer it, or is of another host, user or "
                     "namespace",
                     ep->transports[i]->name);
    for (uint32_t i = 0; i < ep->channels->n && ep->channels->channel[i] != p->terms.channel; i++)
        if (!ep->channels->offered[i].remote || p->terms.transport->remote)
            list_add(l, "channel %s: the peer does not offer it", ep->channels->channel[i]->name);
}

/* Names the cipher of a pipe, and whether the kernel or the library works in each direction. */
static const char *info_encryption(const struct pipe *p)
{
    const struct conn *c = p ? p->conns.of[CONN_DESCRIPTOR] : NULL;

    return c && c->tls ? p->ep->tls->cipher(c->tls) : "none";
}

/* Why the peer does not read our memory. */
static void way_reason(const struct endpoint *ep, char why[CMA_TEXT_MAX])
{
    if (!cma_viable(why, CMA_TEXT_MAX))
        return;
    snprintf(why, CMA_TEXT_MAX, "%s",
             ep->channels->pulls
                 ? "the peer has not shown that it can read the memory of this process: it is of "
                   "another host, user or namespace, or its options do not list cma"
                 : "the options do not list cma");
}

/* Says how the bytes of a region, or of any large tensor that is not mapped, travel to the peer. */
static void push_way(const char *key, struct pipe *p, tenrec_sink_fn *sink, void *arg)
{
    char why[CMA_TEXT_MAX];
    bool reads;

    /* The connections may open with the first tensor, and show then what the peer can. */
    if (!p || (!p->terms.transport->remote && p->terms.channel && !pipe_has_channel(p))) {
        sink(arg, key, "none");
        return;
    }
    pthread_mutex_lock(&p->lock);
    reads = p->tensors.pulls || p->terms.channel == &channel_cma;
    pthread_mutex_unlock(&p->lock);
    way_reason(p->ep, why);
    if (reads)
        sink(arg, key, "read from the sender's memory (cma)");
    else
        info_push(sink, arg, key, "%s: %s",
                  p->terms.transport->remote ? "TCP" : "ring, copied twice", why);
}

/* p   the pipe of our requests to that member; NULL: there is none now */
static void push_peer(int id, struct pipe *p, tenrec_sink_fn *sink, void *arg)
{
    struct agent_info_list better = { NULL, 0 };
    char key[64];

    snprintf(key, sizeof key, "peer.%d.transport", id);
    info_push(sink, arg, key, "%s", p ? p->terms.transport->name : "none");
    snprintf(key, sizeof key, "peer.%d.channel", id);
    info_push(sink, arg, key, "%s", p && p->terms.channel ? p->terms.channel->name : "none");
    snprintf(key, sizeof key, "peer.%d.way", id);
    push_way(key, p, sink, arg);
    snprintf(key, sizeof key, "peer.%d.encryption", id);
    info_push(sink, arg, key, "%s", info_encryption(p));
    if (p)
        list_better(&better, p);
    snprintf(key, sizeof key, "peer.%d.not_used", id);
    list_push(&better, sink, arg, key);
}

static void push_peers(struct agent *a, struct pipe *const *v, tenrec_sink_fn *sink, void *arg)
{
    for (int id = 0; id < atomic_load(&a->ep.peers_end); id++) {
        struct pipe *to = NULL;

        if (!peer_is_known(&a->ep, id))
            continue;
        for (size_t i = 0; v && v[i]; i++)
            if (v[i]->outgoing && v[i]->to->id == id && pipe_state(v[i]) == PIPE_ESTABLISHED)
                to = v[i];
        push_peer(id, to, sink, arg);
    }
}

/* Those that made a connection to this agent: "2 at 127.0.0.1:4242, uv, basic". */
static void push_callers(struct pipe *const *v, tenrec_sink_fn *sink, void *arg)
{
    struct agent_info_list all = { NULL, 0 };

    for (size_t i = 0; v && v[i]; i++) {
        struct pipe *p = v[i];
        const struct peer *member = atomic_load(&p->caller.member);
        char name[24] = "anonymous";

        if (p->outgoing || pipe_state(p) != PIPE_ESTABLISHED)
            continue;
        if (member)
            snprintf(name, sizeof name, "%d", (int)member->id);
        list_add(&all, "%s at %s, %s, %s", name, p->remote.text, p->terms.transport->name,
                 p->terms.channel ? p->terms.channel->name : "none");
    }
    list_push(&all, sink, arg, "callers");
}

void agent_debug_info(struct agent *a, tenrec_sink_fn *sink, void *arg)
{
    static const char *const progress[] = { "busy", "adaptive", "sleep" };
    static const char *const modes[] = { "none", "secret", "tls", "mtls" };
    unsigned connections = 0;
    struct pipe **v;

    info_push(sink, arg, "transport", "%s", a->listener.port[0].transport->name);
    info_push(sink, arg, "channel", "%s", channels_best(&a->channels));
    registry_tell_unused(registry_transports, "transport", a->listener.port[0].transport->option,
                         &a->ep.options->transports, sink, arg);
    registry_tell_unused(registry_channels, "channel", channels_option(&a->channels),
                         &a->ep.options->channels, sink, arg);
    info_push(sink, arg, "security", "%s",
              a->ep.proves ? modes[a->ep.proof->mode(a->ep.self)] : modes[0]);
    info_push(sink, arg, "progress", "%s", progress[a->ep.progress]);
    info_push(sink, arg, "address", "%s", a->address);
    push_counters(a, sink, arg);
    cuda_tell(&a->cuda, sink, arg);
    v = pipe_table_all(&a->pipes);
    for (size_t i = 0; v && v[i]; i++)
        if (pipe_state(v[i]) == PIPE_ESTABLISHED)
            connections += pipe_conns_open(&v[i]->conns);
    info_push(sink, arg, "connections", "%u", connections);
    push_peers(a, v, sink, arg);
    push_callers(v, sink, arg);
    for (size_t i = 0; v && v[i]; i++)
        pipe_unref(v[i]);
    free(v);
}
