/* SPDX-License-Identifier: Apache-2.0 */
/* call.h - the caller's side: id, deadline, future. */
#ifndef TENREC_CALL_CALL_H
#define TENREC_CALL_CALL_H

#include <tenrec/agent.h>
#include <tenrec/rpc.h>

struct codec_creation;

/* Whoever has to know when a call ends. `done` runs once, before the future is
 * done, on the thread that completes it; no lock is held. It may free itself. */
struct call_hook {
    void (*done)(struct call_hook *h, struct tenrec_worker *w, const tenrec_error *why);
    struct call_hook *next; /* set by who adds it to a spec */
};

/* Like call_hook, for the backend's word about the request: `sent` runs once, before or after
 * the call ends, for a call can end while its request still waits. */
struct call_sent_hook {
    void (*sent)(struct call_sent_hook *h, const tenrec_error *why);
};

/* What a call needs beside its message. */
struct call_spec {
    struct future_node *node; /* who waits, known before anybody can complete it; or NULL */
    tenrec_peer to;
    const char *function; /* for error texts */
    struct tenrec_tensor *into;
    uint64_t deadline_ns;
    int64_t timeout_ms;               /* of which the deadline was made: for its text */
    const char *op;                   /* what recorded calls are named by */
    struct span *span;                /* the future's; NULL: the call is not recorded */
    struct call_hook *hook;           /* a list; not called when call_send fails */
    struct call_sent_hook *sent_hook; /* or NULL; the same */
    bool want_value;
    bool may_wait; /* the sender may wait for room in the queue */
};

/* Sends a request (takes msg always) and makes the future of its answer. The
 * caller is inside the worker (worker_enter). errors: EAGAIN, ENOMEM,
 * ESHUTDOWN; all else fails the future. */
tenrec_status call_send(struct tenrec_worker *w, const struct call_spec *spec,
                        struct tenrec_msg *msg, struct tenrec_future **ret, tenrec_error *err);

/* Writes a call and sends it; what it brings of references ends with it.
 * spec->to, deadline_ns and function are set. */
tenrec_status call_write(struct tenrec_worker *w, int32_t type, struct call_spec *spec,
                         const struct codec_creation *creation, const struct tenrec_value *args,
                         size_t n, int64_t timeout_ms, struct tenrec_future **ret,
                         tenrec_error *err);

/* size, flags that are allowed, `into`. errors: EINVAL */
tenrec_status call_check_options(const struct tenrec_call_options *o, uint32_t flags,
                                 tenrec_error *err);

/* A buffer for the result, in the host or on a device: there *ret is the same one with
 * a stream on which it may be written, after what this thread does with it. end
 * is to be called when that was sent. errors: EUNSUPPORTED, the driver's */
tenrec_status call_begin_into(struct tenrec_tensor *into, struct tenrec_tensor **ret,
                              tenrec_error *err);
void call_end_into(struct tenrec_tensor *into, struct tenrec_tensor *made);

/* A job counts as outstanding although no call of it is under way, from begun
 * to ended. */
void call_job_begun(struct tenrec_worker *w);
void call_job_ended(struct tenrec_worker *w);

/* The same for a call with a span: tells about it when it was sent. */
tenrec_status call_send_recorded(struct tenrec_worker *w, const struct call_spec *spec,
                                 struct tenrec_msg *msg, struct tenrec_future **ret,
                                 tenrec_error *err);

/* The limit of a call made now: TENREC_TIMEOUT_DEFAULT becomes the worker's. Puts
 * the milliseconds that are meant into *timeout_ms. */
tenrec_status call_deadline(struct tenrec_worker *w, int64_t *timeout_ms, uint64_t *ret_ns,
                            tenrec_error *err);

/* An answer came: takes msg. */
void call_answered(struct tenrec_worker *w, tenrec_peer from, struct tenrec_msg *msg);

/* Fail what is late / goes to `to` (all when < 0). */
void call_expire(struct tenrec_worker *w);
void call_fail_peer(struct tenrec_worker *w, tenrec_peer to, const tenrec_error *why);

/* Takes the entry of this one future out and fails it as late. */
void call_expire_one(struct tenrec_worker *w, struct tenrec_future *f);

/* The same with a reason, if it is still pending. */
void call_fail_one(struct tenrec_worker *w, struct tenrec_future *f, const tenrec_error *why);

/* The buffer that the caller gave for the answer `msg` of `from`, shared once more; NULL
 * when the caller gave none, or did not call `from`. */
struct tenrec_tensor *call_into(struct tenrec_worker *w, tenrec_peer from,
                                const struct tenrec_msg *msg);

/* The answer `msg` of `from` cannot be read: fails its call. */
void call_fail(struct tenrec_worker *w, tenrec_peer from, const struct tenrec_msg *msg,
               const tenrec_error *why);

#endif
