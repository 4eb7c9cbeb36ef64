/* SPDX-License-Identifier: Apache-2.0 */
/* cases.h - what the cases of the contract work with. */
#ifndef TENREC_TESTS_CONTRACT_CASES_H
#define TENREC_TESTS_CONTRACT_CASES_H

#include "world.h"

/* Two workers, new for each case; b == a when there is one only. */
extern struct world w;
extern struct worker *a, *b;
void set_up(void);
void tear_down(void);
/* Returns true if there are two. */
bool has_peer(void);

/* The ith message that came to `k`, waited for; borrowed. */
struct tenrec_msg *await(struct worker *k, size_t i, tenrec_peer *ret_from);

/* A thread that sends. */
struct sender {
    struct worker *from;
    tenrec_peer to;
    int64_t first_id;
    struct tally *tally;
};

#endif
