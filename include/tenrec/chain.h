/* SPDX-License-Identifier: Apache-2.0 */
/* tenrec/chain.h - messages without RPC.
 *
 * The use of a backend as by tenrec_init_rpc, for programs with calls of their own:
 * the bindings of another runtime, other protocols, tests of a
 * plugin. Such a program opens the chain of a configuration: the backend that it names, and all
 * that this wraps. It passes in the members and their addresses, and sends and receives messages
 * {type, id, payload, tensors}. Membership and the meaning of payloads are up to the program.
 *
 * threads  tenrec_chain_send, _call, _end_calls, _poll, _lead, _wake_at, _resume, _disconnect,
 *          _copy_for and _list_debug_info come from any thread, also several at once, and after
 *          _stop (then they fail); the others one at a time.
 */
#ifndef TENREC_CHAIN_H
#define TENREC_CHAIN_H

#include <stdbool.h>
#include <tenrec/agent.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

struct tenrec_config;        /* tenrec/config.h */
struct tenrec_store;         /* tenrec/store.h */
struct tenrec_tensor;        /* tenrec/tensor.h */
struct tenrec_chain_options; /* opaque: loaded and filled, nothing started */
struct tenrec_chain;         /* opaque: a backend and all that it wraps */

/* ---- options --------------------------------------------------------------- */

/* Loads the backend that `backend:` names, and all that it wraps, and fills and
 * checks their options.
 *
 * config   borrowed during the call
 * ret      owns: tenrec_chain_options_drop
 * errors   ECONFIG, EPLUGIN, EABI, EEXIST, ENOMEM; all with the place
 * threads  any
 * source   torch.distributed.rpc.backend_registry.construct_rpc_backend_options
 */
tenrec_status tenrec_chain_options_new(const struct tenrec_config *config,
                                       struct tenrec_chain_options **ret, tenrec_error *err);

/* After all agents made of them. NULL is allowed. */
void tenrec_chain_options_drop(struct tenrec_chain_options *options);

/* The settings of `worker:` for every runtime; see config/default.yaml. */
struct tenrec_chain_settings {
    uint32_t size;               /* sizeof(struct tenrec_chain_settings) */
    uint32_t num_worker_threads; /* for functions that may block */
    uint64_t rpc_timeout_ms;     /* UINT64_MAX: none */
    uint64_t init_timeout_ms;    /* of joining the group; UINT64_MAX: none */
    uint64_t max_queued_calls;   /* requests accepted and not begun; then `accepts` returns false */
    const char *init_method;     /* borrowed from the options */

    uint32_t security_mode;  /* enum tenrec_security_mode (tenrec/proof.h) in force */
    uint32_t backend_proves; /* 1: in modes other than none the innermost backend begins each
                                connection with a proof, but for those that `plain_peers` lets in */
};

/* Fills *ret up to ret->size, which the caller sets. */
void tenrec_chain_options_settings(const struct tenrec_chain_options *options,
                                   struct tenrec_chain_settings *ret);

/* Opens a store as tenrec_store_open does, with the `security:` and `stores:` of these options
 * in the place of those that TENREC_CONFIG names.
 *
 * options  borrowed during the call
 * ret      owns: tenrec_store_close it
 * errors   as tenrec_store_open, but for those of a configuration
 * threads  any
 */
tenrec_status tenrec_store_open_with(const struct tenrec_chain_options *options, const char *url,
                                     int64_t ms, struct tenrec_store **ret, tenrec_error *err);

/* ---- an agent -------------------------------------------------------------- */

/* The receiver of messages. Called from any thread, several at once; a callback on the thread of
 * an agent delays its reading, so it must not block. */
