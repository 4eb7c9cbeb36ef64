/* SPDX-License-Identifier: Apache-2.0 */
/* store_tcp_server.h - the TCP store's server on a core loop. */
#ifndef TENREC_STORE_STORE_TCP_SERVER_H
#define TENREC_STORE_STORE_TCP_SERVER_H

#include "core/base/loop.h"

#include <tenrec/store.h>

struct security;

/* Serves on `loop` (borrowed until the drop), or on one of its own for NULL.
 *
 * security: shared (counted); in a mode but none, clients prove themselves first. NULL: all are let
 * in */
tenrec_status store_server_open(struct loop *loop, const char *host, uint16_t port,
                                struct security *security, struct tenrec_store_server **ret,
                                uint16_t *ret_port, tenrec_error *err);

/* Accepts no new connection any more; open connections stay. Not from the loop's
 * thread. */
void store_server_stop_listening(struct tenrec_store_server *server);

#endif
