/* SPDX-License-Identifier: Apache-2.0 */
/* calls.c - calls between two workers: small calls, and tensors in both directions. */
#include "measure.h"
#include "modes.h"
#include "side.h"

#include <stdlib.h>
#include <string.h>

#define KEEP_MAX 16

/* Sums up to a message; the larger of both sides counts. */
struct counters {
    uint64_t sends, receives, messages_sent, messages_received;
    char transport[32], channel[32]; /* the caller's */
};

struct state {
    struct side *side;
    struct measure m;
    struct tenrec_tensor *tensor; /* the argument, or at the callee the result */
    struct tenrec_value *kept[KEEP_MAX];
    size_t n_kept;
    bool first;
    bool on_pool;              /* the callee's functions */
    struct counters before[2]; /* [0] the caller's, [1] the callee's */
};

static void prepare(struct trial *t)
{
    struct state *s = calloc(1, sizeof *s);
    char via[16];

    if (!s)
        pair_die("calloc");
    s->on_pool = strstr(t->via, "_pool") != NULL;
    snprintf(via, sizeof via, "%.*s", (int)strcspn(t->via, "_"), t->via);
    s->side = side_new(via, t->progress, 2);
    s->first = true;
    t->state = s;
    if (!strcmp(t->mode, "latency"))
        t->size = 0; /* the function has no argument and no result */
}

/* Returns true if the callee can map the memory of the tensor. */
static bool is_shared(const struct trial *t)
{
    return !strcmp(t->mode, "source") || !strcmp(t->mode, "handover");
}

static bool is_received(const struct trial *t)
{
    return !strcmp(t->mode, "drop") || !strcmp(t->mode, "keep");
}

/* ---- the callee ---------------------------------------------------------------------- */

static tenrec_status on_give(struct tenrec_call *call, void *arg, tenrec_error *err)
{
    struct state *s = arg;
    struct tenrec_value v = tenrec_value_tensor(s->tensor);

    return tenrec_call_return(call, &v, err);
}

static int serve(struct trial *t)
{
    struct state *s = t->state;
    struct tenrec_worker *w = side_worker(s->side, 1);
    struct measure_callee c;
    tenrec_error err;

    if (is_received(t))
        s->tensor = side_tensor(t->size, false);
    if (measure_callee_init(&c, w, t->size, s->on_pool ? 0 : TENREC_INLINE, &err) ||
        (!strcmp(t->mode, "handover") && tenrec_worker_set_allocator(w, NULL, &err)) ||
        tenrec_worker_register_function(w, "bench.give", on_give, s, TENREC_INLINE, &err) ||
        tenrec_init_rpc(w, &err))
        side_give_up(&err);
    measure_callee_wait(&c);
    side_end_worker(w);
    measure_callee_finish(&c);
    tenrec_tensor_drop(s->tensor);
    return 0;
}

/* ---- counters --------------------------------------------------------------------------- */

static void on_counter(void *arg, const char *key, const char *value)
{
    struct counters *c = arg;
    uint64_t n = strtoull(value, NULL, 10);

    if (!strcmp(key, "tensorpipe.sends"))
        c->sends = n;
    else if (!strcmp(key, "tensorpipe.receives"))
        c->receives = n;
    else if (!strcmp(key, "tensorpipe.messages_sent"))
        c->messages_sent = n;
    else if (!strcmp(key, "tensorpipe.messages_received"))
        c->messages_received = n;
    else if (!strcmp(key, "tensorpipe.peer.1.transport"))
        snprintf(c->transport, sizeof c->transport, "%s", value);
    else if (!strcmp(key, "tensorpipe.peer.1.channel"))
        snprintf(c->channel, sizeof c->channel, "%s", value);
}

/* Passes the counters of a worker (to: NULL for this one) to `sink`. */
static tenrec_status list_info(struct tenrec_worker *w, const char *to, tenrec_sink_fn *sink,
                               void *arg, tenrec_error *err)
{
    char number[24];
    struct tenrec_value *v;
    tenrec_status st = tenrec_worker_inspect(w, to, TENREC_INSPECT_DEBUG_INFO, NULL, &v, err);

    if (st)
        return st;
    for (size_t i = 0; v->type == TENREC_VALUE_MAP && i < v->n; i++) {
        const struct tenrec_value *one = &v->u.map[i].value;

        snprintf(number, sizeof number, "%lld", (long long)one->u.integer);
        sink(arg, v->u.map[i].key, one->type == TENREC_VALUE_TEXT ? one->u.text : number);
    }
    tenrec_value_drop(v);
    return st;
}

static void count(const struct state *s, struct counters ret[2])
{
    tenrec_error err;

    memset(ret, 0, 2 * sizeof ret[0]);
    if (list_info(s->m.worker, NULL, on_counter, &ret[0], &err) ||
        list_info(s->m.worker, s->m.to, on_counter, &ret[1], &err))
        side_give_up(&err);
}

static void add_larger(double *sum, uint64_t calls, uint64_t messages)
{
    double one = messages ? (double)calls / (double)messages : 0;

    *sum = one > *sum ? one : *sum;
}

