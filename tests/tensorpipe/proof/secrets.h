/* SPDX-License-Identifier: Apache-2.0 */
/* secrets.h - workers with and without a group secret in one process, and peers by hand. */
#ifndef TENSORPIPE_TEST_SECRETS_H
#define TENSORPIPE_TEST_SECRETS_H

#include "../../support/cluster.h"
#include "../../testing.h"
#include "security/proof/proof.h"

enum secret_of { NO_SECRET, OUR_SECRET, OTHER_SECRET };

/* Makes both secrets, as files. Before anything else. */
void secrets_make(void);
void secrets_remove(void);
struct secret *secrets_get(enum secret_of which); /* borrowed; NULL: none */
/* Workers and chains that are made from now on have it. */
void secrets_use(enum secret_of which);

/* Changes the configuration of each worker of a group. NULL: nothing to change. */
extern void (*secrets_configure)(struct tenrec_config *config, int rank);

/* A group of two, worker0 with the first secret and worker1 with the second. Closed by
 * cluster_close. */
void secrets_group(struct cluster *c, enum secret_of first, enum secret_of second);

/* The URL of the store in which the last group met. */
const char *secrets_store(void);

/* The number in the debug info of `w` under "tensorpipe." and `key`. */
uint64_t secrets_counter(struct tenrec_worker *w, const char *key);
/* Returns true if the text under that key contains `part`. */
bool secrets_tells(struct tenrec_worker *w, const char *key, const char *part);

/* A proof by hand, of a member or of a stranger, over a socket that is connected to a listener. */
struct by_hand {
    int fd;
    struct proof *proof; /* owns; the dialler */
};

/* The dialler and the wanted party; the incarnations are those of the workers. */
struct proof_party secrets_party(struct tenrec_worker *w);

/* To a port, or to the Unix socket of a ring; with a limit for reading. */
int by_hand_connect(const char *address);
/* Connects to `to`, and has a HELLO of `me` ready. `label` 0: none. */
struct by_hand by_hand_dial(enum secret_of which, const struct proof_party *me,
                            struct tenrec_worker *to, uint64_t label);
/* Sends what the proof has to say, at most `step` bytes at a time. */
void by_hand_send(struct by_hand *h, size_t step);
/* Reads one record into `ret`. Returns its length; 0 at the end of the stream. */
size_t by_hand_read(const struct by_hand *h, unsigned char ret[PROOF_RECORD_MAX]);
/* Reads one record and takes it. */
tenrec_status by_hand_take(struct by_hand *h, tenrec_error *err);
/* All of it. Returns the first error. */
tenrec_status by_hand_prove(struct by_hand *h, tenrec_error *err);
void by_hand_close(struct by_hand *h);

/* The record is a REFUSED. */
bool record_refuses(const unsigned char *record, size_t len);

#endif
