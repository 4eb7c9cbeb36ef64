/* SPDX-License-Identifier: Apache-2.0 */
/* fake_worker.h - a worker without threads, for the fuzz target: what it sends is released and
 * reported sent, no timer runs, and the clock belongs to the target. */
#ifndef TENREC_TESTS_FAKE_WORKER_H
#define TENREC_TESTS_FAKE_WORKER_H

#include "rpc/call/calls.h"
#include "rpc/monitor/monitor_inside.h"

#include <stddef.h>
#include <tenrec/rref.h>

#define FAKE_MEMBERS 3
#define FAKE_KEPT 8
#define FAKE_LIFE 40 /* of worker0; the others' follow */

struct fake_worker {
    struct tenrec_worker worker;
    struct calls calls;
    max_align_t states[64]; /* of the services */
    struct monitor monitor; /* of a dynamic group */
    uint64_t now_ns;
    int64_t sent_id[FAKE_KEPT];              /* of requests, a ring */
    size_t n_sent;                           /* of these */
    size_t n_messages;                       /* that were sent, of all kinds */
    bool fails;                              /* each send, as its peer refuses */
    struct tenrec_rref *ref[FAKE_KEPT];      /* the program's */
    struct tenrec_future *future[FAKE_KEPT]; /* the program's */
    size_t n_refs, n_futures;
};

extern struct fake_worker fake;

/* Worker 0 of three, which runs. */
void fake_worker_make(bool dynamic);

/* As a worker stops: all that waits fails, all that is left goes. */
void fake_worker_end(void);

#endif
