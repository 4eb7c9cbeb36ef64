/* SPDX-License-Identifier: Apache-2.0 */
/* limit.c - a backend that wraps any other and limits calls and their bytes per second.
 *
 * Answers and control messages always pass: only a call has a caller that can try again. The
 * core holds queued calls, and passes them in the order in which they are due, which is that of
 * the calls of a budget. */
#include "bucket.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <tenrec/plugin.h>

#define CALL_BYTES 1024 /* for max_queued_bytes, beside payload and tensors */

struct limit_options {
    const char *direction, *by, *over;
    struct tenrec_option_list types;
    double calls_per_second;                                     /* 0: no limit */
    uint64_t bytes_per_second, burst /* ms */, max_queued_bytes; /* 0 bytes: no limit */
};

struct limit_call {
    struct limit *limit;
    uint64_t due_ns, bytes;
    struct limit_budget *budget;
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
    const char *name; /* borrows until destroy */

    pthread_mutex_t lock;  /* guards what follows */
    uint64_t queued_bytes; /* of calls until they have passed, as queued */
    atomic_ulong queued, refused;
    struct limit_budget budget[]; /* zeroed pages take no memory before their first use */
};

/* ---- options ------------------------------------------------------------------- */

#define OPTION(k, t) .key = #k, .type = TENREC_OPT_##t, .offset = offsetof(struct limit_options, k)
/* clang-format off */
static const struct tenrec_option options[] = {
    { OPTION(direction, STRING), .def = "out", .choices = "out|in",
      .help = "Calls that are limited: those sent, or those received." },
    { OPTION(types, LIST), .item = TENREC_OPT_STRING,
      .def = "[CALL, ONE_WAY_CALL, REMOTE_CALL, RREF_FETCH_CALL, BULK_READ, BULK_WRITE]",
      .choices = "CALL|ONE_WAY_CALL|REMOTE_CALL|RREF_FETCH_CALL|BULK_READ|BULK_WRITE|SCRIPT_CALL|"
                 "SCRIPT_REMOTE_CALL|SCRIPT_RREF_FETCH_CALL|FORWARD_AUTOGRAD_REQ|BACKWARD_AUTOGRAD_REQ|"
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
    .flags = TENREC_PLUGIN_WRAPS | TENREC_PLUGIN_UNLOADABLE | TENREC_PLUGIN_SETUID,
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

/* Fails the call: "limit: CALL to worker 1 `why`". */
static void limit_fail(struct limit *l, const struct limit_call *c, tenrec_status code,
                       const char *why)
{
    struct tenrec_msg *answer = NULL; /* without memory for it the caller's time runs out */
    tenrec_error err;

    l->refused++;
    tenrec_fail(&err, code, "%s: %s %s worker %d %s", l->name, tenrec_msg_type_name(c->msg->type),
                l->incoming ? "from" : "to", (int)c->peer, why);
    if (l->incoming && c->msg->type != TENREC_MSG_ONE_WAY_CALL)
        answer = l->self->host->exception_new(l->self, c->msg, &err);
    if (answer)
        l->self->host->send_inner(l->self, c->peer, answer, (struct tenrec_done){ NULL, NULL });
    c->msg->release(c->msg);
    if (c->done.fn)
        c->done.fn(c->done.arg, &err);
}

/* ---- the queue ----------------------------------------------------------------- */

/* Passes a queued call. Before its time the core asks for it only when the worker shuts down. */
static void limit_on_time(void *arg)
{
    struct limit_call *c = arg;
    struct limit *l = c->limit;
    const uint64_t now = tenrec_now_ns();

    if (now < c->due_ns)
        limit_fail(l, c, TENREC_ECANCELED, "was queued, and the worker shuts down or lacks memory");
    else if (c->msg->deadline_ns && c->msg->deadline_ns <= now)
        limit_fail(l, c, TENREC_ETIMEDOUT, "was queued, and its deadline expired");
    else
        limit_pass(l, c);
    pthread_mutex_lock(&l->lock);
    c->budget->queued--;
    l->queued_bytes -= c->bytes;
    l->queued--;
    pthread_mutex_unlock(&l->lock);
    free(c);
}

/* ---- the limit ------------------------------------------------------------------ */

/* The budget of calls of the row-th type to or from `peer`. */
static struct limit_budget *limit_budget_of(struct limit *l, size_t row, tenrec_peer peer)
{
    const bool by_peer = strstr(l->opt->by, "peer") && peer >= 0 && peer <= INT16_MAX;
    const size_t at = by_peer ? (size_t)peer + 1 : 0;

    return &l->budget[at * l->opt->types.n + (strncmp(l->opt->by, "type", 4) == 0 ? row : 0)];
}

/* Charges the call to its budget, and queues a copy of it in *ret unless it may pass at once.
 * Returns the reason against both, or NULL. With the lock. */
static const char *limit_admit(struct limit *l, struct limit_call *c, uint64_t now,
                               struct limit_call **ret)
{
    const struct limit_options *o = l->opt;
    struct limit_budget *b = c->budget;
    const uint64_t call_ns = bucket_cost_ns(o->calls_per_second, 1);
    const uint64_t bytes = tenrec_msg_bytes(c->msg);
    const uint64_t bytes_ns = bucket_cost_ns((double)o->bytes_per_second, (double)bytes);
    const uint64_t ns = call_ns > bytes_ns ? call_ns : bytes_ns, deadline = c->msg->deadline_ns;

    c->due_ns = bucket_due_ns(&b->bucket, ns, o->burst * 1000000, now);
    c->bytes = bytes + CALL_BYTES;
    if (c->due_ns > now || b->queued) {
        if (strcmp(o->over, "refuse") == 0)
            return ns == call_ns ? "exceeds calls_per_second" : "exceeds bytes_per_second";
        if (l->queued_bytes + c->bytes > o->max_queued_bytes)
            return "exceeds the limit, and max_queued_bytes is reached";
        if (deadline && c->due_ns >= deadline)
            return "exceeds the limit, and its turn comes after its deadline";
        *ret = malloc(sizeof **ret);
        if (!*ret)
            return "exceeds the limit, and finds no memory";
        c->msg->flags &= ~(uint32_t)TENREC_MSG_MAY_WAIT; /* a timer passes it */
        **ret = *c;
        b->queued++;
        l->queued++;
        l->queued_bytes += c->bytes;
    }
    bucket_spend(&b->bucket, ns, now);
    return NULL;
}

/* A message of the limited direction; received ones have no `done`. */
static void limit_message(struct tenrec_agent *self, tenrec_peer peer, struct tenrec_msg *msg,
                          struct tenrec_done done)
{
    struct limit *l = self->impl;
    struct limit_call c = { .limit = l, .peer = peer, .msg = msg, .done = done }, *queued = NULL;
    const char *type = tenrec_msg_type_name(msg->type), *why = NULL;
    size_t row = 0;

    while (row < l->opt->types.n && (!type || strcmp(l->opt->types.v[row].s, type) != 0))
        row++;
    if (row < l->opt->types.n && !(msg->flags & TENREC_MSG_CONTROL)) {
        c.budget = limit_budget_of(l, row, peer);
        pthread_mutex_lock(&l->lock);
        why = limit_admit(l, &c, tenrec_now_ns(), &queued); /* the time in the order of budgets */
        pthread_mutex_unlock(&l->lock);
    }
    if (why)
        limit_fail(l, &c, TENREC_EAGAIN, why);
    else if (!queued)
        limit_pass(l, &c);
    else if (l->self->host->hold(l->self, c.due_ns, !l->incoming, limit_on_time, queued))
        limit_on_time(queued);
}

static void limit_deliver(struct tenrec_agent *self, tenrec_peer from, struct tenrec_msg *msg)
{
    limit_message(self, from, msg, (struct tenrec_done){ NULL, NULL });
}

/* ---- life ---------------------------------------------------------------------- */

static void limit_destroy(struct tenrec_agent *self)
{
    struct limit *l = self->impl;

    pthread_mutex_destroy(&l->lock);
    free(l);
}

static void limit_debug_info(struct tenrec_agent *self, tenrec_sink_fn *sink, void *arg)
{
    struct limit *l = self->impl;

    tenrec_sink_number(sink, arg, "refused", l->refused);
    tenrec_sink_number(sink, arg, "queued_now", l->queued);
}

tenrec_status tenrec_init_agent(const struct tenrec_init *in, struct tenrec_agent *self,
                                tenrec_error *err)
{
    const struct limit_options *o = in->options;
    const bool incoming = strcmp(o->direction, "in") == 0;
    const size_t n_budgets = (strstr(o->by, "peer") ? INT16_MAX + 2 : 1) * o->types.n;
    struct limit *l;

    if (TENREC_REQUIRES(self->host, exception_new, err) || TENREC_REQUIRES(self->host, hold, err))
        return TENREC_EABI;
    l = calloc(1, sizeof *l + n_budgets * sizeof *l->budget);
    if (!l)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for the limit agent");
    *l = (struct limit){ .self = self, .opt = o, .incoming = incoming, .name = in->backend };
    pthread_mutex_init(&l->lock, NULL);
    l->ops = (struct tenrec_agent_ops){ .size = sizeof l->ops,
                                        .send = !incoming ? limit_message : NULL,
                                        .deliver = incoming ? limit_deliver : NULL,
                                        .destroy = limit_destroy,
                                        .debug_info = limit_debug_info };
    self->impl = l;
    self->ops = &l->ops;
    return TENREC_OK;
}
