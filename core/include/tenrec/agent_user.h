/* SPDX-License-Identifier: Apache-2.0 */
/* tenrec/agent_user.h - messages without RPC.
 *
 * What tenrec_init_rpc does with its backend, for programs that bring calls of
 * their own: the bindings of another runtime, other protocols, tests of a
 * plugin. Such a program opens the backend that a configuration names, and all
 * that it wraps, tells it who is there and where, and sends and takes messages
 * {type, id, payload, tensors}. Who is in the group, which answer belongs to
 * which request, what a payload means and how long to wait is up to the program.
 *
 * threads  tenrec_backend_send, _poll, _lead, _wake_at, _resume, _disconnect and
 *          _debug_info come from any thread, also several at once, and after
 *          _stop (then they fail); the others one at a time.
 */
#ifndef TENREC_AGENT_USER_H
#define TENREC_AGENT_USER_H

#include <stdbool.h>
#include <tenrec/agent.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

struct tenrec_config;              /* tenrec/config.h */
struct tenrec_tensor;              /* tenrec/tensor.h */
struct tenrec_rpc_backend_options; /* opaque: loaded and filled, nothing started */
struct tenrec_backend_agent;       /* opaque: a backend and what it wraps */

/* ---- options --------------------------------------------------------------- */

/* Loads the backend that `backend:` names, and what it wraps, and fills and
 * checks their options.
 *
 * config   borrowed during the call
 * ret      owns: tenrec_rpc_backend_options_drop
 * errors   ECONFIG, EPLUGIN, EABI, EEXIST, ENOMEM; all with the place
 * threads  any
 * source   torch.distributed.rpc.backend_registry.construct_rpc_backend_options
 */
tenrec_status tenrec_construct_rpc_backend_options(const struct tenrec_config *config,
                                                   struct tenrec_rpc_backend_options **ret,
                                                   tenrec_error *err);

/* After all agents made of them. NULL is fine. */
void tenrec_rpc_backend_options_drop(struct tenrec_rpc_backend_options *options);

/* What `worker:` says to every runtime; see config/default.yaml. */
struct tenrec_backend_settings {
    uint32_t size;               /* sizeof(struct tenrec_backend_settings) */
    uint32_t num_worker_threads; /* for what may block */
    uint64_t rpc_timeout_ms;     /* UINT64_MAX: none */
    uint64_t init_timeout_ms;    /* of joining the group; UINT64_MAX: none */
    uint64_t max_queued_calls;   /* requests taken and not begun; then accepts says no */
    const char *init_method;     /* borrowed from the options */
};

/* Fills as much of *ret as ret->size, which the caller sets, has room for. */
void tenrec_rpc_backend_options_settings(const struct tenrec_rpc_backend_options *options,
                                         struct tenrec_backend_settings *ret);

/* ---- an agent -------------------------------------------------------------- */

/* Who takes what comes in. Called from any thread, several at once; what runs
 * on an agent's thread keeps it from reading, so that nothing here may block. */
struct tenrec_backend_user {
    uint32_t size; /* sizeof(struct tenrec_backend_user) */
    uint32_t reserved;
    /* Takes msg. Its tensors lie in memory that goes with it, unless they were
     * placed elsewhere. */
    void (*deliver)(void *arg, tenrec_peer from, struct tenrec_msg *msg);
    /* The connection to `peer`, on which our requests go, broke: no answer
     * comes any more. The next send connects anew. May be NULL. */
    void (*peer_lost)(void *arg, tenrec_peer peer, const tenrec_error *why);
    void *arg;

    /* All of these may be NULL, and may lie beyond `size`. */