struct tenrec_chain_user {
    uint32_t size; /* sizeof(struct tenrec_chain_user) */
    uint32_t reserved;
    /* Takes msg. Its tensors are in memory that the message owns, unless `place` put them
     * elsewhere. */
    void (*deliver)(void *arg, tenrec_peer from, struct tenrec_msg *msg);
    /* The connection for our requests to `peer` broke: no answers will arrive. The next send
     * reconnects. May be NULL. */
    void (*peer_lost)(void *arg, tenrec_peer peer, const tenrec_error *why);
    void *arg;

    /* All of these may be NULL, and may lie beyond `size`. */

    /* Allocates memory for the tensors of msg, whose type, id, payload and descriptors are set.
     * Sets `data` of each descriptor, to memory that lives until the message is released; the
     * default is tenrec_msg_place. If it fails, the message is not delivered, and a request
     * is answered with an EXCEPTION. */
    tenrec_status (*place)(void *arg, tenrec_peer from, struct tenrec_msg *msg, tenrec_error *err);
    /* Returns false to stop the reading of requests until tenrec_chain_resume. */
    bool (*accepts)(void *arg);
    /* The connection for requests of `peer` broke. */
    void (*caller_lost)(void *arg, tenrec_peer peer, const tenrec_error *why);
    /* The time of tenrec_chain_wake_at or of a call is reached, or is near: check the clock. On a
     * thread of its own, one call at a time. */
    void (*wake)(void *arg);
    /* Memory for a payload of TENREC_LARGE_PAYLOAD bytes or more that arrives, so that a program
     * which keeps the payload in memory of its own kind need not copy it. Returns the owner of the
     * memory, whose address it stores in *ret_data; NULL: use memory of the message. The length is
     * what the sender announced: leave the memory untouched. payload_drop frees it with the
     * message, unless tenrec_msg_take_payload has taken it. Both are set, or none. */
    void *(*payload_new)(void *arg, uint64_t bytes, void **ret_data);
    void (*payload_drop)(void *owner);
};

#define TENREC_LARGE_PAYLOAD ((uint64_t)64 << 10)

/* Makes the agents. They have an address then, and serve after tenrec_chain_start.
 *
 * options  borrows until tenrec_chain_drop
 * user     copied
 * me       id, incarnation and name of this worker, its token (read if me->size reaches it), and
 *          its address for members on other hosts ("10.1.0.7"), NULL or "" if there are none; the
 *          texts are borrowed until tenrec_chain_drop
 * world    number of members; 0: unknown
 * ret      owns: tenrec_chain_drop
 * errors   ECONFIG, EPLUGIN, EINVAL, EOS, ENOMEM and those of the plugin
 * threads  any
 * source   torch.distributed.rpc.backend_registry.init_backend
 */
tenrec_status tenrec_chain_new(const struct tenrec_chain_options *options,
                               const struct tenrec_chain_user *user, const struct tenrec_member *me,
                               uint32_t world, struct tenrec_chain **ret, tenrec_error *err);

/* Its address for peers; "" if the backend has no addresses. Borrowed from the agent. */
const char *tenrec_chain_address(struct tenrec_chain *agent);

/* Prepares devices, from and to which messages carry tensors from then on: before
 * tenrec_chain_start, and again with the whole list when it grows. `place` then sets memory of
 * the device d->target, with a stream on which it may be written at once, by
 * tenrec_msg_set_tensor; tenrec_msg_place gives memory of the host only. Tensors are delivered when
 * their copies are queued on that stream: order others behind it by tenrec_stream_order.
 *
 * device   borrowed during the call
 * errors   EUNSUPPORTED (the backend or this host has no devices; with the reason), EINVAL (no such
 *          device) and those of the plugin
 * threads  one at a time
 */
tenrec_status tenrec_chain_set_devices(struct tenrec_chain *agent,
                                       const struct tenrec_device *device, uint32_t n,
                                       tenrec_error *err);

/* Begins to serve. Once.
 *
 * member   all, this one included; the array is borrowed during the call, its
 *          strings until tenrec_chain_drop
 * errors   EINVAL and those of the plugin
 */
