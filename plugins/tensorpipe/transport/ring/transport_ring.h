/* SPDX-License-Identifier: Apache-2.0 */
/* transport_ring.h - Tenrec's own transport to a peer on the same host: rings
 * in shared memory that wake only a sleeping peer. */
#ifndef TENSORPIPE_TRANSPORT_RING_H
#define TENSORPIPE_TRANSPORT_RING_H

#include "transport/transport.h"

/* Connections begin on a socket with an abstract name, or in the folder of the option shm_dir,
 * which workers in several network namespaces may share. */
extern const struct transport transport_ring, transport_ring_dir;

#endif
