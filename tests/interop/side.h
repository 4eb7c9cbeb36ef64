/* SPDX-License-Identifier: Apache-2.0 */
/* side.h - the tensorpipe plugin in a chain of the core, and what its user saw. */
#ifndef INTEROP_SIDE_H
#define INTEROP_SIDE_H

#include "../testing.h"
#include "core/backend/backend.h"

#include <pthread.h>
#include <stdatomic.h>

#define SIDE_PEER ((tenrec_peer)1) /* the member that libtensorpipe plays */
#define SIDE_MAX 128

struct side {
    struct chain *chain;
    struct chain_config *stack;
    struct loop *loop;
    struct tenrec_member members[2];
    char peer_address[64];

    atomic_int requests, lost, sent, failed;
    tenrec_error why; /* of the last loss or failed send; read after the counter */

    pthread_mutex_t lock; /* guards the answers */
    struct tenrec_msg *answers[SIDE_MAX];
    int n_answers;
    int32_t last_type; /* of a request */
    /* Changes a request before it is sent back; NULL: nothing to change. */
    void (*on_request)(struct tenrec_msg *msg);
    tenrec_peer last_from;
};

/* Starts with SIDE_PEER at that address ("127.0.0.1:port", or NULL: nowhere).
 * Requests are sent back as their answer, tensors and all. */
void side_open(struct side *s, const char *config, const char *peer_address);
void side_close(struct side *s);

/* The value of debug_info of the first key with this in it; "" without such a key. */
#define SIDE_INFO 160
void side_info(struct side *s, const char *key, char ret[SIDE_INFO]);

/* Our own "127.0.0.1:port". */
const char *side_address(struct side *s);

/* A request with the pattern as payload and `n` uint8 tensors of these bytes,
 * each with a pattern, seeds counting on from `seed`. */
struct tenrec_msg *side_request(int64_t id, unsigned long seed, size_t len, const uint64_t *tensors,
                                uint32_t n);
void side_send(struct side *s, struct tenrec_msg *msg);

/* `data` is the pattern of that seed. */
void side_check_pattern(const void *data, unsigned long seed, size_t len);
/* Waits for the answer to `id` and hands it over. */
struct tenrec_msg *side_answer(struct side *s, int64_t id);
/* It holds what side_request made; releases it. */
void side_check(struct tenrec_msg *answer, unsigned long seed, size_t len, const uint64_t *tensors,
                uint32_t n);

#endif
