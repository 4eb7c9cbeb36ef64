/* SPDX-License-Identifier: Apache-2.0 */
/* peer_step.h - the steps of the peers of an agent, on connections of fake_wire.h. */
#ifndef TENREC_TESTS_FUZZ_PEER_STEP_H
#define TENREC_TESTS_FUZZ_PEER_STEP_H

#include "fake_host.h"
#include "step.h"

/* Each: `who` is the connection or pipe, modulo their number. */
void peer_calls(struct fake_host *h, const struct fuzz_step *s);      /* a connection comes in */
void peer_greets(struct fake_host *h, const struct fuzz_step *s);     /* hello */
void peer_offers(struct fake_host *h, const struct fuzz_step *s);     /* Brochure */
void peer_opens_pipe(struct fake_host *h, const struct fuzz_step *s); /* all of a handshake */
void peer_answers(struct fake_host *h, const struct fuzz_step *s);    /* ... that the agent began */
void peer_writes(struct fake_host *h, const struct fuzz_step *s);     /* raw bytes */
void peer_sends(struct fake_host *h, const struct fuzz_step *s);      /* a message */
void peer_controls(struct fake_host *h,
                   const struct fuzz_step *s); /* what channels say of tensors */
void peer_cuts(struct fake_host *h, const struct fuzz_step *s);
void peer_reads(struct fake_host *h,
                const struct fuzz_step *s); /* there is room for more, or none */
void peer_passes(struct fake_host *h, const struct fuzz_step *s); /* file descriptors */

/* A pipe of the agent, and its connection of that role; NULL: there is none. */
struct pipe *peer_pipe(struct fake_host *h, uint8_t who);
struct fake_conn *peer_conn(const struct pipe *p, unsigned role);

#endif
