/* SPDX-License-Identifier: Apache-2.0 */
/* store_session.h - the server's side of one store connection, without the
 * socket: received bytes in, answers out. All sessions of a hub share its keys
 * and run on one thread. */
#ifndef TENREC_STORE_STORE_SESSION_H
#define TENREC_STORE_STORE_SESSION_H

#include "group/store/store_table.h"

#include <stdatomic.h>
#include <stdint.h>

struct store_session;

/* Limit of the memory of all sessions of a hub: incomplete requests, and answers that were not sent
 * or not read. Beyond it the session with most memory is closed. */
#define STORE_MAX_HELD ((size_t)256 << 20)
/* The time from a request's first byte to its last, at most. */
#define STORE_REQUEST_MS 30000

struct store_hub {
    struct store_table table;
    struct store_session *ready; /* woken, not run yet */
    struct store_session *sessions;
    struct store_session *running; /* its `in` is being read */
    size_t held, max_held;         /* bytes */
    uint64_t steps;  /* so far: requests, the keys, links and buckets walked for them, KiB moved */
    uint64_t walked; /* links of them */
    _Atomic uint64_t requests; /* answered so far, with those that open a connection */
};

/* The operations of a session's connection. */
struct store_session_ops {
    void (*write)(void *arg, const void *data, size_t len); /* copies */
    /* Returns true if the peer does not read its answers: the session then stops until
     * store_session_resume. */
    bool (*full)(void *arg);
    /* `why` borrowed, static. The session is dropped later, not in here. */
    void (*close)(void *arg, const char *why);
    /* A turn has ended before all requests that were received have run: the session continues in
     * store_session_resume, which the owner calls after it has read from others. NULL: turns have
     * no end. */
    void (*behind)(void *arg);
};

tenrec_status store_hub_init(struct store_hub *hub, size_t limit);
void store_hub_finish(struct store_hub *hub); /* its sessions are dropped already */

struct store_session *store_session_new(struct store_hub *hub, const struct store_session_ops *ops,
                                        void *arg);
void store_session_drop(struct store_session *s);

/* Appends received bytes, and runs the whole requests of one turn. */
void store_session_feed(struct store_session *s, const void *data, size_t len);
/* Returns true if a whole request was received. */
bool store_session_has_spoken(const struct store_session *s);
/* Continues after `full` or `behind`. */
void store_session_resume(struct store_session *s);
/* Sets how many bytes of answers the connection keeps for a peer that does not read. */
void store_session_unread(struct store_session *s, size_t bytes);

/* Closes the sessions whose request began too long ago. Called periodically. */
void store_hub_expire(struct store_hub *hub, uint64_t now_ns);

#endif
