/* SPDX-License-Identifier: Apache-2.0 */
/* serve.h - served calls, from their request to their answer; and requests that are refused. */
#ifndef TENREC_CALL_SERVE_H
#define TENREC_CALL_SERVE_H

#include "core/base/hash.h"
#include "rpc/future/pool.h"
#include "rpc/value/codec.h"

#include <pthread.h>
#include <stdatomic.h>
#include <tenrec/message.h>
#include <tenrec/rpc.h>

struct function;
struct streams;
struct tenrec_span;

struct active_calls_key {
    uint64_t pipe, generation;
    int64_t id;
};

struct tenrec_call {
    struct pool_task task; /* first: the pool passes it to the function */
    struct tenrec_worker *worker;
    struct tenrec_msg *request; /* owns */
    const struct function *function;
    struct tenrec_msg *reply; /* owns; NULL: nil */
    tenrec_peer from;
    struct active_calls_key key;
    uint64_t deadline_ns;
    struct streams *streams;    /* shared; the function's; NULL: the thread's */
    uint64_t arrived_ns;        /* 0: not observed */
    uint64_t began_ns;          /* its function; the recorder's; 0: not recorded */
    uint32_t observers;         /* a bit for each that saw it arrive, until it is served */
    _Atomic uint32_t thread;    /* that its function began on; 0: queued. Not set on the stack */
    _Atomic uint64_t run_ns;    /* when, by the coarse clock */
    bool told_stuck;            /* guarded by the lock of the table */
    struct span *span;          /* an observer's; NULL: not profiled */
    struct tenrec_span *traced; /* likewise; NULL: not sampled */
    struct rref_call *refs;     /* owns; NULL: a call without references */
    struct rref_transfer *transfer; /* references in the reply; may be NULL */
    uint64_t queued_ns;             /* when an unread call arrived */
    bool unread;                    /* its arguments are to be read on the pool, before it begins */
    bool on_stack;                  /* ends before the delivery of its request */
    bool refused;                   /* its function was not started */
    bool repeated;                  /* a duplicate of a creation, which answers */
    bool one_way;
    bool awaited; /* neither one-way nor for a reference */
    bool cbor;    /* the caller reads errors as CBOR */
    atomic_bool canceled;
    bool listed; /* in the table */
    UT_hash_handle hh;
    struct codec_call in; /* the last: the others begin as zeroes */
};

/* The references of served calls, implemented by a room above (rref_call.c). All but `make` and
 * `refused` are for a call whose `refs` is not NULL. */
struct served_refs_ops {
    /* Returns NULL if out of memory. */
    struct rref_call *(*make)(void);

    /* Resolves the references of the arguments; serve_start follows once all are resolved, or
     * with the error. */
    void (*begin)(struct tenrec_call *c);

    /* A creation cannot begin: keeps `why` in place of the value. Takes msg. */
    void (*refused)(struct tenrec_worker *w, tenrec_peer from, struct tenrec_msg *msg,
                    const struct codec_creation *ids, const tenrec_error *why);

    /* Keeps the result of a creation. Returns false if the call is no creation. */
    bool (*keep)(struct tenrec_call *c, const struct tenrec_value *value, tenrec_status *ret,
                 tenrec_error *err);

    /* The function of a creation has ended: keeps the value, or `why` the function failed, and
     * makes the answer. Returns false if the call is no creation, or without memory. */
    bool (*complete)(struct tenrec_call *c, const tenrec_error *why, struct tenrec_msg **ret);

    /* Frees c->refs, before the arguments are finished. */
    void (*end)(struct tenrec_call *c);
};

/* ---- active_calls.c: the table of calls in execution: a cancel message finds its call here, and a
 * shutdown waits for the running ones ------------------------------------------------------------
 */

struct active_calls {
    pthread_mutex_t lock; /* guards the table */
    pthread_cond_t empty; /* monotonic */
    struct tenrec_call *calls;
};

void active_calls_init(struct active_calls *s);
void active_calls_finish(struct active_calls *s);

/* errors: ENOMEM */
tenrec_status active_calls_add(struct active_calls *s, struct tenrec_call *c, tenrec_error *err);
void active_calls_remove(struct active_calls *s, struct tenrec_call *c);
void active_calls_cancel(struct active_calls *s, const struct active_calls_key *key);
/* Cancels all calls of this member whose answers it awaits. */
void active_calls_cancel_from(struct active_calls *s, tenrec_peer caller);

/* Calls `fn` for each call, with the lock held. */
typedef void active_calls_fn(void *arg, struct tenrec_call *c);
void active_calls_each(struct active_calls *s, active_calls_fn *fn, void *arg);

/* active_call.c: the streams of a call on devices; and the target devices of the tensors of its
 * answer, or the error in the place of the answer. Takes `reply`. */