    /* Type, id, payload and descriptors of msg are there: where shall the bytes
     * of its tensors go? Sets `data` of each descriptor, to memory that lives
     * until the message is released; tenrec_backend_place is what happens
     * without this function. When it fails, the message is not delivered, and a
     * request is answered with an EXCEPTION. */
    tenrec_status (*place)(void *arg, tenrec_peer from, struct tenrec_msg *msg, tenrec_error *err);
    /* False: read no more requests until tenrec_backend_resume. */
    bool (*accepts)(void *arg);
    /* The connection on which requests of `peer` came broke. */
    void (*caller_lost)(void *arg, tenrec_peer peer, const tenrec_error *why);
    /* The time of tenrec_backend_wake_at has come, or is near: look at the clock.
     * On a thread of its own, one call at a time. */
    void (*wake)(void *arg);
};

/* Makes the agents. They have an address then, and wait for
 * tenrec_backend_start.
 *
 * options  borrows until tenrec_backend_drop
 * user     copied
 * me       id, incarnation and name of this end, and as its address where members on
 *          other hosts reach this one ("10.1.0.7"), NULL or "" when there are none;
 *          the texts are borrowed until tenrec_backend_drop
 * world    how many members there will be; 0 when that is not known
 * ret      owns: tenrec_backend_drop
 * errors   EINVAL, EOS, ENOMEM and what the plugin says
 * threads  any
 * source   torch.distributed.rpc.backend_registry.init_backend
 */
tenrec_status tenrec_init_backend(const struct tenrec_rpc_backend_options *options,
                                  const struct tenrec_backend_user *user,
                                  const struct tenrec_member *me, uint32_t world,
                                  struct tenrec_backend_agent **ret, tenrec_error *err);

/* Where others reach it; "" when the backend has no addresses. Lives as long. */
const char *tenrec_backend_address(struct tenrec_backend_agent *agent);

/* Begins to serve. Once.
 *
 * member   all, this one included; the array is borrowed during the call, its
 *          strings until tenrec_backend_drop
 * errors   EINVAL and what the plugin says
 */
tenrec_status tenrec_backend_start(struct tenrec_backend_agent *agent,
                                   const struct tenrec_member *member, uint32_t n,
                                   tenrec_error *err);

/* Somebody came, or went, in a group that changes. The strings of `member` are
 * borrowed until tenrec_backend_drop. */
void tenrec_backend_member_joined(struct tenrec_backend_agent *agent,
                                  const struct tenrec_member *member);
void tenrec_backend_member_left(struct tenrec_backend_agent *agent, tenrec_peer id);

/* Waits at most `ms` milliseconds until every send was told done.
 *
 * errors   ETIMEDOUT and what the plugin says
 */
tenrec_status tenrec_backend_drain(struct tenrec_backend_agent *agent, uint32_t ms,
                                   tenrec_error *err);

/* Stops it: what is pending is told done (ECANCELED) before it returns, and
 * nothing is delivered afterwards. Sends fail from now on (ESHUTDOWN). Again
 * does nothing. Not from a callback. */
void tenrec_backend_stop(struct tenrec_backend_agent *agent);

/* Stops and frees it. Not from a callback, and no other thread may be in a call
 * with it. NULL is fine. */
void tenrec_backend_drop(struct tenrec_backend_agent *agent);

/* ---- messages -------------------------------------------------------------- */

/* A message to fill: zeroed, with `payload_len` bytes at ->payload (not zeroed)
 * and `n_tensors` descriptors. NULL: out of memory. Any thread.
 *
 * A program may as well fill a struct tenrec_msg of its own, whose `release`
 * tells it that nobody uses payload and tensors any more. */
struct tenrec_msg *tenrec_backend_message(uint64_t payload_len, uint32_t n_tensors);

/* Fills descriptor `i` of a message of tenrec_backend_message from `tensor`, and
 * keeps that until the message is released.
 *
 * tensor   taken
 */
void tenrec_backend_set_tensor(struct tenrec_msg *msg, uint32_t i, struct tenrec_tensor *tensor);

/* The tensor `i` of a delivered message, which outlives it then; NULL when there
 * is none, or its memory is somebody else's (place) or was taken already.
 *
 * returns  shares: tenrec_tensor_drop
 */
struct tenrec_tensor *tenrec_backend_take_tensor(struct tenrec_msg *msg, uint32_t i);

