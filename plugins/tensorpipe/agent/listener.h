/* SPDX-License-Identifier: Apache-2.0 */
/* listener.h - the listening sockets of an agent, one for each transport. Loop thread only, once
 * started. */
#ifndef TENSORPIPE_LISTENER_H
#define TENSORPIPE_LISTENER_H

#include "agent/wanted.h"

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

#endif
