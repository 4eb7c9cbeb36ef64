/* SPDX-License-Identifier: Apache-2.0 */
/* pipe_conns.h - the connections of a pipe. */
#ifndef TENSORPIPE_PIPE_CONNS_H
#define TENSORPIPE_PIPE_CONNS_H

#include "transport/conn.h"

struct channel;
struct pipe;

struct pipe_conns {
    unsigned n;                  /* roles below it have a connection, or will ... */
    bool lacks_reply;            /* ... but that of CONN_REPLY */
    atomic_bool stuffed;         /* one of them may be full; changes under the pipe's lock */
    struct conn *of[CONN_ROLES]; /* by role; do not change once established */
    /* The reader of the pipe reads also those of its connections that else the loop
     * thread reads. Changes under side_lock, which the loop holds while it reads. */
    atomic_bool side_lent;
    pthread_mutex_t side_lock;
    struct reactor_task side_task;
};

#endif
