/* SPDX-License-Identifier: Apache-2.0 */
/* shm_reactor.h - the rings by which TensorPipe peers notify each other of
 * new bytes in a ring.
 *
 * In TensorPipe every process has one such ring for all of its connections,
 * polls it without a pause, and finds in it the numbers (tokens) of those that a
 * peer has written to or read from. A thread that puts a token in holds a lock in
 * the shared memory meanwhile, so a peer that dies or stops in between stops all
 * that share the ring. Hence ours are one per connection, and need
 * not be read: that its peer did something is all that a token says, and the
 * connection's own markers say it too. */
#ifndef TENSORPIPE_SHM_REACTOR_H
#define TENSORPIPE_SHM_REACTOR_H

#include "transport/tp_shm/shm_ring.h"

/* Enough for the tokens of what fits into an inbox, in messages as torch sends
 * them, while we do not run: a peer that finds no room waits for us. */
#define SHM_REACTOR_SIZE (UINT64_C(512) << 10)

/* Puts `token` into a peer's ring; any thread. Returns false if the
 * caller has to retry later: the ring is full, or locked, for too long when `patient`. */
bool shm_reactor_push(const struct shm_ring *peer, uint32_t token, bool patient);

/* Throws away what the peer put into ours; any thread. */
void shm_reactor_empty(const struct shm_ring *own);

#endif
