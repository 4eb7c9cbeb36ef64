/* SPDX-License-Identifier: Apache-2.0 */
/* spy.h - a link of the command's own inside of a wrapper under test: it sees what the wrapper
 * sends inwards, which no delivered message shows. */
#ifndef TENREC_TOOLS_CONFORMANCE_SPY_H
#define TENREC_TOOLS_CONFORMANCE_SPY_H

#include "core/backend/chain.h"

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

#endif
