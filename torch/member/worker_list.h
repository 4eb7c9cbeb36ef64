/* SPDX-License-Identifier: Apache-2.0 */
/* worker_list.h - torch's keys of a dynamic group, as torch's workers themselves use them: the
 * token, and the list of workers with their addresses. `keys` is the part of the store below
 * "rpc_prefix_0". Every function is one step of joining or leaving, and has a deadline. */
#ifndef TENREC_MEMBER_WORKER_LIST_H
#define TENREC_MEMBER_WORKER_LIST_H

#include "group/membership/torch_keys.h"

#include <stdbool.h>
#include <stdint.h>
#include <tenrec/store.h>

struct worker_list_entry {
    struct torch_entry worker;
    char *address; /* owns */
};

struct worker_list {
    struct worker_list_entry *entry; /* owns */
    size_t n;
};

/* Marks the group as dynamic. errors: EGROUP (it is static), and the store's */
tenrec_status worker_list_check_kind(struct tenrec_store *keys, uint64_t deadline_ns,
                                     tenrec_error *err);

/* Acquires torch's token for worker `name`, to join or to leave; also that of a dead worker
 * (token_holder_is_dead).
 *
 * errors: ETIMEDOUT (names the holder), and the store's */
tenrec_status worker_list_lock(struct tenrec_store *keys, const char *name, bool join,
                               uint64_t deadline_ns, tenrec_error *err);
/* Wakes torch's workers that wait for the token of joining, which is kept: each holds its client of
 * the store as long as it waits, and needs it to answer the notice of a worker that joins. They ask
 * for the token again and again until it is released.
 *
 * errors: the store's */
tenrec_status worker_list_wake(struct tenrec_store *keys, const char *name, uint64_t deadline_ns,
                               tenrec_error *err);
/* Releases it, also after the deadline, and wakes torch's workers. */
void worker_list_unlock(struct tenrec_store *keys, const char *name, bool join,
                        uint64_t deadline_ns);

/* Reads all workers of the list. ret: worker_list_finish it. errors: ENOMEM, and the store's */
tenrec_status worker_list_read(struct tenrec_store *keys, uint64_t deadline_ns,
                               struct worker_list *ret, tenrec_error *err);
void worker_list_finish(struct worker_list *r);
/* NULL: no such worker. */
const struct worker_list_entry *worker_list_find(const struct worker_list *r, const char *name);

/* Reads the address of one worker (owns); NULL in *ret if it has none, and if it is not listed with
 * that id. */
tenrec_status worker_list_address(struct tenrec_store *keys, const char *name, tenrec_peer id,
                                  uint64_t deadline_ns, char **ret, tenrec_error *err);

/* Chooses the id: `wanted`, or the lowest free one if that is -1. errors: EGROUP (id or name is in
 * use) */
tenrec_status worker_list_choose(const struct worker_list *r, tenrec_peer wanted, const char *name,
                                 tenrec_peer *ret, tenrec_error *err);

/* Writes the worker's keys, and the list with / without it. With the token only. */
tenrec_status worker_list_add(struct tenrec_store *keys, const struct worker_list *r,
                              const char *name, tenrec_peer id, const char *address,
                              uint64_t deadline_ns, tenrec_error *err);
tenrec_status worker_list_remove(struct tenrec_store *keys, const char *name, tenrec_peer id,
                                 uint64_t deadline_ns, tenrec_error *err);

/* ---- token_holder.c: the process that holds the token; joins and leaves wait for it ---- */

#define TOKEN_TEXT_MAX 160

/* Zeroed is empty. */
struct token_holder {
    char token[TOKEN_TEXT_MAX]; /* "Token_for_NAME_join" or "..._leave" */
    char address[256];
    uint64_t next_ns; /* of the next look */
    unsigned refused; /* looks since the token and the address have changed */
};

/* Reads the holder of `token`, once a second. Returns true if it is dead: for two seconds its
 * name has been in the list of workers, with the same address, and connections to that address have
 * been refused. A living worker listens from before it is listed until it has released the token; a
 * host that does not answer says nothing. */
bool token_holder_is_dead(struct token_holder *h, struct tenrec_store *keys, const char *token,
                          uint64_t deadline_ns);

#endif
