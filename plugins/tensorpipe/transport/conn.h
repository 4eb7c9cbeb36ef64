/* SPDX-License-Identifier: Apache-2.0 */
/* conn.h - one connection of a pipe: a stream, a read buffer, a write queue. */
#ifndef TENSORPIPE_CONN_H
#define TENSORPIPE_CONN_H

#include "admission/handshakes.h"
#include "reactor/reactor.h"
#include "transport/stream.h"
#include "transport/transport.h"
#include "wire/little_endian.h"
#include <errno.h>
#include <sys/epoll.h>
#include <sys/uio.h>

struct endpoint;
struct send_request;

/* A channel may have several connections: CONN_CHANNEL is the first of them.
 * CONN_BOOTSTRAP: began a pipe whose connections use another transport. CONN_UNKNOWN: has not
 * said what it is for. */
#define CHANNEL_CONNECTIONS 17
enum conn_role {
    CONN_DESCRIPTOR,
    CONN_REPLY,
    CONN_CHANNEL,
    CONN_ROLES = CONN_CHANNEL + CHANNEL_CONNECTIONS,
    CONN_BOOTSTRAP,
    CONN_UNKNOWN
};

#define CONN_BUFFER (64u << 10)
#define CONN_END (EPOLLRDHUP | EPOLLHUP | EPOLLERR) /* events that report its end */
#define FRAME_HEAD 8                                /* bytes of the length before each frame */

#define SEGMENT_HEAD 32
/* Bytes to write that belong together: a message's frames on the descriptor
 * connection, or what a channel writes for a tensor. */
struct segment {
    struct segment *next;
    struct send_request *request; /* whose part it is */
    struct iovec iov[3];
    unsigned n, at;    /* iov[at..n-1] are left */
    enum conn_role on; /* where it is written */
    /* The peer says when it has taken the tensor; until then it is the request's part
     * a second time. */
    bool awaited;
    bool offered;    /* its bytes were given to a stream that encrypts, and may be on their way */
    uint64_t number; /* of what is awaited on a pipe, from 0 */
    struct segment *next_awaited;
    unsigned char head[SEGMENT_HEAD];
};

/* The peer of a connection, as its proof has shown. */
struct conn_peer {
    bool proved;
    tenrec_peer rank; /* TENREC_ANONYMOUS: no member */
    uint64_t incarnation;
    char name[TENREC_NAME_MAX + 1];
};

static inline bool conn_peer_equal(const struct conn_peer *a, const struct conn_peer *b)
{
    return a->proved == b->proved &&
           (!a->proved || (a->rank == b->rank && a->incarnation == b->incarnation));
}

struct tenrec_proof;
struct tenrec_tls;

/* The proof with which a connection begins (proof/prover.h). Loop thread. */
struct conn_proof {
    struct tenrec_proof *open;                                /* under way; owns */
    void (*on_events)(struct conn *c, uint32_t events);       /* the next owner's, ... */
    void (*refused)(struct conn *c, const tenrec_error *why); /* ... or ends it */
    bool dialled;
    bool shaken;        /* the stream's own handshake is over */
    bool done;          /* the peer has proved itself, or may do without */
    unsigned asked;     /* how often the kernel was asked for a plain peer's user */
    tenrec_peer member; /* that is dialled */
    uint64_t label;     /* of a further connection: its registration id; else 0 */
    struct conn_peer peer;
};

struct conn {
    struct reactor_source source;
    const struct stream *stream;
    void *medium;           /* the stream's; NULL for a stream that needs only source.fd */
    struct tenrec_tls *tls; /* the stream's; NULL: it does not encrypt */

    /* Reading: belongs to the loop thread during the handshake, afterwards to
     * the reader of the pipe. Unread bytes are buf[pos..end-1]; what takes some advances pos. */
    unsigned char *buf;
    size_t cap, pos, end;

    /* Handles events, as epoll names them, on the loop thread. The owner sets both before the first
     * event; a connection uses nothing else of its owner. */
    void (*on_events)(struct conn *c, uint32_t events);
    void *owner; /* borrowed */
    struct endpoint *ep;
    enum conn_role role;
    atomic_bool waiting;  /* something is in the queue; changes under lock */
    atomic_bool writing;  /* only the thread that set it writes */
    atomic_bool writable; /* EPOLLOUT arrived while a thread wrote */
    atomic_bool full;     /* the stream took no more: EPOLLOUT will follow */

    /* Successful reads and writes of the data path. One thread at a time counts
     * each (the reader, the writer), so that plain loads and stores do. */
    atomic_uint_fast64_t sends, bytes_sent, receives, bytes_received;

    struct segment *first, *last; /* to write; under the pipe's lock */
    const struct transport *transport;
    pid_t pid; /* whose process is at the other end; 0 when the kernel does not say */
    union transport_address peer;
    bool pending;    /* connect has not ended */
    bool dropped;    /* an event that was fetched before means nothing any more */
    const char *why; /* it could not be made, where an errno does not say so; else NULL */

    struct reactor_timer timer; /* of the hello, or of the next try to connect */
    uint64_t reach_until_ns;    /* how long tries go on while the listener's queue is full */
    struct handshake handshake; /* until its hello was read */
    struct conn_proof proof;
    struct reactor_task free_task;
};

