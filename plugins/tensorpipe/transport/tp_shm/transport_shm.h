/* SPDX-License-Identifier: Apache-2.0 */
/* transport_shm.h - TensorPipe's own transport for peers on one host. */
#ifndef TENSORPIPE_TRANSPORT_SHM_H
#define TENSORPIPE_TRANSPORT_SHM_H

#include "transport/transport.h"

extern const struct transport transport_shm;

#endif
