/* SPDX-License-Identifier: Apache-2.0 */
/* world.h - workers of one process, each with a chain of the same config, and
 * what their users saw. */
#ifndef TENREC_TOOLS_CONFORMANCE_WORLD_H
#define TENREC_TOOLS_CONFORMANCE_WORLD_H

#include "core/backend/backend.h"

#include <pthread.h>
#include <stdatomic.h>
#include <tenrec/agent.h>

#define WORLD_MAX 2

/* The user of one chain. All that is delivered is kept until the world ends,
 * but for requests while `answers` is set: they are sent back. */
struct side {
    tenrec_peer id;
    char name[32];
    struct chain *chain;

    pthread_mutex_t lock; /* guards the list */
    struct tenrec_msg **got;
    tenrec_peer *from;
    size_t n_got;
    _Atomic uint32_t n_listed; /* the same; read without the lock */

    atomic_bool answers, refuses, no_memory, discards;
    atomic_int lost, callers_lost, placed, n_delivered;
    void *memory;                  /* for place, when set */
    _Atomic uint32_t placed_flags; /* of the last message to place */
    _Atomic uint32_t placed_begin; /* of its payload: four bytes */
    atomic_int wake_fd;            /* written at each delivery, when above 0 */
};

struct world {
    int n;
    struct side worker[WORLD_MAX];
    struct tenrec_member member[WORLD_MAX]; /* that all are started with */
};

/* Results of sends: the number of each. Static in a case, which runs once: its
 * last messages may be released after it has ended, until its workers are closed. */
struct tally {
    atomic_int ok, failed, released;
    atomic_int last_error, last_errno;
};

/* Opens and starts; `path` is the config, or the name of its `text` where that is not NULL;
 * `mode` the security mode (NULL: of the config and the environment). Fails the case when it
 * cannot. */
void world_open(struct world *w, const char *text, const char *path, int n, const char *mode);
void world_close(struct world *w);

/* The same in four steps: between the first and the last the plugins are loaded, and workers may
 * start and stop several times. */
void world_begin(const char *text, const char *path, const char *mode);
void world_start(struct world *w, int n);
void world_stop(struct world *w);
void world_end(void);

/* The file of the plugin under test; "" if the command has registered it. */
const char *world_plugin_path(void);

/* TENREC_MSG_PROVED if the workers prove themselves to each other, else 0. */
uint32_t world_mark(struct world *w);

/* The peer that worker 0 talks to: worker 1, or itself when it is alone. */
struct side *world_other(struct world *w);

/* The ith message that came, NULL while it has not; borrowed. */
struct tenrec_msg *side_got(struct side *k, size_t i, tenrec_peer *ret_from);
size_t side_count(struct side *k);

/* A request with these bytes; `tally` counts its release. */
struct tenrec_msg *make_request(int64_t id, const void *payload, size_t len, uint32_t n_tensors,
                                struct tally *tally);
/* A request with one tensor of these bytes, which are borrowed until it is released (memory.c). */
struct tenrec_msg *make_tensor_request(void *data, uint64_t bytes, struct tally *tally);
void send_msg(struct side *k, tenrec_peer to, struct tenrec_msg *msg, struct tally *tally);
/* Both in one, with the payload "ping". */
void send_ping(struct side *k, tenrec_peer to, int64_t id, struct tally *tally);

/* The number of completions in `tally`. */
int told(const struct tally *tally);

/* spy.c: a link of the command's own inside of a wrapper under test: it sees what the wrapper
 * sends inwards, which no delivered message shows. */

/* Returns the layers with the spy behind the first, or `layer` itself for a backend alone.
 * Registers the spy at its first use in the process; the result is static. */
const struct chain_layer *spy_insert(const struct chain_layer *layer, size_t *n);

/* The request with this id, as it passed the spy last. Returns false if none has. */
struct spy_seen {
    int64_t id;
    uint64_t deadline_ns;
    uint32_t key_len;
};
bool spy_saw(int64_t id, struct spy_seen *ret);

/* Messages whose end the cases see. */

/* A zeroed message. NULL: out of memory. */
struct tenrec_msg *letter_new(uint64_t payload_len, uint32_t n_tensors);

/* Calls fn(arg) when it is released; of letters only. */
void letter_on_release(struct tenrec_msg *msg, void (*fn)(void *arg), void *arg);

/* Returns true for a message of letter_new. */
bool letter_is(const struct tenrec_msg *msg);
/* Counts the times that a letter is placed, and returns the number so far. */
int letter_count_place(struct tenrec_msg *msg, int more);

/* Gives each tensor host memory, which goes with the letter. errors: ENOMEM */
tenrec_status letter_place(struct tenrec_msg *msg, tenrec_error *err);

#endif
