/* SPDX-License-Identifier: Apache-2.0 */
/* shm_link.c - the stream of a connection through two rings. */
#include "transport/tp_shm/shm_link.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

/* Bytes per notification of the other side: small enough that both sides copy at the
 * same time, large enough that notifications cost nothing. */
#define CHUNK ((uint64_t)256 << 10)

/* Ours; a peer hands them back, and the reactor throws them away. */
enum token { TOKEN_INBOX = 1, TOKEN_OUTBOX = 2 };

tenrec_status shm_link_init(struct shm_link *ret, struct shm_hello *ret_hello, tenrec_error *err)
{
    struct shm_link l = { .read_head_at = SHM_FRAME_HEAD };
    struct shm_hello hello = { .inbox_token = TOKEN_INBOX,
                               .outbox_token = TOKEN_OUTBOX,
                               .fd = { -1, -1, -1, -1 } };
    tenrec_status st;

    st = shm_ring_make(&l.reactor, SHM_CONSUMER, SHM_REACTOR_SIZE, hello.fd + SHM_HELLO_REACTOR,
                       err);
    if (!st)
        st = shm_ring_make(&l.inbox, SHM_CONSUMER, SHM_INBOX_SIZE, hello.fd + SHM_HELLO_INBOX, err);
    if (st) {
        shm_hello_close(&hello);
        shm_link_finish(&l);
        return st;
    }
    *ret = l;
    *ret_hello = hello;
    return TENREC_OK;
}

tenrec_status shm_link_attach(struct shm_link *l, const struct shm_hello *peer, tenrec_error *err)
{
    tenrec_status st =
        shm_ring_map(&l->peer_reactor, SHM_PRODUCER, peer->fd + SHM_HELLO_REACTOR, err);

    if (!st)
        st = shm_ring_map(&l->outbox, SHM_PRODUCER, peer->fd + SHM_HELLO_INBOX, err);
    l->inbox_token = peer->inbox_token;
    l->outbox_token = peer->outbox_token;
    return st;
}

void shm_link_finish(struct shm_link *l)
{
    shm_ring_unmap(&l->inbox);
    shm_ring_unmap(&l->reactor);
    shm_ring_unmap(&l->outbox);
    shm_ring_unmap(&l->peer_reactor);
}

/* A peer that made this side wait once is left to shm_link_tend, which is notified in any
 * case, since the peer may have pushed the token before our marker moved. */
static void link_push(struct shm_link *l, uint32_t token, atomic_bool *owed)
{
    if (atomic_load_explicit(owed, memory_order_relaxed) ||
        !shm_reactor_push(&l->peer_reactor, token, true))
        atomic_store(owed, true);
}

static void push_owed(struct shm_link *l, uint32_t token, atomic_bool *owed)
{
    if (atomic_exchange(owed, false) && !shm_reactor_push(&l->peer_reactor, token, false))
        atomic_store(owed, true);
}

/* ---- moving ---- */

/* A transfer between the caller's buffers and a ring. */
struct transfer {
    const struct iovec *iov, *end;
    struct shm_ring *ring; /* inbox or outbox */
    uint32_t token;        /* tells the peer that we moved our marker */
    atomic_bool *owed;
    size_t at;      /* in *iov */
    uint64_t moved; /* bytes moved in the ring and not told */
    uint64_t room;  /* bytes that the ring had at the last look */
    ssize_t stream; /* bytes moved in the stream */
};

/* The rest of the buffer that has its turn; 0 at the end of all. */
static size_t transfer_space(struct transfer *t)
{
    while (t->iov < t->end && t->at == t->iov->iov_len) {
        t->iov++;
        t->at = 0;
    }
    return t->iov < t->end ? t->iov->iov_len - t->at : 0;
}

static unsigned char *transfer_place(const struct transfer *t)
{
    return (unsigned char *)t->iov->iov_base + t->at;
}

static void transfer_moved(struct transfer *t, size_t n)
{
    t->at += n;
    t->stream += (ssize_t)n;
}

/* Inline, as the next: a small message passes both several times. */
static inline void transfer_tell(struct shm_link *l, struct transfer *t)
{
    if (!t->moved)
        return;
    shm_ring_advance(t->ring, t->moved);
    t->room -= t->moved;
    t->moved = 0;
    link_push(l, t->token, t->owed);
}

/* Returns true if the head of a frame, or a byte of its body of which `left` bytes are left, can
 * be moved; tells the peer of each chunk, and reads the marker again after that. False: not now, or
 * never (*ret_bad). */
static inline bool transfer_can_move(struct shm_link *l, struct transfer *t, uint64_t left,
                                     bool *ret_bad)
{
    const uint64_t need = left ? 1 : SHM_RING_HEAD;

    if (t->moved < CHUNK && t->room - t->moved >= need)
        return true;
    transfer_tell(l, t);
    *ret_bad = !shm_ring_available(t->ring, &t->room);
    return !*ret_bad && t->room >= need;
}

static size_t smallest_of(uint64_t a, uint64_t b, uint64_t c)
{
    uint64_t least = a < b ? a : b;

    return (size_t)(least < c ? least : c);
}

/* ---- reading ---- */

static void begin_frame(struct shm_link *l, struct transfer *t)
{
    uint32_t len;
    uint64_t head;

    shm_ring_get(&l->inbox, t->moved, &len, sizeof len);
    l->read_left = le32toh(len);
    head = htole64(l->read_left);
    memcpy(l->read_head, &head, sizeof head);
    l->read_head_at = 0;
    t->moved += SHM_RING_HEAD;
}

