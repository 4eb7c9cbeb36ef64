/* SPDX-License-Identifier: Apache-2.0 */
/* tenrec/observe.h - counters and states of a running worker, in this process or elsewhere.
 *
 * Every worker serves functions for this. Their names begin with "tenrec.", a prefix that programs
 * may not register.
 */
#ifndef TENREC_OBSERVE_H
#define TENREC_OBSERVE_H

#include <tenrec/rpc.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

enum tenrec_inspection {
    /* Counters and states of the worker, its calls, its pool, its group and store, its remote
     * references, and the agents of its chain by their names in the config, as one map: numbers are
     * integers, all else is text. docs/observe.md has the keys. A stopped worker reports its own
     * counters only. torch's rpc.api._get_debug_info, with its keys. */
    TENREC_INSPECT_DEBUG_INFO = 0,

    /* The durations of the calls of a worker, as caller and as callee, since its process began.
     * They are counted while `observe.durations` or `observe.metrics` is set.
     *
     *     { now_ns: time of the worker's monotonic clock, on: true,
     *       dropped: calls of its process that were not counted, as there were too many series,
     *       calls: [{ side: "client" or "server", function: "add", worker: "worker1" (the called
     *                 worker; "" at the callee), error: "" or "ETIMEDOUT", count: 3, sum_ns: 9000,
     *                 buckets: 26 counts }] }
     *
     * Bucket i counts durations of at most 2^i microseconds and more than those of the bucket
     * before; the last one counts all that are longer. */
    TENREC_INSPECT_METRICS = 1,

    /* The current and recent activity of the worker.
     *
     *     { worker: "worker1", pid: 17, recorder: true (calls are recorded),
     *       handlers: [{ function: "add", caller: "worker0" ("": no member), call: its id,
     *                    state: "queued", "runs" or "answers later", ns: for how long (-1: not
     *                    begun), thread: 18, thread_name: "tenrec-pool", kernel: "sleeps in ...",
     *                    stack: ["add+0x1f (program)" ...], no_stack: why it is empty }],
     *       waits: [{ function: "mul", callee: "worker2", call: its id,
     *                 ns: for how long (-1: unknown), left_ns: (-1: no limit) }],
     *       more_handlers: 0, more_waits: 0 (left out), events: 40, trace: a Chrome trace as text }
     *
     * Threads of running handlers are interrupted for their stacks, if `observe.stacks` is true. */
    TENREC_INSPECT_DUMP = 2,
};

/* Inspects `w` itself, or another worker by a call. That worker answers even while its pool is
 * busy.
 *
 * to       name of a worker; NULL for `w` itself, without a call
 * options  of the call; NULL for the defaults
 * ret      owns: tenrec_value_drop it
 * errors   EINVAL (no such inspection, ret is NULL), ENOMEM; with `to` those of tenrec_rpc_sync;
 *          of a dump EBUSY (many dumps are being made)
 * threads  any; with `to` not an inline handler or a callback
 */
tenrec_status tenrec_worker_inspect(struct tenrec_worker *w, const char *to,
                                    enum tenrec_inspection what,
                                    const struct tenrec_call_options *options,
                                    struct tenrec_value **ret, tenrec_error *err);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
