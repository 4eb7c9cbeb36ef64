/* SPDX-License-Identifier: Apache-2.0 */
/* two.h - two workers in two processes: what a caller does, and what is looked
 * at meanwhile. */
#ifndef TESTS_SPEED_TWO_H
#define TESTS_SPEED_TWO_H

#include "../testing.h"
#include <sys/types.h>
#include <tenrec/testkit.h>

/* The work of the caller once it is connected; fails by an assertion. */
typedef tenrec_status two_work_fn(struct tenrec_worker *w, void *arg, tenrec_error *err);

struct two {
    const char *transport; /* "uv", "shm" or "tls" */
    const char *progress;
    const char *channels; /* NULL: those of the backend */
    two_work_fn *work;
    void *arg;
};

/* Runs both until the work is done; 0 when all went well. */
int two_run(const struct two *t, tenrec_error *err);

/* Returns true if TCP is TLS in the security mode of this run. */
bool two_over_tls(void);

/* One call that does nothing. */
tenrec_status two_call(struct tenrec_worker *w, tenrec_error *err);

/* Threads on which the callee has answered two_call so far, and whether one was
 * no thread that delivers. Asks the callee. */
struct two_answers {
    int64_t threads, on_pool;
};
tenrec_status two_answered(struct tenrec_worker *w, struct two_answers *ret, tenrec_error *err);

/* What the callee used so far: CPU in microseconds, voluntary and other
 * switches of all its threads; how many threads it has, and its process. Asks the callee. */
struct two_usage {
    int64_t cpu_us, switches, threads;
    pid_t pid;
};
tenrec_status two_callee_usage(struct tenrec_worker *w, struct two_usage *ret, tenrec_error *err);
struct two_usage two_own_usage(void);

/* The transport of the connection to the callee, as reported by the agent. */
void two_transport(struct tenrec_worker *w, char *ret_name, size_t size);

#endif