static void tell(struct trial *t, FILE *out)
{
    struct state *s = t->state;
    struct counters now[2];
    double sends = 0, receives = 0;

    count(s, now);
    for (int i = 0; i < 2; i++) {
        const struct counters *b = &s->before[i];

        add_larger(&sends, now[i].sends - b->sends, now[i].messages_sent - b->messages_sent);
        add_larger(&receives, now[i].receives - b->receives,
                   now[i].messages_received - b->messages_received);
    }
    fprintf(out, ", \"transport\": \"%s\", \"channel\": \"%s\"", now[0].transport, now[0].channel);
    if (t->size < 4096)
        fprintf(out, ", \"sends_per_message\": %.4f, \"receives_per_message\": %.4f", sends,
                receives);
}

/* ---- the caller --------------------------------------------------------------------------- */

static void start(struct trial *t)
{
    struct state *s = t->state;
    tenrec_error err;

    s->m.worker = side_worker(s->side, 0);
    s->m.to = "w1";
    s->m.size = t->size;
    s->m.inflight = PAIR_INFLIGHT;
    if (!strcmp(t->mode, "bandwidth") || is_shared(t))
        s->tensor = side_tensor(t->size, is_shared(t));
    if (tenrec_init_rpc(s->m.worker, &err))
        side_give_up(&err);
    count(s, s->before); /* also connects */
    count(s, s->before);
}

static void call_small(struct state *s)
{
    tenrec_error err;

    if (tenrec_rpc_sync(s->m.worker, "w1", "measure.nothing", NULL, 0, NULL, NULL, &err))
        side_give_up(&err);
}

static void call_tensor(struct state *s)
{
    struct tenrec_value args[] = { tenrec_value_tensor(s->tensor), tenrec_value_bool(true) };
    tenrec_error err;

    if (tenrec_rpc_sync(s->m.worker, "w1", "measure.tensor", args, s->first ? 2 : 1, NULL, NULL,
                        &err))
        side_give_up(&err);
    s->first = false;
}

static void call_give(struct trial *t, struct state *s)
{
    struct tenrec_value *v;
    struct tenrec_tensor *got;
    tenrec_error err;

    if (tenrec_rpc_sync(s->m.worker, "w1", "bench.give", NULL, 0, NULL, &v, &err) ||
        tenrec_value_unpack(v, 1, &err, "t", &got))
        side_give_up(&err);
    if (s->first)
        pair_expect(t->peer, tenrec_tensor_data(got), t->size);
    s->first = false;
    if (!strcmp(t->mode, "keep") && s->n_kept < KEEP_MAX)
        s->kept[s->n_kept++] = v;
    else
        tenrec_value_drop(v);
}

static void call(struct trial *t)
{
    struct state *s = t->state;

    if (s->tensor)
        call_tensor(s);
    else if (is_received(t))
        call_give(t, s);
    else
        call_small(s);
}

static void flood(struct trial *t, size_t n)
{
    struct state *s = t->state;
    tenrec_error err;
    uint64_t ns;

    s->m.calls = n;
    if (measure_rate(&s->m, &ns, &err))
        side_give_up(&err);
}

static void end(struct trial *t)
{
    struct state *s = t->state;
    tenrec_error err;

    for (size_t i = 0; i < s->n_kept; i++)
        tenrec_value_drop(s->kept[i]);
    tenrec_tensor_drop(s->tensor);
    if (measure_end(&s->m, &err))
        side_give_up(&err);
    side_end_worker(s->m.worker);
}

static void clean(struct trial *t)
{
    side_drop(((struct state *)t->state)->side);
}

#define CALLS_WAY(name, mode, most)                                                                \
    {                                                                                              \
        .peer = "tenrec", .via = name, .modes = mode, .progress = "busy adaptive sleep",           \
        .prepare = prepare, .serve = serve, .open = start, .call = call, .flood = flood,           \
        .close = end, .clean = clean, .tell = tell, .most_calls = most                             \
    }
#define MANY_MODES "latency rate bandwidth drop source handover"

const struct way calls_uv = CALLS_WAY("uv", MANY_MODES, 0);
const struct way calls_shm = CALLS_WAY("shm", MANY_MODES, 0);
const struct way calls_pool_uv = CALLS_WAY("uv_pool", "latency rate", 0);
const struct way calls_pool_shm = CALLS_WAY("shm_pool", "latency rate", 0);
const struct way calls_keep_uv = CALLS_WAY("uv", "keep", KEEP_MAX - 1);
const struct way calls_secret = CALLS_WAY("secret", "latency rate bandwidth", 0);
const struct way calls_tls = CALLS_WAY("tls", "latency rate bandwidth", 0);
const struct way calls_ucx = CALLS_WAY("ucx", "latency rate bandwidth", 0);
const struct way calls_layers = CALLS_WAY("layers", "latency rate", 0);
const struct way calls_trace = CALLS_WAY("trace", "latency rate", 0);
const struct way calls_meter = CALLS_WAY("meter", "latency rate", 0);
const struct way calls_limit = CALLS_WAY("limit", "latency rate", 0);
const struct way calls_traces = CALLS_WAY("traces", "latency rate", 0);
const struct way calls_durations = CALLS_WAY("durations", "latency rate", 0);
const struct way calls_recorder = CALLS_WAY("recorder", "latency rate", 0);
const struct way calls_keep_shm = CALLS_WAY("shm", "keep", KEEP_MAX - 1);
