/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/call/observe.h"

#include "core/base/clock.h"
#include "rpc/value/trace.h"

void observe_connect(struct tenrec_worker *w, enum observer_of_calls i,
                     const struct call_observer *observer)
{
    w->calls->observer[i] = observer;
    if (observer->answers_spans)
        w->calls->answers_spans |= 1u << i;
}

void observe_turn(struct tenrec_worker *w, enum observer_of_calls i, bool on)
{
    if (on)
        atomic_fetch_or(&w->calls->observed, 1u << i);
    else
        atomic_fetch_and(&w->calls->observed, ~(1u << i));
}

/* Calls `fn` of each observer in `bits` that has it. */
#define OBSERVE_EACH(w, bits, fn, ...)                                                             \
    do {                                                                                           \
        for (uint32_t left = (bits); left; left &= left - 1) {                                     \
            const struct call_observer *o = (w)->calls->observer[__builtin_ctz(left)];             \
            if (o->fn)                                                                             \
                o->fn(__VA_ARGS__);                                                                \
        }                                                                                          \
    } while (0)

void observe_begin(struct tenrec_worker *w, struct call_spec *spec)
{
    spec->seen.observers = observe_bits(w);
    if (!spec->seen.begun_ns)
        spec->seen.begun_ns = clock_fast_ns();
    OBSERVE_EACH(w, spec->seen.observers, begin, w, spec);
}

void observe_ended(struct tenrec_worker *w, const struct future_call *c, struct tenrec_msg *answer,
                   tenrec_status status)
{
    const uint64_t now_ns = clock_fast_ns();

    OBSERVE_EACH(w, c->seen.observers, ended, w, c, answer, status, now_ns);
}

void observe_refused(struct tenrec_worker *w, struct call_spec *spec, tenrec_status why)
{
    const struct future_call c = { .worker = w, .id = -1, .to = spec->to, .seen = spec->seen };

    spec->seen.observers = 0;
    observe_ended(w, &c, NULL, why);
}

void observe_arrived(struct tenrec_call *c)
{
    c->observers =
        observe_bits(c->worker) | (c->in.spans_max > 0 ? c->worker->calls->answers_spans : 0);
    if (!c->arrived_ns)
        c->arrived_ns = clock_fast_ns();
    OBSERVE_EACH(c->worker, c->observers, arrived, c);
}

/* In the context of its trace. By value, as the call may be freed while its function runs. */
static tenrec_status observe_run_function(struct tenrec_call *c, tenrec_error *err)
{
    const struct function *f = c->function;
    struct trace_thread outer;
    tenrec_status st;

    if (!c->in.traced)
        return f->fn(c, f->arg, err);
    outer = trace_thread_enter(&c->in.trace);
    st = f->fn(c, f->arg, err);
    trace_thread = outer;
    return st;
}

tenrec_status observe_run(struct tenrec_call *c, uint32_t rest, tenrec_error *err)
{
    for (; rest; rest &= rest - 1) {
        const struct call_observer *o = c->worker->calls->observer[__builtin_ctz(rest)];
        if (o->run)
            return o->run(c, rest & (rest - 1), err);
    }
    return observe_run_function(c, err);
}

void observe_served(struct tenrec_call *c, struct tenrec_msg **answer, tenrec_status status)
{
    const uint64_t now_ns = clock_fast_ns();
    const uint32_t bits = c->observers;

    c->observers = 0;
    OBSERVE_EACH(c->worker, bits, served, c, answer, status, now_ns);
}

void observe_note(struct tenrec_worker *w, enum call_note what, tenrec_peer peer, int64_t id,
                  tenrec_status status, const char *text)
{
    for (int i = 0; i < OBSERVERS_OF_CALLS; i++) {
        const struct call_observer *o = w->calls->observer[i]; /* NULL in a test of a room alone */
        if (o && o->noted)
            o->noted(w, what, peer, id, status, text);
    }
}

uint64_t observe_message_bytes(const struct tenrec_msg *msg)
{
    uint64_t n = msg->payload_len;

    for (uint32_t i = 0; i < msg->n_tensors; i++)
        if (!tenrec_msg_tensor(msg, i)->same_storage)
            n += tenrec_msg_tensor(msg, i)->bytes;
    return n;
}
