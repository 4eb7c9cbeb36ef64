/* SPDX-License-Identifier: Apache-2.0 */
/* record.h - the state of a group and its workers, in memory that also processes share. No locks.
 */
#ifndef TENREC_TESTKIT_RECORD_H
#define TENREC_TESTKIT_RECORD_H

#include <stdatomic.h>
#include <tenrec/testkit.h>

enum record_phase {
    RECORD_SETUP,
    RECORD_INIT,
    RECORD_BODY,
    RECORD_WAIT, /* for the bodies of the others, or for the close */
    RECORD_SHUTDOWN,
    RECORD_LEAKS,
    RECORD_ENDED,
};

struct record {
    atomic_int phase;     /* enum record_phase */
    atomic_bool may_die;  /* the worker or the test ends it on purpose */
    atomic_bool asserted; /* an assertion failed */
    /* Written before the phase is RECORD_ENDED. */
    tenrec_status status;
    tenrec_error err;
};

struct board {
    size_t bytes;
    int32_t n;
    atomic_int failed;     /* 1 + rank of the worker that failed first; 0: none */
    atomic_bool shortened; /* a worker was ended on purpose: no wait for it */
    atomic_bool closing;   /* workers without a body may leave */
    atomic_bool at_once;   /* ... by an immediate shutdown */
    struct record worker[];
};

/* errors: EOS */
tenrec_status board_new(int32_t n, struct board **ret, tenrec_error *err);
void board_drop(struct board *b);

/* Records a failure, of which the first is kept. Called before the failed worker shuts down, as its
 * peers fail when their connections break. */
void board_fail(struct board *b, int32_t rank);

/* Ends a worker's record. */
void board_end(struct board *b, int32_t rank, tenrec_status status, const tenrec_error *err);

/* Returns true if every worker has reached `phase` or died on purpose. */
bool board_all(const struct board *b, enum record_phase phase);

/* "in tenrec_init_rpc", "in its body", ... */
const char *record_place(const struct record *r);

#endif
