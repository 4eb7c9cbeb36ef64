/* SPDX-License-Identifier: Apache-2.0 */
/* limit.c - a backend that wraps any other and limits calls and their bytes per second.
 *
 * Answers and control messages always pass: only a call has a caller that can try again. The
 * queue needs no thread: each call has a timer of the core. A timer passes the call that is due
 * first, which need not be its own: no timer fires before its call is due, so the k-th to fire
 * finds the k-th call due, and the calls of a budget keep their order. */
#include "bucket.h"

#include <pthread.h>
#include <stdlib.h>
#include <tenrec/plugin.h>
#include <time.h>

#define CALL_BYTES 1024 /* for max_queued_bytes, beside payload and tensors */
#define WAIT_MAX_NS (UINT32_MAX * UINT64_C(1000000))

struct limit_options {
    const char *direction, *by, *over;
    struct tenrec_option_list types;
    double calls_per_second;                                     /* 0: no limit */
    uint64_t bytes_per_second, burst /* ms */, max_queued_bytes; /* 0 bytes: no limit */
};

struct limit_call {
    struct limit_call *prev, *next; /* by due_ns */
    uint64_t due_ns, bytes;
    size_t budget; /* index of its budget */
    tenrec_peer peer;
    struct tenrec_msg *msg;  /* owns */
    struct tenrec_done done; /* of a received call empty */
};

struct limit_budget {
    struct bucket bucket;
    uint64_t queued; /* calls that must pass first, the passing call included */
};

struct limit {
    struct tenrec_agent *self;
    const struct limit_options *opt;
    struct tenrec_agent_ops ops; /* of one direction */
    bool incoming;
    char name[64];

    pthread_mutex_t lock;        /* guards what follows */
    pthread_cond_t idle;         /* queued became 0 */
    struct limit_budget *budget; /* owns */
    size_t n_budgets;
    struct limit_call *first, *last;
    uint64_t queued, queued_bytes; /* until they have passed */
    uint64_t refused;
};

/* ---- options ------------------------------------------------------------------- */

#define OPTION(k, t) .key = #k, .type = TENREC_OPT_##t, .offset = offsetof(struct limit_options, k)
/* clang-format off */
static const struct tenrec_option options[] = {
    { OPTION(direction, STRING), .def = "out", .choices = "out|in",
      .help = "Calls that are limited: those sent, or those received." },
    { OPTION(types, LIST), .item = TENREC_OPT_STRING,
      .def = "[CALL, ONE_WAY_CALL, REMOTE_CALL, RREF_FETCH_CALL]",
      .choices = "CALL|ONE_WAY_CALL|REMOTE_CALL|RREF_FETCH_CALL|SCRIPT_CALL|SCRIPT_REMOTE_CALL|"
                 "SCRIPT_RREF_FETCH_CALL|FORWARD_AUTOGRAD_REQ|BACKWARD_AUTOGRAD_REQ|"
                 "RUN_WITH_PROFILING_REQ|RREF_BACKWARD_REQ",
      .help = "Types of calls that are limited." },
    { OPTION(by, STRING), .def = "all", .choices = "all|type|peer|type_and_peer",
      .help = "Calls that share a budget: all, or those of one type, one peer, or both." },
    { OPTION(calls_per_second, DOUBLE), .def = "0", .max = INT32_MAX,
      .help = "Calls of each budget; 0 means no limit." },
    { OPTION(bytes_per_second, SIZE), .def = "0", .max = INT64_MAX,
      .help = "Bytes of each budget, of payloads and tensors; 0 means no limit." },
    { OPTION(burst, DURATION), .def = "1s", .max = 86400000,
      .help = "Time whose calls and bytes may pass at once after a rest." },
    { OPTION(over, STRING), .def = "queue", .choices = "queue|refuse",
      .help = "Whether a call over the limit waits for its turn or fails with EAGAIN." },
    { OPTION(max_queued_bytes, SIZE), .def = "64MiB", .max = INT64_MAX,
      .help = "Bytes of queued calls, and 1 KiB for each; a call beyond fails with EAGAIN." },
};
/* clang-format on */

