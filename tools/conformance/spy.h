/* SPDX-License-Identifier: Apache-2.0 */
/* spy.h - a link of the command's own inside of a wrapper under test: it sees what the wrapper
 * sends inwards, which no delivered message shows. */
#ifndef TENREC_TOOLS_CONFORMANCE_SPY_H
#define TENREC_TOOLS_CONFORMANCE_SPY_H

#include <tenrec/agent.h>

#include "core/backend/backend.h"

/* Returns the layers with the spy behind the first, or `layer` itself for a backend alone.
 * Registers the spy at its first use in the process; the result is static. */
const struct chain_layer *spy_insert(const struct chain_layer *layer, size_t *n);

/* The request with this id, as it passed the spy last. Returns false if none has. */
struct spy_seen {
    int64_t id;
    uint64_t deadline_ns;
    uint32_t key_len;
};
bool spy_saw(int64_t id, struct spy_seen *ret);

/* Messages whose end the cases see. */

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