ssize_t shm_link_read(struct shm_link *l, const struct iovec *iov, int n)
{
    struct transfer t = { iov, iov + n, &l->inbox, l->outbox_token, &l->owes_outbox };
    bool bad = false;
    size_t left, len;

    while ((left = transfer_space(&t)) > 0) {
        if (l->read_head_at < SHM_FRAME_HEAD) {
            len = smallest_of(left, SHM_FRAME_HEAD - l->read_head_at, SHM_FRAME_HEAD);
            memcpy(transfer_place(&t), l->read_head + l->read_head_at, len);
            l->read_head_at += (unsigned)len;
            transfer_moved(&t, len);
            continue;
        }
        if (!transfer_can_move(l, &t, l->read_left, &bad))
            break;
        if (!l->read_left) {
            begin_frame(l, &t);
            continue;
        }
        len = smallest_of(left, smallest_of(l->read_left, t.room - t.moved, CHUNK), CHUNK);
        shm_ring_get(&l->inbox, t.moved, transfer_place(&t), len);
        l->read_left -= len;
        t.moved += len;
        transfer_moved(&t, len);
    }
    transfer_tell(l, &t);
    if (!t.stream)
        return bad ? -EPROTO : -EAGAIN;
    shm_reactor_empty(&l->reactor);
    return t.stream;
}

/* ---- writing ---- */

/* The head is whole: it goes into the ring. False: it is of too long a frame. */
static bool end_head(struct shm_link *l, struct transfer *t)
{
    uint64_t head;
    uint32_t len;

    memcpy(&head, l->write_head, sizeof head);
    l->write_left = le64toh(head);
    if (l->write_left > SHM_FRAME_MAX)
        return false;
    len = htole32((uint32_t)l->write_left);
    shm_ring_put(&l->outbox, t->moved, &len, sizeof len);
    t->moved += SHM_RING_HEAD;
    l->write_head_got = 0;
    return true;
}

ssize_t shm_link_write(struct shm_link *l, const struct iovec *iov, int n)
{
    struct transfer t = { iov, iov + n, &l->outbox, l->inbox_token, &l->owes_inbox };
    bool bad = false;
    size_t left, len;

    while ((left = transfer_space(&t)) > 0) {
        /* A head is taken only with a place for it: nothing that was taken may
         * wait here, because the caller will not come back for it. */
        if (!transfer_can_move(l, &t, l->write_left, &bad))
            break;
        if (l->write_left) {
            len = smallest_of(left, smallest_of(l->write_left, t.room - t.moved, CHUNK), CHUNK);
            shm_ring_put(&l->outbox, t.moved, transfer_place(&t), len);
            l->write_left -= len;
            t.moved += len;
            transfer_moved(&t, len);
            continue;
        }
        len = smallest_of(left, SHM_FRAME_HEAD - l->write_head_got, SHM_FRAME_HEAD);
        memcpy(l->write_head + l->write_head_got, transfer_place(&t), len);
        l->write_head_got += (unsigned)len;
        transfer_moved(&t, len);
        if (l->write_head_got == SHM_FRAME_HEAD && !end_head(l, &t))
            return -EMSGSIZE;
    }
    transfer_tell(l, &t);
    if (!t.stream)
        return bad ? -EPROTO : -EAGAIN;
    return t.stream;
}

/* ---- looking ---- */

bool shm_link_readable(const struct shm_link *l)
{
    uint64_t n;

    /* A marker that cannot be is found out by the next read. */
    return l->read_head_at < SHM_FRAME_HEAD || !shm_ring_available(&l->inbox, &n) ||
           n >= (l->read_left ? 1 : SHM_RING_HEAD);
}

bool shm_link_writable(const struct shm_link *l)
{
    uint64_t n;

    return !shm_ring_available(&l->outbox, &n) || n >= SHM_RING_HEAD;
}

static uint64_t link_marker(const struct shm_ring *r, enum shm_role role)
{
    return atomic_load_explicit(&r->header->marker[role], memory_order_acquire);
}

uint64_t shm_link_written(const struct shm_link *l)
{
    return link_marker(&l->inbox, SHM_PRODUCER);
}

uint64_t shm_link_taken(const struct shm_link *l)
{
    return link_marker(&l->outbox, SHM_CONSUMER);
}

bool shm_link_is_unread(const struct shm_link *l)
{
    return shm_link_written(l) != link_marker(&l->inbox, SHM_CONSUMER);
}

bool shm_link_owes(const struct shm_link *l)
{
    return atomic_load_explicit(&l->owes_inbox, memory_order_relaxed) ||
           atomic_load_explicit(&l->owes_outbox, memory_order_relaxed);
}

uint64_t shm_link_unread(const struct shm_link *l)
{
    uint64_t n = link_marker(&l->outbox, SHM_PRODUCER) - link_marker(&l->outbox, SHM_CONSUMER);

    return n <= l->outbox.size ? n : 0;
}

void shm_link_tend(struct shm_link *l)
{
    shm_reactor_empty(&l->reactor);
    if (!shm_link_owes(l))
        return;
    push_owed(l, l->inbox_token, &l->owes_inbox);
    push_owed(l, l->outbox_token, &l->owes_outbox);
}
