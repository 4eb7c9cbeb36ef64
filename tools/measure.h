/* SPDX-License-Identifier: Apache-2.0 */
/* measure.h - the work that is timed between two workers. `tenrec perf` and
 * bench/ do the same. */
#ifndef TENREC_TOOLS_MEASURE_H
#define TENREC_TOOLS_MEASURE_H

#include "samples.h"

#include <semaphore.h>
#include <stdbool.h>
#include <tenrec/observe.h>

/* The callee: functions that run inline, and one buffer for all tensors that
 * arrive. */
struct measure_callee {
    struct tenrec_worker *worker;
    unsigned char *buffer;
    size_t size; /* bytes of the buffer */
    sem_t end;
};

/* Registers the functions; before tenrec_init_rpc. A larger tensor than `size`
 * bytes is refused. errors: ENOMEM and those of the registration. */
tenrec_status measure_callee_init(struct measure_callee *c, struct tenrec_worker *w, size_t size,
                                  tenrec_error *err);

/* Sleeps until the caller has called measure_end. */
void measure_callee_wait(struct measure_callee *c);

/* After the worker was dropped. */
void measure_callee_finish(struct measure_callee *c);

/* What the caller does. */
struct measure {
    struct tenrec_worker *worker;
    const char *to;  /* name of the callee */
    size_t size;     /* bytes that each call carries */
    size_t inflight; /* calls at the same time (rate) */
    size_t warm;     /* untimed calls before the others */
    size_t calls;
};

/* Synchronous calls one after the other, with `size` bytes (0: no argument). */
tenrec_status measure_latency(const struct measure *m, struct samples *s, tenrec_error *err);

/* Asynchronous ones: whenever one ends its callback makes the next. */
tenrec_status measure_rate(const struct measure *m, uint64_t *ret_ns, tenrec_error *err);

/* One tensor of `size` bytes at a time, into the callee's buffer; the first one
 * is compared. */
tenrec_status measure_bandwidth(const struct measure *m, struct samples *s, tenrec_error *err);

/* CPU time that the callee has used so far. */
tenrec_status measure_callee_cpu(const struct measure *m, uint64_t *ret_ns, tenrec_error *err);

/* Tells the callee's counters to `sink` (tenrec_worker_debug_info). */
tenrec_status measure_callee_info(const struct measure *m, tenrec_sink_fn *sink, void *arg,
                                  tenrec_error *err);

tenrec_status measure_end(const struct measure *m, tenrec_error *err);

#endif
