/* SPDX-License-Identifier: Apache-2.0 */
/* tenrec/torch.h - a member of a group of PyTorch processes that use torch.distributed.rpc with
 * torch's own backend, TENSORPIPE, and have no part of Tenrec in them. The functions are in
 * libtenrec-torch.
 *
 * Such a group is dynamic: its processes call init_rpc without world_size. The member is configured
 * like a worker, with `worker.group_protocol: torch`. It is not a struct tenrec_worker: torch's
 * workers know neither heartbeats nor views of Tenrec.
 *
 * Everything that torch sends is read as plain data: None, booleans, integers of 64 bits, floats,
 * texts, bytes, lists (also tuples and sets, as arrays), dicts with texts for keys, tensors, and
 * remote references. No byte of a peer names code that runs here, but functions that were
 * registered.
 *
 * threads  calls, tenrec_torch_member_get_infos and _wait come from any thread, several at once,
 *          also from registered functions; the others one at a time, and from none of these
 */
#ifndef TENREC_TORCH_H
#define TENREC_TORCH_H

#include <tenrec/error.h>
#include <tenrec/rref.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

struct tenrec_config;        /* tenrec/config.h */
struct tenrec_torch_member;  /* opaque */
struct tenrec_torch_request; /* opaque: a call that is served */

/* ---- life ------------------------------------------------------------------ */

/* Makes a member; joins nothing yet.
 *
 * config   borrowed during the call; NULL: the default one. Its `worker.group_protocol` is torch
 * ret      owns: tenrec_torch_member_drop
 * errors   ECONFIG (also: another protocol; a security mode other than none), EPLUGIN, EABI, ENOMEM
 */
tenrec_status tenrec_torch_member_new(const struct tenrec_config *config,
                                      struct tenrec_torch_member **ret, tenrec_error *err);

/* Joins the group within `worker.init_timeout`: on return each of torch's workers knows this
 * member. The id is `worker.rank` or RANK, else the lowest that is free. The worker with id 0
 * serves the store if `init_method` is tcp:// and none does. Workers at whose addresses no process
 * listens are left out, with a warning. Until another joins, a static group that torch's workers
 * set up ends the membership: calls and waits fail with EGROUP.
 *
 * errors   EINVAL (a name with '-', which torch misreads), EGROUP (name or id is in use, the group
 *          is static or set up as one, a worker refuses), ETIMEDOUT (names the holder of the
 * group's lock), EBUSY (joined already), and those of the store and of the backend source
 * torch.distributed.rpc.init_rpc without world_size
 */
tenrec_status tenrec_torch_member_join(struct tenrec_torch_member *m, tenrec_error *err);

/* Leaves the group: releases the references of this member, waits for its calls, and until no other
 * worker refers to its values, tells torch's workers, and stops. A member that serves the store
 * waits until all others have left. A second call does nothing.
 *
 * ms       limit of the whole in milliseconds, > 0; TENREC_TIMEOUT_NONE. After half of it, values
 *          that others refer to are freed with a warning in the log
 * errors   ETIMEDOUT and those of the store; the member is stopped in any case
 */
tenrec_status tenrec_torch_member_leave(struct tenrec_torch_member *m, int64_t ms,
                                        tenrec_error *err);

/* Frees it. A member that has not left stops without a word to the others. NULL is allowed. */
void tenrec_torch_member_drop(struct tenrec_torch_member *m);

/* ---- members --------------------------------------------------------------- */

/* All members by id, this one included: `ret` receives at most `room`, *ret_n their number. The
 * names live until the member is dropped.
 *
 * errors   ESHUTDOWN (not joined)
 * source   torch.distributed.rpc.api._get_current_rpc_agent().get_worker_infos
 */
tenrec_status tenrec_torch_member_get_infos(struct tenrec_torch_member *m,
                                            struct tenrec_worker_info *ret, size_t room,
                                            size_t *ret_n, tenrec_error *err);

/* Waits until a worker of that name is a member (`present`) or no longer is.
 *
 * ms       as in tenrec_torch_member_leave
 * errors   ETIMEDOUT, ESHUTDOWN
 */
tenrec_status tenrec_torch_member_wait(struct tenrec_torch_member *m, const char *name,
                                       bool present, int64_t ms, tenrec_error *err);

/* ---- calls ------------------------------------------------------------------ */

/* Calls a function of a torch worker and waits for its result.
 *
 * function "aten::add.Tensor(Tensor self, ...) -> Tensor": an operator by its schema, word for word
 *          as that torch prints it, with all arguments, defaults included, in their order;
 *          "__torch__.name": a TorchScript function by its qualified name;
 *          "module.name": any function of Python that the worker can import
 * args     n values; tensors are shared
 * ms       TENREC_TIMEOUT_DEFAULT: `worker.rpc_timeout`; TENREC_TIMEOUT_NONE; or > 0
 * ret      owns: tenrec_value_drop it; NULL discards the result
 * errors   EREMOTE (the function raised: the text is the exception's), ETIMEDOUT, EPEER_UNKNOWN,
 *          EPEER_LOST, ECONNECT, EUNSUPPORTED (a value that torch, or this member, does not know),
 *          EINVAL, EWOULDBLOCK, ESHUTDOWN, ENOMEM
 * source   torch.distributed.rpc.rpc_sync
 */