tenrec_status tenrec_chain_start(struct tenrec_chain *agent, const struct tenrec_member *member,
                                 uint32_t n, tenrec_error *err);

/* A member joined, or left, a dynamic group. The strings of `member` are borrowed until
 * tenrec_chain_drop. */
void tenrec_chain_add_member(struct tenrec_chain *agent, const struct tenrec_member *member);
void tenrec_chain_remove_member(struct tenrec_chain *agent, tenrec_peer id);

/* Waits at most `ms` milliseconds until `done` was called for every send.
 *
 * errors   ETIMEDOUT and those of the plugin
 */
tenrec_status tenrec_chain_drain(struct tenrec_chain *agent, uint32_t ms, tenrec_error *err);

/* Stops it: `done` of pending sends is called (ECANCELED) before the return, and nothing is
 * delivered afterwards. Later sends fail (ESHUTDOWN). A second stop does nothing. Not from a
 * callback. */
void tenrec_chain_stop(struct tenrec_chain *agent);

/* Stops and frees it. Not from a callback, and no other thread may be in a call
 * with it. NULL is allowed. */
void tenrec_chain_drop(struct tenrec_chain *agent);

/* ---- messages -------------------------------------------------------------- */

/* A message to fill: zeroed, with `payload_len` bytes at ->payload (not zeroed)
 * and `n_tensors` descriptors. NULL: out of memory. Any thread.
 *
 * A program may also fill a struct tenrec_msg of its own, whose `release` is called after the
 * last use of payload and tensors. */
struct tenrec_msg *tenrec_msg_new(uint64_t payload_len, uint32_t n_tensors);

/* Fills descriptor `i` of a message of tenrec_msg_new from `tensor`, and
 * keeps that until the message is released.
 *
 * tensor   taken
 */
void tenrec_msg_set_tensor(struct tenrec_msg *msg, uint32_t i, struct tenrec_tensor *tensor);

/* Takes tensor `i` out of a delivered message, so that it outlives the message; NULL if there is
 * none, its memory is from `place`, or it was taken already.
 *
 * returns  shares: tenrec_tensor_drop
 */
struct tenrec_tensor *tenrec_msg_take_tensor(struct tenrec_msg *msg, uint32_t i);

/* Takes the payload out of a delivered message, which has none afterwards: returns the owner from
 * payload_new; NULL if its memory is that of the message, or was taken already. */
void *tenrec_msg_take_payload(struct tenrec_msg *msg);

/* Memory of this process for each tensor of a message that arrives, large ones
 * from the receive pool (`worker: receive_pool`): the default of `place` in struct
 * tenrec_chain_user, and a fallback for such a function. A copy of tenrec_chain_copy_for
 * stays in place; all of this memory is writable.
 * Tensors that tenrec_msg_set_tensor has set before are left as they are.
 *
 * errors   EINVAL (a view that reaches beyond its storage), ETOOBIG, ENOMEM
 */
tenrec_status tenrec_msg_place(struct tenrec_msg *msg, tenrec_error *err);

/* Makes a copy of a tensor in memory that its receiver maps instead of copying: faster than
 * sending the tensor, between two processes of one host, if it is neither small nor very large.
 * The receiver may write it: its writes go to private copies of the pages. The memory is reused
 * after the receiver has dropped the tensor; `worker: receive_pool` bounds the memory held by
 * receivers.
 *
 * route    of the request, if it is for an answer; else zero
 * desc     borrowed, as is its memory, which lies on the host
 * returns  a tensor, to be sent once (tenrec_tensor_drop); NULL: send the tensor itself
 * threads  any
 */
struct tenrec_tensor *tenrec_chain_copy_for(struct tenrec_chain *agent, tenrec_peer to,
                                            struct tenrec_route route,
                                            const struct tenrec_tensor_desc *desc);

