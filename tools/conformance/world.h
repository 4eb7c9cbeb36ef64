/* SPDX-License-Identifier: Apache-2.0 */
/* world.h - workers of one process, each with a chain of the same config, and
 * what their users saw. */
#ifndef TENREC_TOOLS_CONFORMANCE_WORLD_H
#define TENREC_TOOLS_CONFORMANCE_WORLD_H

#include "core/backend/backend.h"

#include <pthread.h>
#include <stdatomic.h>

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
    atomic_int wake_fd;            /* written at each delivery, when above 0 */
};

struct world {
    int n;
    struct side worker[WORLD_MAX];
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
void send_msg(struct side *k, tenrec_peer to, struct tenrec_msg *msg, struct tally *tally);
/* Both in one, with the payload "ping". */
void send_ping(struct side *k, tenrec_peer to, int64_t id, struct tally *tally);

/* The number of completions in `tally`. */
int told(const struct tally *tally);

#endif
