/* store_session.h - the server's side of one store connection, without the
 * socket: bytes come in, answers go out. All sessions of a hub share its keys
 * and run on one thread. */
#ifndef TENREC_GROUP_STORE_SESSION_H
#define TENREC_GROUP_STORE_SESSION_H

#include "group/store_table.h"

struct store_session;

struct store_hub {
    struct store_table table;
    struct store_session *first_ready, *last_ready; /* woken, not run yet */
};

/* What a session needs from its connection. */
struct store_session_ops {
    void (*write)(void *arg, const void *data, size_t len); /* copies */
    /* Whether the peer does not read its answers: the session then stops until
     * store_session_resume. */
    bool (*full)(void *arg);
    /* `why` borrowed, static. The session is dropped later, not in here. */
    void (*close)(void *arg, const char *why);
};

tenrec_status store_hub_init(struct store_hub *hub, size_t limit);
void store_hub_finish(struct store_hub *hub); /* its sessions are dropped already */

struct store_session *store_session_new(struct store_hub *hub, const struct store_session_ops *ops,
                                        void *arg);
void store_session_drop(struct store_session *s);

/* Takes bytes that came, and runs every request that is whole. */
void store_session_feed(struct store_session *s, const void *data, size_t len);
/* Goes on after `full`. */
void store_session_resume(struct store_session *s);

#endif