/* Memory of this process for each tensor of a message that arrives, large ones
 * from the receive pool (`worker: receive_pool`): what happens without
 * struct tenrec_backend_user's `place`, and what such a function may fall back on.
 * A copy of tenrec_backend_copy_for stays where it is; all of this memory may be written.
 *
 * errors   EINVAL (a view that reaches beyond its storage), ETOOBIG, ENOMEM
 */
tenrec_status tenrec_backend_place(struct tenrec_msg *msg, tenrec_error *err);

/* A copy of a tensor in memory that its receiver maps instead of copying it: quicker than the
 * tensor itself, between two processes of one host, when it is neither small nor very large.
 * The receiver may write it as it likes: it gets copies of the pages that it writes. The memory is
 * used again when it has dropped the tensor; `worker: receive_pool` bounds what receivers have of
 * it at one time.
 *
 * route    of the request, when it is for an answer; else zero
 * desc     borrowed, as is its memory, which lies on the host
 * returns  a tensor, to be sent once (tenrec_tensor_drop); NULL: send the tensor itself
 * threads  any
 */
struct tenrec_tensor *tenrec_backend_copy_for(struct tenrec_backend_agent *agent, tenrec_peer to,
                                              struct tenrec_route route,
                                              const struct tenrec_tensor_desc *desc);

/* Takes msg always, and tells `done` exactly once: with NULL when its bytes are
 * handed to the wire, with the error otherwise. Does not block, unless the
 * message says TENREC_MSG_MAY_WAIT. An answer carries id and route of its
 * request, and TENREC_MSG_CONTROL when a full queue shall not refuse it. */
void tenrec_backend_send(struct tenrec_backend_agent *agent, tenrec_peer to, struct tenrec_msg *msg,
                         struct tenrec_done done);

/* A thread that waits for an answer of `peer` reads by itself, until
 * wait->done(), the deadline, or a byte at wait->wake_fd: one thread switch less
 * than to be woken. What comes is delivered on this thread.
 *
 * errors   EUNSUPPORTED at once: there is nothing to read, wait in another way
 */
tenrec_status tenrec_backend_poll(struct tenrec_backend_agent *agent, tenrec_peer peer,
                                  const struct tenrec_wait *wait);

/* A thread that runs what comes reads it, too, until wait->done(), the deadline, or a
 * byte at wait->wake_fd (-1: none): that saves waking it for each message. What comes is
 * delivered on this thread, which has only to remember it and to have done() say true;
 * once this has returned it runs it, and then leads again. Until then the agent's own
 * thread reads, so that it may take any time. Also OK when tenrec_backend_stop came.
 *
 * errors   EUNSUPPORTED at once: the backend cannot be led, another thread leads, or the
 *          agent does not run
 */
tenrec_status tenrec_backend_lead(struct tenrec_backend_agent *agent,
                                  const struct tenrec_wait *wait);

/* user->accepts says yes again. */
void tenrec_backend_resume(struct tenrec_backend_agent *agent);

/* Calls user->wake at `deadline_ns` (CLOCK_MONOTONIC) or a little later; an
 * earlier time that is set already stays, so that it may come early. Cheap when
 * it need not be moved: for the earliest of many deadlines. */
void tenrec_backend_wake_at(struct tenrec_backend_agent *agent, uint64_t deadline_ns);

/* Drops the connection to `peer`; the next send connects anew.
 *
 * errors   EUNSUPPORTED, ESHUTDOWN and what the plugin says
 */
tenrec_status tenrec_backend_disconnect(struct tenrec_backend_agent *agent, tenrec_peer peer,
                                        tenrec_error *err);

/* Pushes counters and states, "<name in the config>." before each key. */
void tenrec_backend_debug_info(struct tenrec_backend_agent *agent, tenrec_sink_fn *sink, void *arg);

/* How the configuration calls the outermost backend; lives as long as `agent`. */
const char *tenrec_backend_name(const struct tenrec_backend_agent *agent);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
