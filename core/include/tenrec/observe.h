/* SPDX-License-Identifier: Apache-2.0 */
/* tenrec/observe.h - looking into a worker that runs: counters and states, of
 * this process or of another worker.
 *
 * Every worker brings functions for this that others may call; their names
 * begin with "tenrec.", and nobody else may register such a name.
 */
#ifndef TENREC_OBSERVE_H
#define TENREC_OBSERVE_H

#include <tenrec/rpc.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* Counters and states of the worker, its calls, its pool, its group and store,
 * its remote references, and the agents of its chain by their names in the
 * config. Each key comes once; docs/observe.md has the list. A worker that does
 * not run has its own counters only.
 *
 * sink     called for each key with its value as text, on this thread
 * threads  any, also inline handlers and callbacks
 * source   torch's rpc.api._get_debug_info, with its keys
 */
void tenrec_worker_debug_info(struct tenrec_worker *w, tenrec_sink_fn *sink, void *arg);

/* The same as one map: numbers are integers, the rest is text. Of `w` itself,
 * or of another worker by a call, which is answered also when that worker's
 * pool is busy.
 *
 * to       name of a worker; NULL for `w` itself, without a call
 * options  of the call; NULL for the defaults
 * ret      owns: tenrec_value_drop it
 * errors   ENOMEM; with `to` those of tenrec_rpc_sync
 * threads  any; with `to` not an inline handler or a callback
 */
tenrec_status tenrec_debug_info(struct tenrec_worker *w, const char *to,
                                const struct tenrec_call_options *options,
                                struct tenrec_value **ret, tenrec_error *err);

/* Calls a group that runs from outside, in the place of tenrec_init_rpc: finds
 * its members in the store and starts without being one of them. Calls go out
 * as those of a member do; who answers sees TENREC_ANONYMOUS, and nobody can
 * call back. The group does not wait for it, and tenrec_shutdown only for its
 * own calls. What needs a place in the group (barriers, gathers, remote
 * references) is refused.
 *
 * w        made with the backend that the group has; its worker.group says
 *          which group of the store
 * store    borrowed: URL of the group's store (tcp://host:port, file://path);
 *          NULL: as the config's init_method says
 * ms       limit of the whole; also the members' start is waited for
 * errors   EINVAL, ENOTFOUND or ECONNECT (no store there), EGROUP (no such
 *          group in it), ETIMEDOUT (names the ranks that did not come),
 *          EUNSUPPORTED (a backend for one process only), EBUSY, ENOMEM
 * threads  one at a time
 */
tenrec_status tenrec_worker_attach(struct tenrec_worker *w, const char *store, int64_t ms,
                                   tenrec_error *err);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
