/* SPDX-License-Identifier: Apache-2.0 */
/* token_holder.h - is the process dead that holds the token of torch's group? Joins and leaves of
 * all workers wait for it. */
#ifndef TENREC_MEMBER_TOKEN_HOLDER_H
#define TENREC_MEMBER_TOKEN_HOLDER_H

#include <stdbool.h>
#include <stdint.h>
#include <tenrec/store.h>

#define TOKEN_TEXT_MAX 160

/* Zeroed is empty. */
struct token_holder {
    char token[TOKEN_TEXT_MAX]; /* "Token_for_NAME_join" or "..._leave" */
    char address[256];
    uint64_t next_ns; /* of the next look */
    unsigned refused; /* looks since the token and the address have changed */
};

/* Looks at the holder of `token`, once a second. Returns true if it is dead: for two seconds its
 * name has been in the list of workers, with the same address, and connections to that address have
 * been refused. A living worker listens from before it is listed until it has released the token; a
 * host that does not answer tells nothing. */
bool token_holder_is_dead(struct token_holder *h, struct tenrec_store *keys, const char *token,
                          uint64_t deadline_ns);

#endif