tenrec_status tenrec_torch_call(struct tenrec_torch_member *m, const char *to, const char *function,
                                const struct tenrec_value *args, size_t n, int64_t ms,
                                struct tenrec_value **ret, tenrec_error *err);

/* The same without waiting. Invalid arguments fail here; later failures fail the future.
 *
 * ret      shares: drop it
 * source   torch.distributed.rpc.rpc_async
 */
tenrec_status tenrec_torch_call_async(struct tenrec_torch_member *m, const char *to,
                                      const char *function, const struct tenrec_value *args,
                                      size_t n, int64_t ms, struct tenrec_future **ret,
                                      tenrec_error *err);

/* ---- remote references ------------------------------------------------------- */

/* A reference (tenrec/rref.h) that the functions below return, or that an argument or a result
 * holds, is shared with torch's workers. Of tenrec/rref.h it takes tenrec_rref_share, _drop,
 * _is_owner, _owner, _owner_name, _confirmed_by_owner and _text; tenrec_value_rref passes it on. */

/* Calls `function` on `to`, another worker, which keeps the result as its owner. Returns at once;
 * later failures are reported by every use of the reference.
 *
 * function as for tenrec_torch_call. A reference to the result of a TorchScript function can be
 *          passed on if its type follows: "__torch__.name -> Tensor"
 * ms       of the creation
 * ret      shares: tenrec_rref_drop it, which notifies the owner
 * errors   EPEER_UNKNOWN, EUNSUPPORTED, EINVAL, ESHUTDOWN, ENOMEM
 * source   torch.distributed.rpc.remote
 */
tenrec_status tenrec_torch_remote(struct tenrec_torch_member *m, const char *to,
                                  const char *function, const struct tenrec_value *args, size_t n,
                                  int64_t ms, struct tenrec_rref **ret, tenrec_error *err);

/* Makes a reference to a value of this member, to be passed to torch's workers. An object
 * (tenrec_object_new) stays here: torch's workers can pass the reference, not fetch the value.
 *
 * value    copied (tensors and objects are shared)
 * ret      shares: drop it
 * errors   EINVAL, ESHUTDOWN, ENOMEM
 * source   torch.distributed.rpc.RRef
 */
tenrec_status tenrec_torch_rref_new(struct tenrec_torch_member *m, const struct tenrec_value *value,
                                    struct tenrec_rref **ret, tenrec_error *err);

/* A copy of the value, fetched from its owner; here, if that is this member.
 *
 * ms       as in tenrec_torch_call
 * ret      owns: tenrec_value_drop it; NULL discards the value
 * errors   EREMOTE (the function that should have made the value raised), ETIMEDOUT, ENOTFOUND
 *          (released, or freed by its owner), EPEER_LOST, ECONNECT, EUNSUPPORTED, EINVAL (a
 *          reference of another group), EWOULDBLOCK, ESHUTDOWN, ENOMEM
 * source   torch.distributed.rpc.RRef.to_here
 */
tenrec_status tenrec_torch_rref_to_here(struct tenrec_torch_member *m, struct tenrec_rref *r,
                                        int64_t ms, struct tenrec_value **ret, tenrec_error *err);

/* The same without waiting.
 *
 * ret      shares: drop it
 */
tenrec_status tenrec_torch_rref_to_here_async(struct tenrec_torch_member *m, struct tenrec_rref *r,
                                              int64_t ms, struct tenrec_future **ret,
                                              tenrec_error *err);

/* ---- functions for torch's workers ------------------------------------------- */

/* Answers one call, on a thread of its own (`worker.num_worker_threads`); may block. Returns OK
 * after tenrec_torch_request_return (without it the answer is None), or an error, whose text the
 * caller sees as a RuntimeError. Of rpc.remote the result, or the error, is kept for the
 * workers that fetch it. */
typedef tenrec_status tenrec_torch_function_fn(struct tenrec_torch_request *r, void *arg,
                                               tenrec_error *err);

/* Registers `fn`; before the member joins or later.
 *
 * name     copied: "module.name" for calls of that Python function, which need not exist here;
 *          "__torch__.name" of a TorchScript function; or the schema of an operator, whole or up to
 *          the parenthesis ("aten::add.Tensor"). "module.Class" and "module.Class.method" are a
 *          class: the first argument of the method that rref.rpc_sync().method() calls is the
 *          reference to what the class made
 * errors   EINVAL, EEXIST, ENOMEM
 */
tenrec_status tenrec_torch_member_register_function(struct tenrec_torch_member *m, const char *name,
                                                    tenrec_torch_function_fn *fn, void *arg,
                                                    tenrec_error *err);

/* The positional arguments; borrowed until the function returns. A call with keyword arguments is
 * refused. tenrec_value_unpack reads them by type. The function starts when the owners of all
 * references in them know this member, and values of this member are made;
 * tenrec_torch_rref_to_here gives their values. */
const struct tenrec_value *tenrec_torch_request_args(const struct tenrec_torch_request *r,
                                                     size_t *ret_n);

/* Sets the answer; `value` is encoded at once and need not outlive this call.
 *
 * errors   EUNSUPPORTED (an object, except of rpc.remote; to TorchScript also bytes), EINVAL,
 * ENOMEM
 */
tenrec_status tenrec_torch_request_return(struct tenrec_torch_request *r,
                                          const struct tenrec_value *value, tenrec_error *err);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
