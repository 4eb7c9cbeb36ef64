/* SPDX-License-Identifier: Apache-2.0 */
/* measure.h - the measured calls between two workers, shared by `tenrec perf` and
 * bench/. */
#ifndef TENREC_TOOLS_MEASURE_H
#define TENREC_TOOLS_MEASURE_H

#include "samples.h"

#include <semaphore.h>
#include <stdbool.h>
#include <tenrec/observe.h>

/* The callee: functions, and one buffer for all received tensors. */
struct measure_callee {
    unsigned char *buffer;
    size_t size; /* bytes of the buffer */
    sem_t end;
};

/* Registers the functions with `flags` (TENREC_INLINE; 0: they run on the pool); call before
 * tenrec_init_rpc. Tensors of more than `size` bytes are refused. errors: ENOMEM and those of the
 * registration. */
tenrec_status measure_callee_init(struct measure_callee *c, struct tenrec_worker *w, size_t size,
                                  uint32_t flags, tenrec_error *err);

/* Waits until the caller has called measure_end. */
void measure_callee_wait(struct measure_callee *c);

/* Call after the worker was dropped. */
void measure_callee_finish(struct measure_callee *c);

/* The caller. */
struct measure {
    struct tenrec_worker *worker;
    const char *to;  /* name of the callee */
    size_t size;     /* bytes per call */
    size_t inflight; /* concurrent calls (rate) */
    size_t warm;     /* untimed calls first */
    size_t calls;
};

/* Synchronous calls one after the other, with `size` bytes (0: no argument). */
tenrec_status measure_latency(const struct measure *m, struct samples *s, tenrec_error *err);

/* Asynchronous calls; the callback of each makes the next call. */
tenrec_status measure_rate(const struct measure *m, uint64_t *ret_ns, tenrec_error *err);

/* One tensor of `size` bytes at a time, into the callee's buffer; the first is
 * compared. */
tenrec_status measure_bandwidth(const struct measure *m, struct samples *s, tenrec_error *err);

tenrec_status measure_end(const struct measure *m, tenrec_error *err);

#endif