const struct tenrec_plugin tenrec_plugin = {
    TENREC_PLUGIN_HEADER,
    TENREC_PLUGIN_OPTIONS(options, struct limit_options),
    .flags = TENREC_PLUGIN_WRAPS | TENREC_PLUGIN_UNLOADABLE,
    .name = "limit",
    .version = "1.0",
    .summary = "Wraps any agent and limits calls and bytes per second.",
};

tenrec_status tenrec_construct_options(void *opts, tenrec_error *err)
{
    (void)opts, (void)err; /* no rule spans several options */
    return TENREC_OK;
}

/* ---- calls that pass and calls that fail ----------------------------------------- */

static void limit_pass(const struct limit *l, const struct limit_call *c)
{
    if (l->incoming)
        l->self->host->deliver_outer(l->self, c->peer, c->msg);
    else
        l->self->host->send_inner(l->self, c->peer, c->msg, c->done);
}

/* A caller with Tenrec's payloads gets the status in the form of docs/wire.md, array(5) of status,
 * worker, name, errno and text; any other the text. */
static void limit_answer(const struct limit *l, const struct limit_call *c, const tenrec_error *why)
{
    char head[] = "\xd9\xd9\xf7\x85\x20\x20\x60\0\x78"; /* the last byte: length of the text */
    const bool ours = c->msg->payload_len >= 3 && memcmp(c->msg->payload, head, 3) == 0;
    const size_t n = strnlen(why->text, 255), skip = ours ? sizeof head : 0;
    struct tenrec_msg *msg = l->self->host->msg_new(l->self, skip + n, 0);

    if (!msg)
        return; /* the caller's time runs out */
    head[4] |= (char)(-1 - why->code);
    head[sizeof head - 1] = (char)n;
    memcpy(msg->payload, head, skip);
    memcpy((char *)msg->payload + skip, why->text, n);
    msg->type = TENREC_MSG_EXCEPTION;
    msg->id = c->msg->id;
    msg->route = c->msg->route;
    l->self->host->send_inner(l->self, c->peer, msg, (struct tenrec_done){ NULL, NULL });
}

/* Fails the call: "limit: CALL to worker 1 `why`". */
static void limit_fail(const struct limit *l, const struct limit_call *c, tenrec_status code,
                       const char *why)
{
    tenrec_error err;

    tenrec_fail(&err, code, "%s: %s %s worker %d %s", l->name, tenrec_msg_type_name(c->msg->type),
                l->incoming ? "from" : "to", (int)c->peer, why);
    if (l->incoming && c->msg->type != TENREC_MSG_ONE_WAY_CALL)
        limit_answer(l, c, &err);
    c->msg->release(c->msg);
    if (c->done.fn)
        c->done.fn(c->done.arg, &err);
}

/* ---- the queue ----------------------------------------------------------------- */

static uint64_t limit_now_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* Searches from the end: most calls are due after those before them. With the lock. */
static void limit_queue(struct limit *l, struct limit_call *c)
{
    c->prev = l->last;
    while (c->prev && c->prev->due_ns > c->due_ns)
        c->prev = c->prev->prev;
    c->next = c->prev ? c->prev->next : l->first;
    *(c->prev ? &c->prev->next : &l->first) = c;
    *(c->next ? &c->next->prev : &l->last) = c;
    l->budget[c->budget].queued++;
    l->queued++;
    l->queued_bytes += c->bytes;
}

/* Passes the first queued call. Before its time a timer fires only when the worker shuts down. */
static void limit_on_time(void *arg)
{
    struct limit *l = arg;
    const uint64_t now = limit_now_ns();
    struct limit_call *c;

    pthread_mutex_lock(&l->lock);
    c = l->first;
    l->first = c->next;
    *(c->next ? &c->next->prev : &l->last) = NULL;
    const bool early = now < c->due_ns, late = c->msg->deadline_ns && c->msg->deadline_ns <= now;
    l->refused += early || late;
    pthread_mutex_unlock(&l->lock);
    if (early)
        limit_fail(l, c, TENREC_ECANCELED, "was queued, and the worker shuts down or lacks memory");
    else if (late)
        limit_fail(l, c, TENREC_ETIMEDOUT, "was queued, and its deadline expired");
    else
        limit_pass(l, c);
    pthread_mutex_lock(&l->lock);
    l->budget[c->budget].queued--;
    l->queued_bytes -= c->bytes;
    if (--l->queued == 0)
        pthread_cond_broadcast(&l->idle);
    pthread_mutex_unlock(&l->lock);
    free(c);
}

