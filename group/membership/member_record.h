/* SPDX-License-Identifier: Apache-2.0 */
/* member_record.h - the record of a worker in the store. */
#ifndef TENREC_MEMBERSHIP_MEMBER_RECORD_H
#define TENREC_MEMBERSHIP_MEMBER_RECORD_H

#include "group/store/store.h"

#include <tenrec/types.h>

#define MEMBER_MAX_ADDRESS 4096 /* bytes */
#define MEMBER_MAX_EXTRA 65536  /* bytes */

/* Each worker keeps the records of all, so one takes no more than its texts do. NULL is as "". */
struct member {
    int32_t rank, world; /* world: 0 in a dynamic group */
    int64_t incarnation; /* the rank's n-th life in its group */
    uint64_t token;      /* random bits of this life, for readers of the store; 0: an older worker's
                            record, which has none */
    const char *name, *address; /* address: of the agent */
    const char *backend;        /* of its agent at the wire; "": not compared */
    const char *host;
    const char *boot; /* of the host's kernel, and the namespace of the pid: distinguishes equal
                         host names, and containers on one host */
    int64_t pid;
    int64_t start;     /* of the process in clock ticks, as pids are reused */
    const void *extra; /* the worker's own data, opaque here */
    size_t extra_len;
    char *texts; /* owns; what a record that was read points to */
};

void member_free(struct member *m); /* leaves it zeroed */

/* What member_describe_process points to. */
struct member_place {
    char host[65], boot[72];
};

/* Draws the token of a life, never 0. errors: EOS */
tenrec_status member_draw_token(uint64_t *ret, tenrec_error *err);

/* Fills host, boot, pid and start with this process. */
void member_describe_process(struct member *m, struct member_place *place);

/* Returns true if `m` is, or was, a process of this host as it runs now. */
bool member_was_here(const struct member *m);

/* Returns true if the process of `m` runs on this host now; false also when that cannot be seen
 * from here. */
bool member_runs_here(const struct member *m);
/* Both are workers of one process. */
bool member_shares_process(const struct member *a, const struct member *b);

#define MEMBER_PROCESS 128 /* bytes, with a NUL */

/* "<pid>:<start>:<boot>" of this process, without blanks. */
void member_write_process(char ret[MEMBER_PROCESS]);
/* Returns true if `text` begins with such words of a process of this host that has ended. */
bool member_process_has_ended(const char *text);

/* A process of this host, which outlives the record that named it. */
struct member_process {
    int64_t pid, start; /* 0: none */
};

/* Returns false, and zeroes *ret, for a process of another host. */
bool member_find_process(const struct member *m, struct member_process *ret);

/* Returns true if it runs and is stopped (SIGSTOP, a debugger). */
bool member_process_is_stopped(const struct member_process *p);

/* Checks that other workers can read a record with this name, address and `extra` (may be NULL).
 * errors: EINVAL (name, address), ETOOBIG (extra) */
tenrec_status member_check(const char *name, const char *address, const struct store_value *extra,
                           tenrec_error *err);

/* Checks that the worker with that rank, or id, and `backend` (NULL: not compared) can call `m`.
 * errors: EGROUP */
tenrec_status member_check_backend(const struct member *m, const char *group, int32_t rank,
                                   const char *backend, tenrec_error *err);

/* The record as bytes; ret->data NULL when out of memory. */
void member_pack(const struct member *m, struct store_value *ret);

/* Writes the record of this process under `key`: fills the rest of `me`, which has the name, the
 * rank, the world, the life and its token. `extra` may be NULL.
 *
 * there   NULL: replaces any record; else the record of another that exists and stays, free() its
 *         data, which is NULL when ours was written
 * errors  ENOMEM, the store's */
tenrec_status member_publish(struct member *me, const char *address,
                             const struct store_value *extra, struct tenrec_store *store,
                             const char *key, uint64_t deadline_ns, struct store_value *there,
                             tenrec_error *err);

/* errors: EPROTOCOL (malformed), ENOMEM */
tenrec_status member_unpack(const struct store_value *value, struct member *ret, tenrec_error *err);
/* Where the texts of a record go that is one of many. */
struct member_texts {
    char *at; /* room for as many bytes as the record has; moves behind those that stay in use */
    /* The record before, and where it has the texts that most members of a host share; or NULL. */
    const struct member *before;
    const uint8_t *place, *backend;
    size_t place_len, backend_len;
};

/* The same, with texts of `before` where both have the same. errors: EPROTOCOL */
tenrec_status member_unpack_into(const struct store_value *value, struct member_texts *texts,
                                 struct member *ret, tenrec_error *err);

#endif
