/* agent_info.c - what an agent tells people about itself. */
#include "agent/known.h"
#include "pipe/pipe.h"

#include <inttypes.h>
#include <stdlib.h>

TENREC_PRINTF(4, 5)
static void push(tenrec_sink_fn *sink, void *arg, const char *key, const char *fmt, ...)
{
    char value[256];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(value, sizeof value, fmt, ap);
    va_end(ap);
    sink(arg, key, value);
}

/* Before it is established the loop thread may be about to make a connection. */
static void add_live_counts(struct pipe *p, void *sum)
{
    if (pipe_state(p) == PIPE_ESTABLISHED)
        agent_add_counts(p, sum);
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
        { "messages_dropped", &a->count.messages_dropped },
        { "messages_skipped", &a->count.messages_skipped },
        { "answers_dropped", &a->count.answers_dropped },
        { "pipes_opened", &a->count.pipes_opened },
        { "pipes_accepted", &a->count.pipes_accepted },
        { "pipes_broken", &a->count.pipes_broken },
        { "handshakes_failed", &a->count.handshakes_failed },
        { "tensors_pulled", &a->count.tensors_pulled },
        { "pulls_refused", &a->count.pulls_refused },
        { "tensors_shared", &a->count.tensors_shared },
        { "tensors_mapped", &a->count.tensors_mapped },
    };
    uint64_t sum[COUNTS] = { 0 };

    agent_each_pipe(a, add_live_counts, sum);
    pthread_mutex_lock(&a->lock);
    for (int i = 0; i < COUNTS; i++)
        sum[i] += a->count.gone[i];
    pthread_mutex_unlock(&a->lock);
    for (int i = 0; i < COUNTS; i++)
        push(sink, arg, data[i], "%" PRIu64, sum[i]);
    for (size_t i = 0; i < sizeof events / sizeof events[0]; i++)
        push(sink, arg, events[i].key, "%" PRIu64, (uint64_t)atomic_load(events[i].value));
}

/* What the peer might have chosen and did not. */
static void push_better(struct pipe *p, int id, tenrec_sink_fn *sink, void *arg)
{
    const struct listener *l = &p->agent->listener;
    char key[64];

    for (unsigned i = 0; i < l->n_ports && l->port[i].transport != p->transport; i++) {
        snprintf(key, sizeof key, "peer.%d.not_used.transport.%s", id, l->port[i].transport->name);
        if (p->avoided & 1u << i)
            push(sink, arg, key, "no connection could be made that way: %s", p->avoided_why);
        else
            push(sink, arg, key,
                 "the peer does not offer it, or is of another host, user or namespace");
    }
}

/* Of an outgoing pipe what is in use, by peer; those of callers are listed. */
static void push_pipe(struct pipe *p, tenrec_sink_fn *sink, void *arg)
{
    const char *channel = p->channel ? p->channel->name : "none";
    const struct agent *a = p->agent;
    char key[64];
    int id = (int)(p->outgoing ? p->to->id : p->from), n;

    if (!p->outgoing) {
        n = snprintf(key, sizeof key, "pipe.from.");
        n += id < 0 ? snprintf(key + n, sizeof key - (size_t)n, "anonymous")
                    : snprintf(key + n, sizeof key - (size_t)n, "%d", id);
        snprintf(key + n, sizeof key - (size_t)n, ".%" PRIu64, p->route.generation);
        push(sink, arg, key, "%s, %s, %s", p->remote_text, p->transport->name, channel);
        return;
    }
    snprintf(key, sizeof key, "peer.%d.transport", id);
    push(sink, arg, key, "%s", p->transport->name);
    push_better(p, id, sink, arg);
    snprintf(key, sizeof key, "peer.%d.channel", id);
    push(sink, arg, key, "%s", channel);
    for (uint32_t i = 0; i < a->channels.n && a->channels.channel[i] != p->channel; i++) {
        const char *only = a->channels.offered[i].transport;

        if (only && strcmp(only, p->transport->name) != 0)
            continue;
        snprintf(key, sizeof key, "peer.%d.not_used.channel.%s", id, a->channels.channel[i]->name);
        push(sink, arg, key, "the peer does not offer it");
    }
}

/* Why the loop thread is not quite at rest. */
static void push_polling(struct agent *a, tenrec_sink_fn *sink, void *arg)
{
    unsigned n = atomic_load(&a->shm.n);

    if (n)
        push(sink, arg, "polling",
             "%u connections to peers on libtensorpipe, which wake nobody: every %.2f to %.0f ms",
             n, (double)SHM_PAUSE_MIN_NS / 1e6, (double)SHM_PAUSE_MAX_NS / 1e6);
    else
        push(sink, arg, "polling", "no");
    push(sink, arg, "looks", "%" PRIu64, (uint64_t)atomic_load(&a->shm.looks));
}

void agent_debug_info(struct agent *a, tenrec_sink_fn *sink, void *arg)
{
    static const char *const progress[] = { "busy", "adaptive", "sleep" };
    unsigned connections = 0;
    struct pipe **v;

    push(sink, arg, "transport", "%s", a->listener.port[0].transport->name);
    push(sink, arg, "channel", "%s", channels_best(&a->channels));
    known_tell_unused(known_transports, "transport", a->listener.port[0].transport->option,
                      &a->options->transports, sink, arg);
    known_tell_unused(known_channels, "channel", channels_option(&a->channels),
                      &a->options->channels, sink, arg);
    push(sink, arg, "progress", "%s", progress[a->progress]);
    push(sink, arg, "address", "%s", a->address);
    push_polling(a, sink, arg);
    push_counters(a, sink, arg);
    cuda_tell(&a->cuda, sink, arg);
    v = agent_all_pipes(a);
    for (size_t i = 0; v && v[i]; i++) {
        if (pipe_state(v[i]) == PIPE_ESTABLISHED) {
            push_pipe(v[i], sink, arg);
            connections += v[i]->n_conns;
        }
        pipe_unref(v[i]);
    }
    push(sink, arg, "connections", "%u", connections);
    free(v);
}