/* ---- the limit ------------------------------------------------------------------ */

/* Sets c->budget, that of calls of the row-th type; false without memory. With the lock. */
static bool limit_find_budget(struct limit *l, size_t row, struct limit_call *c)
{
    const bool by_peer = strstr(l->opt->by, "peer") && c->peer >= 0 && c->peer <= INT16_MAX;
    const size_t at = by_peer ? (size_t)c->peer + 1 : 0, n = (at + 8) * l->opt->types.n;
    struct limit_budget *bigger;

    c->budget = at * l->opt->types.n + (strncmp(l->opt->by, "type", 4) == 0 ? row : 0);
    if (c->budget < l->n_budgets)
        return true;
    bigger = realloc(l->budget, n * sizeof *bigger);
    if (!bigger)
        return false;
    memset(bigger + l->n_budgets, 0, (n - l->n_budgets) * sizeof *bigger);
    l->budget = bigger;
    l->n_budgets = n;
    return true;
}

/* Charges the call to its budget, and queues a copy of it in *ret unless it may pass at once.
 * Returns the reason against both, or NULL. With the lock. */
static const char *limit_admit(struct limit *l, struct limit_call *c, uint64_t now,
                               struct limit_call **ret)
{
    struct limit_budget *b = &l->budget[c->budget];
    const uint64_t call_ns = bucket_cost_ns(l->opt->calls_per_second, 1);
    const uint64_t bytes_ns = bucket_cost_ns((double)l->opt->bytes_per_second, (double)c->bytes);
    const uint64_t ns = call_ns > bytes_ns ? call_ns : bytes_ns, deadline = c->msg->deadline_ns;

    c->due_ns = bucket_due_ns(&b->bucket, ns, l->opt->burst * 1000000, now);
    c->bytes += CALL_BYTES;
    if (c->due_ns > now || b->queued) {
        if (strcmp(l->opt->over, "refuse") == 0)
            return ns == call_ns ? "exceeds calls_per_second" : "exceeds bytes_per_second";
        if (c->bytes > l->opt->max_queued_bytes - l->queued_bytes)
            return "exceeds the limit, and max_queued_bytes is reached";
        if (c->due_ns - now > WAIT_MAX_NS || (deadline && c->due_ns >= deadline))
            return "exceeds the limit, and its turn comes after its deadline";
        *ret = malloc(sizeof **ret);
        if (!*ret)
            return "exceeds the limit, and finds no memory";
        c->msg->flags &= ~(uint32_t)TENREC_MSG_MAY_WAIT; /* a timer passes it */
        **ret = *c;
        limit_queue(l, *ret);
    }
    bucket_spend(&b->bucket, ns, now);
    return NULL;
}

/* A call of the row-th type. */
static void limit_call(struct limit *l, size_t row, struct limit_call *c)
{
    struct limit_call *queued = NULL;
    const char *why = "finds no memory to be counted";
    uint64_t now;

    for (uint32_t i = 0; i < c->msg->n_tensors; i++)
        c->bytes += tenrec_msg_tensor(c->msg, i)->bytes;
    pthread_mutex_lock(&l->lock);
    now = limit_now_ns(); /* in the order of the changes */
    if (limit_find_budget(l, row, c))
        why = limit_admit(l, c, now, &queued);
    l->refused += why != NULL;
    pthread_mutex_unlock(&l->lock);
    if (why)
        limit_fail(l, c, TENREC_EAGAIN, why);
    else if (!queued)
        limit_pass(l, c);
    else if (l->self->host->after(l->self, (uint32_t)((c->due_ns - now + 999999) / 1000000),
                                  limit_on_time, l) != TENREC_OK)
        limit_on_time(l);
}

