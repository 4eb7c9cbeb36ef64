/* SPDX-License-Identifier: Apache-2.0 */
/* stream.h - what moves the bytes of a connection: a socket, or memory that
 * two processes share.
 *
 * All streams look the same from above: a stream of bytes in each direction,
 * events that the loop thread hears of (those of epoll, edge-triggered), and an
 * end. One thread at a time reads, and one at a time writes; they may do so at
 * once. Nothing here takes a lock of the pipe. */
#ifndef TENSORPIPE_STREAM_H
#define TENSORPIPE_STREAM_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <tenrec/error.h>

struct conn;

/* The events that the loop thread gets. HEARS_ROOM: room for more bytes, and the end. */
enum conn_hears { HEARS_NOTHING, HEARS_ROOM, HEARS_ALL };

/* How a thread can sleep until there is something to read. */
struct conn_sleep {
    int fd;      /* until POLLIN is here ... */
    uint64_t ns; /* ... and at most so long; 0: without a limit */
};

struct stream {
    bool bounded;    /* one read gives no more than the stream's own memory holds */
    bool passes_fds; /* the connection's descriptor is a Unix socket without data */

    /* Reads what there is, up to what `iov` takes. Returns the bytes, 0 at the
     * end of the stream, -EAGAIN when there is nothing now, another -errno.
     * `wait`: for up to CONN_WAIT_MS, after let_wait. */
    ssize_t (*read)(struct conn *c, struct iovec *iov, int n, bool wait);
    void (*let_wait)(struct conn *c); /* NULL: nothing to prepare */

    /* Writes what there is room for; -EAGAIN when that is nothing. */
    ssize_t (*write)(struct conn *c, struct iovec *iov, unsigned n);

    /* From any thread. HEARS_ALL reports pending events. 0 or an errno. */
    int (*hear)(struct conn *c, enum conn_hears what);
    /* After a short write: asks for an event once room is free. `masked`: the loop does not
     * watch this connection so far. Returns true if room is free by now, and no event follows. The
     * end counts as room, as with the kernel's sockets: a write then fails with it. */
    bool (*want_room)(struct conn *c, bool masked);
    /* What the loop fetched for this connection's descriptor, as events of the
     * connection; on the loop thread. NULL: they are the same. */
    uint32_t (*events)(struct conn *c, uint32_t fetched);

    /* Called before and after the reader sleeps. Returns false if it must not, because data have
     * arrived. */
    bool (*sleep)(struct conn *c, struct conn_sleep *ret);
    void (*awake)(struct conn *c); /* NULL: nothing to undo */

    /* The peer has proved to belong to the group: begins what a stranger may not take part in, as
     * memory that both share. Until then, if endpoint->proves, the stream's bytes go through the
     * connection's descriptor. An event reports its end, EPOLLOUT for the caller. Returns 0 or an
     * errno. NULL: nothing to begin. */
    int (*share)(struct conn *c);

    /* Continues the exchange before the first byte, such as the handshake of TLS: once the
     * connection is open, and after each event. EAGAIN: more events must come first; EPERM: one
     * side refuses the other; EPROTOCOL. NULL: nothing goes before it. */
    tenrec_status (*shake)(struct conn *c, tenrec_error *err);

    /* How a connection that was pending ended: 0 or an errno. */
    int (*connected)(struct conn *c);
    /* Ends both directions, and wakes the threads of both sides; on the loop thread, or when it
     * does not run. Idempotent. */
    void (*cut)(struct conn *c);
    /* No event follows. NULL: HEARS_NOTHING is enough. */
    void (*drop)(struct conn *c);
    /* Closes and frees what conn->medium is; no event names it any more. */
    void (*free)(struct conn *c);
};

#endif
