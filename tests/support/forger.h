/* SPDX-License-Identifier: Apache-2.0 */
/* forger.h - a wrapper of the test process that sends messages that no honest worker sends:
 * the backends forging_inproc and forging_tensorpipe of support/cluster.c. */
#ifndef TESTS_FORGER_H
#define TESTS_FORGER_H

#include <tenrec/agent.h>

/* Before the first cluster_open. */
void forger_register(void);

/* Changes `msg` as it is sent by worker `me`; from any thread. */
typedef void forger_fn(tenrec_peer me, tenrec_peer to, struct tenrec_msg *msg);

/* Called for every message from now on; NULL removes it. */
void forger_set(forger_fn *fn);

/* Sends `msg` (takes) as worker `me`, below whatever that worker itself knows. */
void forger_send(tenrec_peer me, tenrec_peer to, struct tenrec_msg *msg);

#endif
