/* SPDX-License-Identifier: Apache-2.0 */
/* member.h - the state of a member of torch's group that its parts share: member.c and
 * member_join.c have its life, torch_peers.c the other members, torch_calls.c its calls,
 * torch_requests.c the calls that it serves, references.c its remote references. */
#ifndef TENREC_MEMBER_MEMBER_H
#define TENREC_MEMBER_MEMBER_H

#include "group/meeting/meeting.h"
#include "rpc/value/value.h"
#include "torch/member/pickler.h"

#include <pthread.h>
#include <stdatomic.h>
#include <tenrec/chain.h>
#include <tenrec/torch.h>

struct config_settings;
struct outgoing;
struct pool;
struct rref_context;
struct torch_function;
struct torch_peer;

enum torch_state { TORCH_NEW, TORCH_JOINING, TORCH_JOINED, TORCH_LEAVING, TORCH_LEFT };

struct tenrec_torch_member {
    struct tenrec_chain_options *options;   /* owns */
    const struct config_settings *settings; /* borrowed from options */
    struct rendezvous *rendezvous;          /* owns; the store; NULL before joining */
    struct tenrec_store *keys;              /* owns; the part with torch's keys */
    struct tenrec_chain *chain;             /* owns; NULL before joining */
    struct pool *pool;                      /* owns; likewise */
    struct rref_context *refs;              /* owns; likewise; remote references */
    char name[TENREC_NAME_MAX + 1];
    tenrec_peer id;
    pthread_t watcher; /* static_group.c */
    bool watched;

    pthread_mutex_t lock;   /* guards all below; not held during a call into another room */
    pthread_cond_t changed; /* monotonic */
    enum torch_state state;
    tenrec_error why;        /* the code is OK unless the group has refused this member */
    bool changing;           /* a thread changes the members */
    struct torch_peer *peer; /* owns; also those that have left, whose texts the chain borrows */
    size_t calls;            /* that have not ended */
    struct torch_function *function; /* owns; none is ever removed */
    size_t waiting;                  /* requests that wait for the references in their arguments, */
    uint64_t waiting_bytes;          /* and what they hold meanwhile */
};

/* ---- member.c ---- */

void member_set_state(struct tenrec_torch_member *m, enum torch_state state);
/* Makes the pool and the chain, with the name and the id / begins to serve, as the only member. */
tenrec_status member_make_chain(struct tenrec_torch_member *m, tenrec_error *err);
tenrec_status member_start_chain(struct tenrec_torch_member *m, tenrec_error *err);
/* Stops the chain and the functions, and closes the store. What is under way fails. */
void member_stop(struct tenrec_torch_member *m);

/* ---- torch_peers.c ---- */

/* Adds a member, and removes a former one of that name or id. errors: ENOMEM */
tenrec_status torch_peers_join(struct tenrec_torch_member *m, const char *name, tenrec_peer id,
                               const char *address, tenrec_error *err);
void torch_peers_leave(struct tenrec_torch_member *m, const char *name);
/* errors: EPEER_UNKNOWN */
tenrec_status torch_peers_id(struct tenrec_torch_member *m, const char *name, tenrec_peer *ret,
                             tenrec_error *err);
/* Returns true if there is no other member. Lock held. */
bool torch_peers_alone(const struct tenrec_torch_member *m);
/* errors: ESHUTDOWN, EGROUP (why the group has refused this member). Lock held. */
tenrec_status torch_peers_check_joined(const struct tenrec_torch_member *m, tenrec_error *err);
/* The name of a member, also after it has left; "" if there was none. Lives as long as `m`. */
const char *torch_peer_name(struct tenrec_torch_member *m, tenrec_peer id);
/* The members but this one, with their names; free() it. errors: ENOMEM */
tenrec_status torch_peers_others(struct tenrec_torch_member *m, struct tenrec_worker_info **ret,
                                 size_t *ret_n, tenrec_error *err);
void torch_peers_finish(struct tenrec_torch_member *m);

