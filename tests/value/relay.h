/* SPDX-License-Identifier: Apache-2.0 */
/* relay.h - functions that pass a call on, each in its way, and answer with the contexts that they
 * saw: an array of texts, the callee's own first. */
#ifndef TESTS_TRACING_RELAY_H
#define TESTS_TRACING_RELAY_H

#include <tenrec/tenrec.h>

/* relay         waits for the next call, on the pool
 * relay_inline  an inline function: makes the next call, answers in its callback
 * relay_later   answers from another thread, which enters the context of the call
 *
 * The arguments are the workers on the way; without one the way ends. */
void relay_register(struct tenrec_worker *w, size_t rank);

#endif
