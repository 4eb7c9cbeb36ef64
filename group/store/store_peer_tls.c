/* SPDX-License-Identifier: Apache-2.0 */
#include "group/store/store_peer.h"

#include "security/tls/tls.h"

#include <errno.h>

/* Bytes that are decrypted at once, a record: a peer that does not read its answers is paused
 * before the rest of what it sent is decrypted. */
#define TEXT_MAX ((size_t)16 << 10)
_Static_assert(TEXT_MAX <= STORE_PEERS_READ, "the text takes the place of the received bytes");

static void peer_tls_flush(struct store_peer *peer)
{
    size_t len;
    const void *data = tls_session_output(peer->tls, &len);

    if (len > 0)
        store_peer_send(peer, data, len);
}

void store_peer_tls_write(struct store_peer *peer, const void *data, size_t len)
{
    ssize_t n;

    while (len > 0 && !store_peer_is_closing(peer)) {
        /* struct iovec has no const; a write only reads from it. */
        const struct iovec left = { (void *)(uintptr_t)data, len };
        /* Never -EAGAIN: all that was encrypted before has been taken out. */
        n = tls_session_write(peer->tls, &left, 1);
        if (n < 0) {
            store_peer_abort(peer, tls_session_reason(peer->tls));
            return;
        }
        peer_tls_flush(peer);
        data = (const char *)data + n;
        len -= (size_t)n;
    }
}

void store_peer_tls_read(struct store_peer *peer)
{
    /* The received bytes in it have been copied into the TLS session. */
    const struct iovec room = { peer->peers->room, TEXT_MAX };
    ssize_t n;

    while (store_peer_may_go_on(peer)) {
        n = tls_session_read(peer->tls, &room, 1);
        peer_tls_flush(peer); /* the answer to a change of keys */
        if (n == -EAGAIN || store_peer_is_closing(peer))
            return;
        if (n > 0)
            store_session_feed(peer->session, room.iov_base, (size_t)n);
        else if (n == 0)
            store_peer_drop(peer);
        else
            store_peer_abort(peer, tls_session_reason(peer->tls));
    }
}
