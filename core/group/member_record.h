/* SPDX-License-Identifier: Apache-2.0 */
/* member_record.h - what a worker publishes about itself in the store. */
#ifndef TENREC_GROUP_MEMBER_RECORD_H
#define TENREC_GROUP_MEMBER_RECORD_H

#include "group/store.h"

#include <tenrec/types.h>

#define MEMBER_MAX_ADDRESS 4096 /* bytes */
#define MEMBER_MAX_EXTRA 65536  /* bytes */

struct member {
    char name[TENREC_NAME_MAX + 1];
    int32_t rank, world; /* world: 0 in a dynamic group */
    int64_t incarnation; /* the rank's n-th life in its group */
    char host[65];
    char boot[72]; /* of the host's kernel, and in which namespace its pid counts: tells equal
                      host names apart, and containers on one host */
    int64_t pid;
    int64_t start; /* of the process in clock ticks, as pids come again */
    char *address; /* owns; what the agent can be reached at */
    void *extra;   /* owns; what the worker tells of itself, opaque here */
    size_t extra_len;
    uint64_t token; /* random bits of this life, for those that read the store; 0: an older
                       worker's record, which has none */
};

void member_free(struct member *m); /* leaves it zeroed */

/* Draws the token of a life, never 0. errors: EOS */
tenrec_status member_draw_token(uint64_t *ret, tenrec_error *err);

/* Fills host, boot, pid and start with this process. */
void member_describe_process(struct member *m);

/* Whether `m` says that it is, or was, a process of this host as it runs now. */
bool member_was_here(const struct member *m);

/* Whether the process of `m` runs on this host now. False when that cannot be
 * seen from here. */
bool member_runs_here(const struct member *m);

/* Can others read what a worker of that name tells of itself? errors: EINVAL (name,
 * address), ETOOBIG (extra, which may be NULL) */
tenrec_status member_check(const char *name, const char *address, const struct store_value *extra,
                           tenrec_error *err);

/* The record as bytes; ret->data NULL when out of memory. */
void member_pack(const struct member *m, struct store_value *ret);

/* Writes under `key` what this process is: fills the rest of `me`, which has the name, the
 * rank, the world, the life and its token. `extra` may be NULL. errors: ENOMEM, the store's */
tenrec_status member_publish(struct member *me, const char *address,
                             const struct store_value *extra, struct tenrec_store *store,
                             const char *key, uint64_t deadline_ns, tenrec_error *err);

/* EPROTOCOL says what is wrong with it. */
tenrec_status member_unpack(const struct store_value *value, struct member *ret, tenrec_error *err);

#endif
