/* SPDX-License-Identifier: Apache-2.0 */
/* listener.h - the listening sockets of an agent, one for each transport. Loop thread only, once
 * started. */
#ifndef TENSORPIPE_LISTENER_H
#define TENSORPIPE_LISTENER_H

#include "transport/conn.h"

struct pipe;

/* wanted.c: connections that the pipes of an agent wait for in their handshakes. Loop thread
 * only. */

struct registration {
    uint64_t id;       /* random */
    struct pipe *pipe; /* borrowed: the pipe withdraws it */
    enum conn_role role;
};

/* Zeroed: empty. */
struct wanted {
    struct registration *list;
    size_t n, cap;
};

/* The pipe wants a connection of its transport, which brings the id. errors: ENOMEM, EOS */
tenrec_status wanted_add(struct wanted *w, struct pipe *p, enum conn_role role, uint64_t *ret_id);
/* Returns NULL if no pipe waits for this id; borrowed until the next change. */
const struct registration *wanted_find(const struct wanted *w, uint64_t id);
void wanted_remove(struct wanted *w, uint64_t id);
/* Forgets all that `p` still waits for. */
void wanted_withdraw(struct wanted *w, const struct pipe *p);
void wanted_finish(struct wanted *w);

/* The listening socket of one transport. */
struct listener_port {
    struct reactor_source source;
    struct listener *listener;
    const struct transport *transport;
    char domain[TRANSPORT_DOMAIN_MAX], address[TRANSPORT_TEXT_MAX];
};

struct listener {
    struct listener_port port[TRANSPORTS_MAX]; /* the preferred first */
    unsigned n_ports;
    bool stopped;
    struct agent *agent;
    struct reactor_timer pause; /* accepting goes on when it fires */
    bool paused;
    bool starved; /* running out of descriptors was reported */
    bool limited; /* a limit of file sizes was reported */
    struct wanted wanted;
};

/* Opens the sockets of the transports that the options list and that can be used
 * here; accepts nothing before listener_start. errors: ECONFIG, EOS */
tenrec_status listener_open(struct listener *l, struct agent *a, tenrec_error *err);
tenrec_status listener_start(struct listener *l, tenrec_error *err);
/* Stops listening and drops connections without hello. Idempotent. */
void listener_stop(struct listener *l);
void listener_close(struct listener *l);

/* Returns true when `n` connections can be accepted besides those that are wanted already. */
bool listener_has_room(const struct listener *l, unsigned n);

/* newcomer.c: connections that have not said yet what they are. Loop thread only. */

/* Takes the incoming connection `fd` of `port`; a pipe takes it once its hello has arrived. */
void newcomer_take(struct listener_port *port, int fd, const union transport_address *from);

#endif