/* Takes msg always, and calls `done` exactly once: with NULL when its bytes are handed to the
 * wire, else with the error. Does not block, unless the message has TENREC_MSG_MAY_WAIT. An
 * answer carries id and route of its request, and TENREC_MSG_CONTROL to be exempt from the queue
 * limit. */
void tenrec_chain_send(struct tenrec_chain *agent, tenrec_peer to, struct tenrec_msg *msg,
                       struct tenrec_done done);

/* The end of a call: its answer, which `fn` takes, or NULL and the reason.
 * Never grows: it is passed by value. */
struct tenrec_answer {
    void (*fn)(void *arg, struct tenrec_msg *answer, const tenrec_error *why);
    void *arg;
};

/* Sends a request, whose id it sets, and calls `answer` exactly once, from any thread: with the
 * answer of `to`; or with the reason why none arrives: the send failed, the answer has no memory,
 * msg->deadline_ns has passed, the connection broke, tenrec_chain_end_calls, or tenrec_chain_stop.
 * No call of `answer` is under way after tenrec_chain_drop. An answer whose call has ended is
 * delivered to the user, as any other message.
 *
 * msg      takes always. Ids of calls are above 0: a request that the program itself sends to the
 *          same member, by tenrec_chain_send, has another
 * errors   ENOMEM, EAGAIN (a million calls wait), and those of a send that fails before the return;
 *          `answer` is not called then
 */
tenrec_status tenrec_chain_call(struct tenrec_chain *agent, tenrec_peer to, struct tenrec_msg *msg,
                                struct tenrec_answer answer, tenrec_error *err);

/* Ends the calls to `to` (to any member if < 0) that wait for an answer, with this reason. */
void tenrec_chain_end_calls(struct tenrec_chain *agent, tenrec_peer to, const tenrec_error *why);

/* Lets a thread that waits for an answer of `peer` read, until *wait->done is set, the deadline, or
 * a byte at wait->wake_fd: saves the thread switch of a wakeup. Messages are delivered on this
 * thread.
 *
 * errors   EUNSUPPORTED at once: no connection to read from; wait in another way
 */
tenrec_status tenrec_chain_poll(struct tenrec_chain *agent, tenrec_peer peer,
                                const struct tenrec_wait *wait);

/* Lets a thread that runs functions read, until *wait->done is set, the deadline, or a byte at
 * wait->wake_fd (-1: none): saves a wakeup per message. Messages are delivered on this thread,
 * which only stores them and sets *wait->done; after the return it runs them, and then
 * leads again. Meanwhile the thread of the agent reads, so that the functions may take any time.
 * Returns OK also when tenrec_chain_stop ends it.
 *
 * errors   EUNSUPPORTED at once: the backend cannot be led, another thread leads, or the
 *          agent does not run
 */
tenrec_status tenrec_chain_lead(struct tenrec_chain *agent, const struct tenrec_wait *wait);

/* user->accepts returns true again. */
void tenrec_chain_resume(struct tenrec_chain *agent);

/* Calls user->wake at `deadline_ns` (CLOCK_MONOTONIC) or a little later; an earlier time already
 * set is kept, so the call may come early. Cheap if the time need not move: for the earliest of
 * many deadlines. */
void tenrec_chain_wake_at(struct tenrec_chain *agent, uint64_t deadline_ns);

/* Drops the connection to `peer`; the next send reconnects.
 *
 * errors   EUNSUPPORTED, ESHUTDOWN and those of the plugin
 */
tenrec_status tenrec_chain_disconnect(struct tenrec_chain *agent, tenrec_peer peer,
                                      tenrec_error *err);

/* Pushes counters and states, "<name in the config>." before each key. */
void tenrec_chain_list_debug_info(struct tenrec_chain *agent, tenrec_sink_fn *sink, void *arg);

/* The name of the outermost backend in the configuration; borrowed from `agent`. */
const char *tenrec_chain_name(const struct tenrec_chain *agent);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
