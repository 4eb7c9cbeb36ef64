/* SPDX-License-Identifier: Apache-2.0 */
/* agent_case.h - the workers between which a case of tenrec/agent.h runs. */
#ifndef TENREC_TOOLS_CONFORMANCE_AGENT_CASE_H
#define TENREC_TOOLS_CONFORMANCE_AGENT_CASE_H

#include "conformance/case.h"
#include "conformance/world.h"

/* The workers; b == a when there is one only. */
extern struct world w;
extern struct side *a, *b;

/* The ith message that came to `k`, waited for; borrowed. */
#define await(k, i, ret_from) await_at(__FILE__, __LINE__, k, i, ret_from)
struct tenrec_msg *await_at(const char *file, int line, struct side *k, size_t i,
                            tenrec_peer *ret_from);

/* Drops a's connection to b. */
void disconnect(tenrec_error *err);

/* A thread that sends. */
struct sender {
    struct side *from;
    tenrec_peer to;
    int64_t first_id;
    struct tally *tally;
};

#endif
