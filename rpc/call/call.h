/* SPDX-License-Identifier: Apache-2.0 */
/* call.h - the caller's side of a call: request, deadline, future, answer. */
#ifndef TENREC_CALL_CALL_H
#define TENREC_CALL_CALL_H

#include "rpc/future/future.h"

#include <tenrec/agent.h>
#include <tenrec/rpc.h>

struct codec_creation;
struct trace_context;

/* A hook for the end of a call. `done` runs once, before the future is done, on the thread that
 * completes the future; no lock is held. It may free the hook. */
struct call_hook {
    void (*done)(struct call_hook *h, struct tenrec_worker *w, const tenrec_error *why);
    struct call_hook *next; /* set by the adder */
};

/* A hook for the backend's completion of the request: `sent` runs once, before or after the call
 * ends, as a call can end while its request is queued. */
struct call_sent_hook {
    void (*sent)(struct call_sent_hook *h, const tenrec_error *why);
};

/* The parameters of a call beside its message. */
struct call_spec {
    struct future_node *node; /* a waiter, set before any thread can complete the call; or NULL */
    tenrec_peer to;
    const char *function; /* for error texts */
    struct tenrec_tensor *into;
    /* Set by call_begin_now. */
    uint64_t deadline_ns;
    int64_t timeout_ms;
    const char *op;          /* in the names of profiled calls; NULL: none */
    const char *traceparent; /* a valid text; NULL: the thread's context */
    /* Set by call_write. */
    struct trace_context *room; /* for a context that an observer makes; NULL: none is sent */
    const struct trace_context *trace; /* sent with the call; NULL: none */
    uint32_t spans_max;                /* bytes of spans allowed in the answer; by an observer */
    struct call_seen seen;             /* the future's */
    struct call_hook *hook;            /* a list; not called if call_send fails */
    struct call_sent_hook *sent_hook;  /* likewise; or NULL */
    struct tenrec_future *result; /* taken by call_send if it succeeds: done in place of the future
                                     of the call; or NULL */
    bool want_value;
    bool may_wait; /* the sender may wait for room in the queue */
    bool polled;   /* the sender polls for the answer next */
    bool deref;    /* the first argument, a reference, stands for its value */
};

/* Sends a request (takes msg always) and makes the future of its answer. The caller is inside the
 * worker. errors: EAGAIN, ENOMEM, ESHUTDOWN; any other error fails the future. */
tenrec_status call_send(struct tenrec_worker *w, struct call_spec *spec, struct tenrec_msg *msg,
                        struct tenrec_future **ret, tenrec_error *err);

/* Writes a call and sends it; the references in it are released with it. spec->to and function, and
 * its times, are set. */
tenrec_status call_write(struct tenrec_worker *w, int32_t type, struct call_spec *spec,
                         const struct codec_creation *creation, const struct tenrec_value *args,
                         size_t n, struct tenrec_future **ret, tenrec_error *err);

/* Calls of tenrec_rpc_sync and tenrec_rpc_async. With `deref` the first argument, a reference,
 * stands for its value at the callee. */
tenrec_status call_sync(struct tenrec_worker *w, const char *to, const char *function,
                        const struct tenrec_value *args, size_t n, bool deref,
                        const struct tenrec_call_options *options, struct tenrec_value **ret,
                        tenrec_error *err);
tenrec_status call_async(struct tenrec_worker *w, const char *to, const char *function,
                         const struct tenrec_value *args, size_t n, bool deref,
                         const struct tenrec_call_options *options, struct tenrec_future **ret,
                         tenrec_error *err);
/* The same, for futures that are not the program's: its scopes do not have them. */
tenrec_status call_async_unscoped(struct tenrec_worker *w, const char *to, const char *function,
                                  const struct tenrec_value *args, size_t n, bool deref,
                                  const struct tenrec_call_options *options,
                                  struct tenrec_future **ret, tenrec_error *err);

/* Checks size, flags (of which `flags` are allowed) and `into`. errors: EINVAL */
tenrec_status call_check_options(const struct tenrec_call_options *o, uint32_t flags,
                                 tenrec_error *err);

/* Prepares a buffer for the result. On a device *ret is the same buffer with a stream on which it
 * may be written after the thread's queued work. call_end_into follows once the call was sent.
 * errors: EUNSUPPORTED, the driver's */
tenrec_status call_begin_into(struct tenrec_tensor *into, struct tenrec_tensor **ret,
                              tenrec_error *err);
void call_end_into(struct tenrec_tensor *into, struct tenrec_tensor *made);

/* A job that repeats calls (rref_control.c) counts as an outstanding call between these, also while
 * none of them is in flight. */
void call_outstanding_begin(struct tenrec_worker *w);
void call_outstanding_end(struct tenrec_worker *w);

/* Sets the times of a call with this limit (TENREC_TIMEOUT_DEFAULT: the worker's), made now. */
tenrec_status call_begin_now(struct tenrec_worker *w, struct call_spec *spec, int64_t timeout_ms,
                             tenrec_error *err);

/* The deadline of any other operation. Replaces TENREC_TIMEOUT_DEFAULT in *timeout_ms. */
tenrec_status call_deadline(struct tenrec_worker *w, int64_t *timeout_ms, uint64_t *ret_ns,
                            tenrec_error *err);

/* Fail the calls whose deadline has expired / to the peer `to` (all calls if < 0). */
void call_expire(struct tenrec_worker *w);
void call_fail_peer(struct tenrec_worker *w, tenrec_peer to, const tenrec_error *why);

/* Returns true if a call waits for an answer of `to`. */
bool call_waits_for(struct tenrec_worker *w, tenrec_peer to);

/* Fails the call of a future as expired, if it is pending. */
void call_expire_one(struct tenrec_worker *w, struct tenrec_future *f);

/* The same with an error. */
void call_fail_one(struct tenrec_worker *w, struct tenrec_future *f, const tenrec_error *why);

/* The caller's buffer for the answer `msg` of `from`, shared. NULL if the caller gave no buffer, or
 * did not call `from`. */
struct tenrec_tensor *call_into(struct tenrec_worker *w, tenrec_peer from,
                                const struct tenrec_msg *msg);

/* Fails the call of the answer `msg` of `from`, which cannot be read. */
void call_fail(struct tenrec_worker *w, tenrec_peer from, const struct tenrec_msg *msg,
               const tenrec_error *why);

/* An answer has arrived. Takes msg. */
void call_answered(struct tenrec_worker *w, tenrec_peer from, struct tenrec_msg *msg);

#endif