static void limit_message(struct limit *l, struct limit_call c)
{
    const char *type = tenrec_msg_type_name(c.msg->type);
    size_t row = 0;

    while (row < l->opt->types.n && (!type || strcmp(l->opt->types.v[row].s, type) != 0))
        row++;
    if (row < l->opt->types.n && !(c.msg->flags & TENREC_MSG_CONTROL))
        limit_call(l, row, &c);
    else
        limit_pass(l, &c);
}

static void limit_send(struct tenrec_agent *self, tenrec_peer to, struct tenrec_msg *msg,
                       struct tenrec_done done)
{
    limit_message(
        self->impl,
        (struct limit_call){ .bytes = msg->payload_len, .peer = to, .msg = msg, .done = done });
}

static void limit_deliver(struct tenrec_agent *self, tenrec_peer from, struct tenrec_msg *msg)
{
    limit_message(self->impl,
                  (struct limit_call){ .bytes = msg->payload_len, .peer = from, .msg = msg });
}

/* ---- life ---------------------------------------------------------------------- */

static tenrec_status limit_drain(struct tenrec_agent *self, uint32_t ms, tenrec_error *err)
{
    struct limit *l = self->impl;
    const uint64_t until = limit_now_ns() + (uint64_t)ms * 1000000;
    const struct timespec at = { (time_t)(until / 1000000000u), (long)(until % 1000000000u) };
    uint64_t left;
    int r = 0;

    pthread_mutex_lock(&l->lock);
    while (l->queued && r == 0)
        r = pthread_cond_timedwait(&l->idle, &l->lock, &at);
    left = l->queued;
    pthread_mutex_unlock(&l->lock);
    return left ? tenrec_fail(err, TENREC_ETIMEDOUT, "%llu calls are still queued after %u ms",
                              (unsigned long long)left, ms)
                : TENREC_OK;
}

static void limit_destroy(struct tenrec_agent *self)
{
    struct limit *l = self->impl;

    free(l->budget);
    pthread_cond_destroy(&l->idle);
    pthread_mutex_destroy(&l->lock);
    free(l);
}

static void limit_debug_info(struct tenrec_agent *self, tenrec_sink_fn *sink, void *arg)
{
    static const char *const keys[] = { "refused", "queued_now" };
    struct limit *l = self->impl;
    char value[24];

    pthread_mutex_lock(&l->lock);
    const uint64_t n[] = { l->refused, l->queued };
    pthread_mutex_unlock(&l->lock);
    for (size_t i = 0; i < sizeof n / sizeof n[0]; i++) {
        snprintf(value, sizeof value, "%llu", (unsigned long long)n[i]);
        sink(arg, keys[i], value);
    }
}

tenrec_status tenrec_init_agent(const struct tenrec_init *in, struct tenrec_agent *self,
                                tenrec_error *err)
{
    const struct limit_options *o = in->options;
    const bool limits = o->types.n && (o->calls_per_second > 0 || o->bytes_per_second > 0);
    struct limit *l = calloc(1, sizeof *l);
    pthread_condattr_t attr;

    if (!l)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for the limit agent");
    *l = (struct limit){ .self = self, .opt = o };
    l->incoming = strcmp(o->direction, "in") == 0;
    snprintf(l->name, sizeof l->name, "%s", in->backend);
    pthread_mutex_init(&l->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&l->idle, &attr);
    pthread_condattr_destroy(&attr);
    l->ops = (struct tenrec_agent_ops){ .size = sizeof l->ops,
                                        .send = limits && !l->incoming ? limit_send : NULL,
                                        .deliver = limits && l->incoming ? limit_deliver : NULL,
                                        .drain = limits && !l->incoming ? limit_drain : NULL,
                                        .destroy = limit_destroy,
                                        .debug_info = limit_debug_info };
    self->impl = l;
    self->ops = &l->ops;
    return TENREC_OK;
}