/* ---- torch_calls.c ---- */

/* Sends a request (takes msg always, and refs, the references in it, unless that is NULL).
 * `function` is for error texts. */
tenrec_status torch_calls_send(struct tenrec_torch_member *m, tenrec_peer to, const char *function,
                               struct tenrec_msg *msg, struct outgoing *refs, int64_t ms,
                               struct tenrec_future **ret, tenrec_error *err);
/* Waits until no call is under way. Returns false at the deadline. */
bool torch_calls_wait(struct tenrec_torch_member *m, uint64_t deadline_ns);

/* Calls torch's function that tells a worker that this member joins or leaves. */
tenrec_status torch_calls_tell(struct tenrec_torch_member *m, tenrec_peer to, bool join,
                               uint64_t deadline_ns, struct tenrec_future **ret, tenrec_error *err);

/* ---- torch_requests.c ---- */

/* Serves a request. Takes msg. */
void torch_requests_serve(struct tenrec_torch_member *m, tenrec_peer from, struct tenrec_msg *msg);
/* Answer a request; `msg` is taken. */
void torch_requests_answer(struct tenrec_torch_member *m, tenrec_peer from,
                           const struct tenrec_msg *request, struct tenrec_msg *msg);
void torch_requests_fail(struct tenrec_torch_member *m, tenrec_peer from,
                         const struct tenrec_msg *request, const tenrec_error *why);
/* Begins no function any more. */
void torch_requests_stop(struct tenrec_torch_member *m);
void torch_functions_finish(struct tenrec_torch_member *m);

/* ---- static_group.c: a static group in the store ----
 *
 * This member is one of the ranks for which torch's workers wait, and can be none: both sides are
 * refused. torch says that a group is static after all ranks have met, so the sign is `init/`,
 * where torch's constructor of a store counts the processes of a static group. */

/* Before joining. errors: EGROUP, and the store's */
tenrec_status static_group_check(struct tenrec_torch_member *m, uint64_t deadline_ns,
                                 tenrec_error *err);

/* Called before the member has joined. Checks again, in a thread of its own, until another worker
 * has joined, too: with m->why set, this process is no member any more. Without memory for the
 * thread nothing checks. */
void static_group_watch(struct tenrec_torch_member *m);
/* The member has left, or is leaving: ends the thread. */
void static_group_unwatch(struct tenrec_torch_member *m);

/* ---- torch_call.c: the writing of calls, of those that return and those that make a remote value
 */

/* Between the name of a TorchScript function and the type of its result. */
#define TORCH_CALL_TYPE " -> "

/* Checks a call, and sets *ms if it is TENREC_TIMEOUT_DEFAULT. errors: EINVAL, ESHUTDOWN */
tenrec_status torch_call_check(struct tenrec_torch_member *m, const char *to, const char *function,
                               const struct tenrec_value *args, size_t n, int64_t *ms,
                               tenrec_error *err);

/* Writes the request.
 *
 * ids      those of the value and of the fork that a creation makes; NULL: a call
 * refs     receives the references in it; undone on errors
 * errors   EINVAL, EUNSUPPORTED, ENOMEM, and those of the references
 */
tenrec_status torch_call_write(const char *function, const struct tenrec_value *args, size_t n,
                               const struct rref_id *ids, struct outgoing *refs,
                               struct tenrec_msg **ret, tenrec_error *err);

/* Waits for the value (owns; `ret` may be NULL) and drops `f`. */
tenrec_status torch_call_wait(struct tenrec_future *f, struct tenrec_value **ret,
                              tenrec_error *err);

/* ---- torch_fetch.c: values of this member that torch's workers fetch by their references ---- */

/* Answers once the value is made. Takes msg if it returns OK.
 *
 * errors   ENOTFOUND (the value was freed), EAGAIN (too many wait), ENOMEM */
tenrec_status torch_fetch_serve(struct tenrec_torch_member *m, tenrec_peer from,
                                struct tenrec_msg *msg, struct rref_id id, tenrec_error *err);

#endif
