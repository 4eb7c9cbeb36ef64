/* SPDX-License-Identifier: Apache-2.0 */
/* cases.h - the cases of the contract, and what they work with. */
#ifndef TENREC_TESTS_CONTRACT_CASES_H
#define TENREC_TESTS_CONTRACT_CASES_H

#include "world.h"

/* Two workers, new for each case; b == a when there is one only. */
extern struct world w;
extern struct worker *a, *b;

/* The ith message that came to `k`, waited for; borrowed. */
struct tenrec_msg *await(struct worker *k, size_t i, tenrec_peer *ret_from);

/* A thread that sends. */
struct sender {
    struct worker *from;
    tenrec_peer to;
    int64_t first_id;
    struct tally *tally;
};

/* contract_carry.c: what travels */
void contract_send_delivers_both_ways(void **state);
void contract_types_and_ids_are_untouched(void **state);
void contract_payloads_of_all_sizes_arrive(void **state);
void contract_tensors_keep_all_their_fields(void **state);
void contract_large_tensors_land_where_the_receiver_says(void **state);
void contract_a_message_without_memory_is_dropped_alone(void **state);

/* contract_tell.c: who is told, how often, and answers */
void contract_done_and_release_come_exactly_once(void **state);
void contract_an_unknown_peer_is_an_error(void **state);
void contract_a_send_to_oneself_arrives(void **state);
void contract_many_threads_may_send_at_once(void **state);
void contract_an_answer_finds_its_way_back(void **state);
void contract_an_answer_without_a_way_back_is_dropped(void **state);
void contract_poll_brings_the_answer_or_is_unsupported(void **state);

/* contract_lose.c: queues that are full, lost peers, the end */
void contract_requests_wait_while_the_user_takes_none(void **state);
void contract_a_send_after_disconnect_connects_again(void **state);
void contract_a_peer_that_shuts_down_is_lost(void **state);
void contract_a_caller_that_shuts_down_is_lost(void **state);
void contract_shutdown_tells_what_is_pending(void **state);
void contract_nothing_is_called_after_shutdown(void **state);
void contract_a_send_after_shutdown_fails(void **state);

#endif
