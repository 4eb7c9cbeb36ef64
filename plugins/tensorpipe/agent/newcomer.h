/* SPDX-License-Identifier: Apache-2.0 */
/* newcomer.h - connections that have not said yet what they are. Loop thread only. */
#ifndef TENSORPIPE_NEWCOMER_H
#define TENSORPIPE_NEWCOMER_H

#include "agent/listener.h"

/* Takes the incoming connection `fd` of `port`; a pipe takes it once its hello has arrived. */
void newcomer_take(struct listener_port *port, int fd, const union transport_address *from);

#endif
