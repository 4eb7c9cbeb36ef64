/* SPDX-License-Identifier: Apache-2.0 */
/* store_peer_tls.h - the bytes of an accepted connection over TLS, after its handshake. On the
 * loop's thread. */
#ifndef TENREC_STORE_STORE_PEER_TLS_H
#define TENREC_STORE_STORE_PEER_TLS_H

#include "group/store/store_peer.h"

/* Encrypts an answer and sends it. The connection is closed on failure. */
void store_peer_tls_write(struct store_peer *peer, const void *data, size_t len);

/* Decrypts what the TLS session has received, and feeds the store's session, until the peer leaves
 * too many answers unread. Closes the connection at its end, or on failure: the store's session may
 * not be running. */
void store_peer_tls_read(struct store_peer *peer);

#endif
