/* SPDX-License-Identifier: Apache-2.0 */
/* transports.c - the transports of this build. The table has a file of its own, so that
 * a program which links the agent as a library can bring another one. */
#include "transport/ring/transport_ring.h"
#include "transport/tcp/transport_uv.h"
#include "transport/tls/transport_tls.h"

const struct transport *const transports[] = { &transport_ring, &transport_ring_dir, &transport_tls,
                                               &transport_uv, NULL };
