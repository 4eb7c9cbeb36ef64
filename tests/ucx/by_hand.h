/* SPDX-License-Identifier: Apache-2.0 */
/* by_hand.h - a stranger (stranger.h) that proves a group secret to a worker by hand. */
#ifndef TESTS_UCX_BY_HAND_H
#define TESTS_UCX_BY_HAND_H

#include "conformance/world.h"
#include "head.h"
#include "security/proof/proof.h"

enum which_secret { OUR_SECRET, OTHER_SECRET };

/* Makes both secrets, as files; the environment names the first. */
void by_hand_make_secrets(void);
void by_hand_remove_secrets(void);
/* Workers that are made from now on have it. */
void by_hand_use(enum which_secret which);

/* Connects to `to`, and has the first word of the proof of `me` ready. */
void by_hand_open(enum which_secret which, const struct proof_party *me, const struct side *to);
void by_hand_close(void);

/* What the proof has to say now; borrowed until the next. */
const unsigned char *by_hand_output(size_t *ret_len);
/* Says these bytes as a part of the proof. */
void by_hand_say_proof(const void *bytes, size_t len);
/* Says a head with the worker's cookie, in its turn. */
void by_hand_say(struct head h);
/* Waits for the worker's next word, which must be of the proof, and takes it. */
tenrec_status by_hand_take(tenrec_error *err);
/* All of it. Returns the first error. */
tenrec_status by_hand_prove(tenrec_error *err);

/* The cookie that the stranger tells: that of the proof's label, unless a case changes it. */
extern unsigned char by_hand_cookie[HEAD_COOKIE_LEN];

#endif
