/* SPDX-License-Identifier: Apache-2.0 */
/* letter.h - messages whose end the cases see. */
#ifndef TENREC_TOOLS_CONFORMANCE_LETTER_H
#define TENREC_TOOLS_CONFORMANCE_LETTER_H

#include <tenrec/agent.h>

/* A zeroed message. NULL: out of memory. */
struct tenrec_msg *letter_new(uint64_t payload_len, uint32_t n_tensors);

/* Calls fn(arg) when it is released; of letters only. */
void letter_on_release(struct tenrec_msg *msg, void (*fn)(void *arg), void *arg);

/* Returns true for a message of letter_new. */
bool letter_is(const struct tenrec_msg *msg);
/* Counts the times that a letter is placed, and returns the number so far. */
int letter_count_place(struct tenrec_msg *msg, int more);

/* Gives each tensor host memory, which goes with the letter. errors: ENOMEM */
tenrec_status letter_place(struct tenrec_msg *msg, tenrec_error *err);

#endif
