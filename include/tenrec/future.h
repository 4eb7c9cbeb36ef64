/* SPDX-License-Identifier: Apache-2.0 */
/* tenrec/future.h - the result of an operation that may still be in progress.
 *
 * A future is shared (counted). It is completed exactly once: by a reply, an
 * error, its deadline, a lost peer, cancel or shutdown.
 */
#ifndef TENREC_FUTURE_H
#define TENREC_FUTURE_H

#include <tenrec/value.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* Limits in milliseconds. Functions that wait name their own default. */
#define TENREC_TIMEOUT_DEFAULT 0      /* of a call: as configured for the worker */
#define TENREC_TIMEOUT_NONE INT64_MAX /* never */

struct tenrec_future; /* opaque */
struct tenrec_worker;

/* Runs when a future is done, on the thread that completes it: a loop thread, a thread that waits
 * in Tenrec, or at once the caller if the future is already done. It must not block, and a wait in
 * it fails with EWOULDBLOCK. `f` is borrowed during the call. */
typedef void tenrec_future_fn(struct tenrec_future *f, void *arg);

/* Computes the result of a then-future. Fill *ret (borrowed: it is copied after
 * the return) or return an error. */
typedef tenrec_status tenrec_then_fn(struct tenrec_future *f, void *arg, struct tenrec_value *ret,
                                     tenrec_error *err);

/* Makes a future that the program itself completes.
 *
 * ret      shares: drop it
 * errors   ENOMEM
 * source   torch.futures.Future
 */
tenrec_status tenrec_future_new(struct tenrec_future **ret, tenrec_error *err);

/* The same for values only on these devices. A tensor on another device fails the future and its
 * then-futures with EDEVICE.
 *
 * errors   EINVAL (the host, a negative index), ENOMEM
 * source   torch.futures.Future(devices=...)
 */
tenrec_status tenrec_future_new_on(const struct tenrec_device *device, size_t n,
                                   struct tenrec_future **ret, tenrec_error *err);

/* Makes later work on `s` wait for the value of a future that is done. Use it in code with its own
 * streams; a wait does the same for the thread's current streams.
 *
 * errors   EAGAIN (not done yet), those of the driver
 */
tenrec_status tenrec_future_order(struct tenrec_future *f, const struct tenrec_stream *s,
                                  tenrec_error *err);

/* Completes the future; `value` is copied (tensors are shared), as is `why`.
 *
 * errors   EEXIST (done already: nothing changes), EINVAL (the future of a call; a value with
 *          flags, of an unknown type or nested deeper than 64; an error with the status OK),
 *          ENOMEM; for tensors on devices also EDEVICE and those of the driver (the future has
 *          failed then)
 */
tenrec_status tenrec_future_set_value(struct tenrec_future *f, const struct tenrec_value *value,
                                      tenrec_error *err);
tenrec_status tenrec_future_set_error(struct tenrec_future *f, const tenrec_error *why,
                                      tenrec_error *err);

struct tenrec_future *tenrec_future_share(struct tenrec_future *f);
void tenrec_future_drop(struct tenrec_future *f); /* a call under way goes on; NULL is allowed */

/* Returns true if the future is done; never blocks. */
bool tenrec_future_done(const struct tenrec_future *f);

/* Waits until `f` is done and returns its status.
 *
 * ms       at most this long; TENREC_TIMEOUT_DEFAULT: until the deadline of its call (for ever
 *          without one), or 60 s if f is not the future of a call; TENREC_TIMEOUT_NONE: for ever
 * errors   ETIMEDOUT (f goes on), EINVAL (negative ms), EWOULDBLOCK, and the error of f
 * threads  any, several at once; not an inline handler or a callback
 * source   semantics of torch.futures.Future.wait
 */
tenrec_status tenrec_future_wait(struct tenrec_future *f, int64_t ms, tenrec_error *err);

/* The value of a future that is done without error; borrowed until f is
 * dropped. NULL while it is not done, or if it failed. */
const struct tenrec_value *tenrec_future_value(const struct tenrec_future *f);

/* The error of a future that failed; borrowed until f is dropped. NULL otherwise. */
const tenrec_error *tenrec_future_error(const struct tenrec_future *f);

/* Runs fn once f is done.
 *
 * errors   EINVAL (no fn), ENOMEM (fn will not run)
 * source   torch.futures.Future.add_done_callback
 */
tenrec_status tenrec_future_add_callback(struct tenrec_future *f, tenrec_future_fn *fn, void *arg,
                                         tenrec_error *err);

/* Makes a future of the result of fn(f); fn also runs if f failed. The new future fails with
 * ECANCELED if the last holder drops f before it is done.
 *
 * ret      shares: drop it
 * errors   EINVAL (no fn), ENOMEM
 * source   torch.futures.Future.then
 */
tenrec_status tenrec_future_then(struct tenrec_future *f, tenrec_then_fn *fn, void *arg,
                                 struct tenrec_future **ret, tenrec_error *err);

/* Cancels the call: f fails with ECANCELED now, and the callee is notified and may stop early.
 * Does nothing if f is done. */
void tenrec_future_cancel(struct tenrec_future *f);

/* Wait for all futures (returns the first error in order of the list, after all are done) or for
 * one (returns its index). Lists may not hold NULL; n >= 1 for any.
 *
 * ms       of the whole; TENREC_TIMEOUT_DEFAULT: wait_all waits for each future in turn as
 *          tenrec_future_wait does, wait_any for 60 s
 * errors   as tenrec_future_wait; wait_any returns OK for a failed future, too: see
 *          tenrec_future_error
 * source   torch.futures.wait_all
 */
tenrec_status tenrec_future_wait_all(struct tenrec_future *const *f, size_t n, int64_t ms,
                                     tenrec_error *err);
tenrec_status tenrec_future_wait_any(struct tenrec_future *const *f, size_t n, int64_t ms,
                                     size_t *ret_index, tenrec_error *err);

/* Collects the futures that tenrec_rpc_async makes on this thread until the
 * scope ends, and waits for all of them. Scopes nest.
 *
 * ms       as tenrec_future_wait_all
 * errors   ENOMEM; end: as tenrec_future_wait_all. The scope is gone after end
 *          in any case
 * threads  begin and end on the same thread; a scope that a registered function or a callback
 *          leaves open is closed, with a warning
 * source   torch.distributed.rpc.api._wait_all
 */
tenrec_status tenrec_scope_begin(tenrec_error *err);
tenrec_status tenrec_scope_end(int64_t ms, tenrec_error *err);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
