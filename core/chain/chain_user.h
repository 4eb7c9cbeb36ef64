/* SPDX-License-Identifier: Apache-2.0 */
/* chain_user.h - a chain without a worker, and the calls of its user: messages of any payload that
 * wait for an answer (chain_calls.c). */
#ifndef TENREC_CHAIN_CHAIN_USER_H
#define TENREC_CHAIN_CHAIN_USER_H

#include "core/chain/pending.h"

#include <sys/types.h>
#include <tenrec/chain.h>

struct tenrec_chain {
    struct tenrec_chain_user user; /* zero beyond its size */
    pid_t process;                 /* that made the agent: a fork's child lacks its threads */
    struct loop *loop;
    struct loop_timer *timer; /* of calls, and of the user's wake */
    struct housekeeping *housekeeping;
    struct parallel_copy *copy;
    size_t pool_bytes; /* this agent's share of the storage pool */
    struct chain *chain;
    struct tenrec_member *member; /* those of the start; owns; NULL before */
    struct pending pending;       /* calls */
};

/* An answer has arrived, which is taken; or cannot be read (`why`), and stays the caller's. Returns
 * false if no call waits for it. */
bool chain_calls_answer(struct tenrec_chain *a, tenrec_peer from, struct tenrec_msg *msg,
                        const tenrec_error *why);
/* Fails the calls whose deadline has passed. */
void chain_calls_expire(struct tenrec_chain *a);

#endif