void active_call_streams(struct tenrec_call *c);
struct tenrec_msg *active_call_target(struct tenrec_call *c, struct tenrec_msg *reply);

/* The number of calls that may be answered after their function has returned. */
size_t active_calls_count_later(struct active_calls *s);

/* Waits until the table is empty. errors: ETIMEDOUT, which names a running function */
tenrec_status active_calls_wait(struct active_calls *s, uint64_t deadline_ns, tenrec_error *err);

/* ---- serve.c ----------------------------------------------------------------------------------
 */

/* Serves a call. Takes msg. */
void serve_request(struct tenrec_worker *w, tenrec_peer from, struct tenrec_msg *msg);

/* The arguments are resolved, or failed: runs the function, or answers with `why`. */
void serve_start(struct tenrec_call *c, const tenrec_error *why);

/* From now on no function of `w` starts: queued calls are answered with ESHUTDOWN, and so are later
 * ones. Running functions continue. The caller is inside the worker, or the worker has stopped. */
void serve_stop(struct tenrec_worker *w);
/* Functions start again, after a restart of the worker. */
void serve_resume(struct tenrec_worker *w);

/* ---- serve_end.c ---------------------------------------------------------- */

/* Sends the answer of a function that has returned or finished; ends the call. */
void serve_end(struct tenrec_call *c, const tenrec_error *why);
/* Answers a call whose function was not started. */
void serve_refuse(struct tenrec_call *c, const tenrec_error *why);
/* Ends a call whose arguments were not read, or that was not taken. Inside the worker. */
void serve_abandon(struct tenrec_call *c, const tenrec_error *why);
/* Refuses a message / a call whose start was read. Both take msg. */
void dispatch_refuse(struct tenrec_worker *w, tenrec_peer from, struct tenrec_msg *msg, bool cbor,
                     const tenrec_error *why);
void serve_refuse_request(struct tenrec_worker *w, tenrec_peer from, struct tenrec_msg *msg,
                          const struct codec_head *head, const tenrec_error *why);

/* ---- guard.c: callers that `security:` does not permit, before the arguments are decoded; only
 * for a worker whose functions have rules ------------------------------------- */

/* Checks a call of `f`; NULL: a name without a function, which a stranger may not find out.
 * Counts and logs a refusal.
 *
 * errors   EPERM: the text is for the caller, and names the rule to members alone */
tenrec_status guard_call(struct tenrec_worker *w, tenrec_peer from, const struct tenrec_msg *msg,
                         const struct function *f, const struct codec_head *head,
                         tenrec_error *err);

/* Checks a request that is no call: strangers may send none while the mode is not none. errors: as
 * above */
tenrec_status guard_message(struct tenrec_worker *w, tenrec_peer from, const struct tenrec_msg *msg,
                            tenrec_error *err);

/* ---- answer.c: answers along the routes of their requests. The calling thread has entered the
 * worker, or belongs to the worker ---------------------------------------------------------------
 */

/* Sends `msg` as the answer of request `id`.
 *
 * msg       takes; NULL: out of memory, the caller gets ENOMEM
 * transfer  takes: the references in `msg`; may be NULL */
void answer_send(struct tenrec_worker *w, tenrec_peer to, int64_t id,
                 const struct tenrec_route *route, struct tenrec_msg *msg,
                 struct rref_transfer *transfer);

/* The same with a copy of `msg`, without references. */
void answer_copy(struct tenrec_worker *w, tenrec_peer to, int64_t id,
                 const struct tenrec_route *route, const struct tenrec_msg *msg);

/* Returns true if the backend may refuse to send `msg`, for more than a broken connection: then its
 * sender asks for the end of the send, and the caller gets the reason. */
bool answer_is_followed(const struct tenrec_msg *msg);
/* Returns true if it has refused; an answer lost to a fault or with its connection is not replaced.
 * NULL: it has not. */
bool answer_is_refused(const tenrec_error *why);

/* Answers with an error: as CBOR for a Tenrec worker, else as plain text. */
void answer_error(struct tenrec_worker *w, tenrec_peer to, int64_t id,
                  const struct tenrec_route *route, bool cbor, const tenrec_error *why);

/* Makes the EXCEPTION that a chain sends in answer to `msg`, or in its place: all of `why` if its
 * payload is Tenrec's, else the text. NULL: out of memory. */
struct tenrec_msg *answer_exception_new(const struct tenrec_msg *msg, const tenrec_error *why);

/* Answers with a value in a message of this type. */
void answer_value(struct tenrec_worker *w, tenrec_peer to, int64_t id,
                  const struct tenrec_route *route, int32_t type, const struct tenrec_value *value);

#endif
