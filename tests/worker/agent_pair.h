/* SPDX-License-Identifier: Apache-2.0 */
/* agent_pair.h - two chains without RPC in this process, and what came to each. */
#ifndef TESTS_WORKER_AGENT_PAIR_H
#define TESTS_WORKER_AGENT_PAIR_H

#include "../testing.h"

#include <pthread.h>
#include <stdatomic.h>
#include <tenrec/backend.h>

extern const char *agent_pair_backend; /* of this run: inproc, tcp, shm or faulty */

/* One of two ends, in this process. */
struct end {
    struct tenrec_chain *agent;
    pthread_mutex_t lock;
    struct tenrec_msg *last; /* that was delivered */
    tenrec_peer from;
    _Atomic uint32_t got;
    atomic_int told, failed, lost, woken, placed;
    atomic_bool deaf;  /* accepts says no */
    atomic_bool full;  /* place fails */
    void *memory;      /* for tensors that are placed */
    atomic_bool keeps; /* payload_new returns memory */
    atomic_int dropped;
    tenrec_error why; /* of what failed last */
};

struct pair {
    struct tenrec_chain_options *options;
    struct tenrec_member member[2];
    struct end end[2];
};

extern struct pair *pair; /* of the case that runs */

/* Memory for a payload of the program. */
struct agent_payload {
    atomic_int *dropped;
    unsigned char byte[];
};

void agent_pair_make(void);
void agent_pair_drop(void);
/* Releases the last message, before another one does. */
void agent_pair_forget(struct end *e);
/* From one end to the other; the first counts its completion. */
void agent_pair_send(int from, struct tenrec_msg *msg);

#endif
