/* SPDX-License-Identifier: Apache-2.0 */
/* pipe_tensors.h - tensors of a pipe that do not travel as bytes of its connections. */
#ifndef TENSORPIPE_PIPE_TENSORS_H
#define TENSORPIPE_PIPE_TENSORS_H

#include "channel/channel.h"
#include "pipe/send_request.h"

struct arriving;
struct link;
struct tenrec_sharing;

/* Tensors in memory of the host that the peer maps, or reads out of this process. */
struct pipe_tensors {
    bool pulls;                     /* the peer can read our memory */
    bool allows;                    /* cma_allow was called; loop thread */
    struct tenrec_sharing *sharing; /* the core's; NULL: nothing is shared. Set before the pipe is
                                     * established. */
    uint64_t fds_sent;              /* packets of file descriptors; under the pipe's lock */
    struct cma_peer puller;         /* whose memory we read; changes under lock */
    uint64_t n_pulls;               /* tensors that were announced so; the reader's */
    uint64_t n_taken;               /* the loop's: what the peer took in order */
    atomic_uint_fast64_t pulled;    /* bytes that were read there */
    uint64_t probe;                 /* the number that the peer must read here */
};

/* Tensors in memory of devices. */
struct pipe_devices {
    enum conn_role role;            /* the connection for them; 0: none */
    struct link *link;              /* the loop's; NULL: as above, or not yet */
    struct send_request_list sends; /* for the link; under the pipe's lock, as the next */
    struct arriving *handed;
    struct reactor_task task;
};

#endif