static inline unsigned char *conn_put_frame(unsigned char *at, const void *body, size_t len)
{
    put_le64(at, len);
    if (len)
        memcpy(at + FRAME_HEAD, body, len);
    return at + FRAME_HEAD + len;
}

/* Of a counter that one thread at a time changes: plain loads and stores do. */
static inline void counter_bump(atomic_uint_fast64_t *counter, uint64_t n)
{
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + n,
                          memory_order_relaxed);
}

/* Writes as c->stream does, and counts that. By the writer. */
static inline ssize_t conn_write(struct conn *c, struct iovec *iov, unsigned n)
{
    ssize_t r;

    /* Counted first: the peer may answer before the call returns. */
    counter_bump(&c->sends, 1);
    r = c->stream->write(c, iov, n);
    if (r < 0)
        counter_bump(&c->sends, (uint64_t)-1);
    else
        counter_bump(&c->bytes_sent, (uint64_t)r);
    return r;
}

/* Takes `fd`. NULL: out of memory, `fd` is closed. */
struct conn *conn_new(struct endpoint *ep, const struct transport *transport,
                      const struct stream *stream, int fd, const union transport_address *peer);
/* Hears no more; the memory and the medium go when no event can name it.
 * Loop thread, or when the loop does not run. NULL is fine. */
void conn_drop(struct conn *c);

static inline void conn_set_owner(struct conn *c,
                                  void (*on_events)(struct conn *c, uint32_t events), void *owner)
{
    c->on_events = on_events;
    c->owner = owner;
}

/* Returns true if a read that gave less than was asked for has left something: a session may have
 * ended its turn, or found the end behind the bytes. */
bool conn_tls_has_more(const struct conn *c);

/* What the stream's read of `asked` bytes, the first `lead_len` of them past
 * the buffer, has given: as conn_read returns it. */
static inline ssize_t conn_came(struct conn *c, ssize_t n, size_t asked, size_t lead_len,
                                bool *ret_short, int *ret_errno)
{
    if (n < 0) {
        *ret_errno = (int)-n;
        return n == -EAGAIN ? 0 : -1;
    }
    *ret_errno = 0;
    if (n == 0)
        return -1;
    counter_bump(&c->receives, 1);
    counter_bump(&c->bytes_received, (uint64_t)n);
    *ret_short = (size_t)n < asked && !(c->tls && conn_tls_has_more(c));
    if ((size_t)n > lead_len)
        c->end += (size_t)n - lead_len;
    return n;
}

/* conn_read, whatever has to be prepared for it. */
ssize_t conn_read_any(struct conn *c, const struct iovec *lead, int n_lead, bool wait,
                      bool *ret_short, int *ret_errno);

/* Reads once: first into `lead` (only when nothing is buffered), then into
 * the buffer. Returns the bytes read, 0 when there are none now, -1 at the end
 * of the stream (*ret_errno 0) or on an error. `ret_short`: the stream had no
 * more than that. `wait`: for up to CONN_WAIT_MS, after stream->let_wait.
 *
 * Inlined into its callers: a spinning thread unwinds every frame after each empty poll, and
 * the return predictor misses. */
static inline ssize_t conn_read(struct conn *c, const struct iovec *lead, int n_lead, bool wait,
                                bool *ret_short, int *ret_errno)
{
    struct iovec iov;
    size_t room;

    if (c->pos == c->end)
        c->pos = c->end = 0;
    room = c->cap - c->end;
    if (n_lead || !room || c->cap > CONN_BUFFER)
        return conn_read_any(c, lead, n_lead, wait, ret_short, ret_errno);
    iov = (struct iovec){ c->buf + c->end, room };
    return conn_came(c, c->stream->read(c, &iov, 1, wait), room, 0, ret_short, ret_errno);
}
#define CONN_WAIT_MS 10
/* Of a longer `lead` one read takes no more, and nothing behind it, unless the stream is bounded:
 * the other connections of a pipe have their turn. A ring has to know the whole length, since a
 * part of something large is copied past the caches. */
#define CONN_LEAD_MAX (256u << 10)

/* Makes room so that `need` bytes from pos on fit in the buffer. */
bool conn_reserve(struct conn *c, size_t need);
/* Frees a buffer that grew for one large object, once it is empty. */
void conn_shrink(struct conn *c);

static inline size_t conn_buffered(const struct conn *c)
{
    return c->end - c->pos;
}

/* Moves what the buffer has of a body of `len` bytes, of which *got are there,
 * to its place `to` (NULL: nowhere). */
void conn_take(struct conn *c, void *to, uint64_t len, uint64_t *got);

enum frame { FRAME_PARTIAL, FRAME_WHOLE, FRAME_TOO_BIG, FRAME_NO_MEMORY };

/* Checks the frame at the front of the buffer; FRAME_HEAD + len bytes. `ret_len` is set once its
 * header has arrived. */
enum frame conn_frame(struct conn *c, uint64_t max_len, const unsigned char **ret_body,
                      size_t *ret_len);

/* Sends a few bytes on a connection that carries nothing yet: all or nothing.
 * 0 or an errno. */
int conn_send_small(struct conn *c, const void *data, size_t len);

#endif
