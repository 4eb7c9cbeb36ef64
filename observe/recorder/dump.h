/* SPDX-License-Identifier: Apache-2.0 */
/* dump.h - what the workers of this process do at one moment, and what happened before. */
#ifndef TENREC_RECORDER_DUMP_H
#define TENREC_RECORDER_DUMP_H

#include "core/base/memory.h"
#include "observe/recorder/recorder.h"
#include "observe/recorder/stack.h"
#include "rpc/call/calls.h"

enum {
    DUMP_MAX = 256,  /* handlers, and calls that wait; the others are counted */
    DUMP_STACKS = 64 /* threads that are asked where they stand */
};

#define DUMP_FUNCTION "tenrec.dump" /* is in no dump itself */

enum dump_state { DUMP_QUEUED, DUMP_RUNS, DUMP_LATER /* runs, or has returned to answer later */ };

struct dump_handler {
    const char *worker, *function, *caller; /* caller: "" outside the group */
    int64_t id;
    uint64_t begun_ns; /* 0: has not */
    enum dump_state state;
    struct stack stack;
};

struct dump_wait {
    const char *worker, *function, *callee;
    int64_t id;
    uint64_t begun_ns;    /* 0: unknown */
    uint64_t deadline_ns; /* CLOCK_NEVER: none */
};

struct dump {
    struct arena texts;
    uint64_t now_ns;
    struct dump_handler *handler; /* owns, like `wait` */
    struct dump_wait *wait;
    size_t n_handlers, n_waits, more_handlers, more_waits;
    /* With those of other workers behind them, which are in the trace only. */
    size_t all_handlers, all_waits;
    char *trace; /* Chrome's JSON; owns */
    size_t trace_len;
    size_t n_events; /* of the recorder, in it */
    bool on;         /* calls are recorded */
};

/* of       the worker; NULL: all of the process. The trace is always of all.
 * stacks   asks threads where they stand
 * errors   ENOMEM; dump_finish is due then, too */
tenrec_status dump_make(struct dump *d, const struct tenrec_worker *of, bool stacks,
                        tenrec_error *err);
void dump_finish(struct dump *d);

/* A dump of `w` as a value (dump_value.c). errors: ENOMEM, EBUSY and those of fn */
tenrec_status dump_value(struct tenrec_worker *w, value_fn *fn, void *arg, tenrec_error *err);

/* Writes the trace (dump_trace.c); the recorders are locked. Returns false without memory. */
bool dump_trace(struct dump *d);

#endif
