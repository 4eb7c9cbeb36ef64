/* SPDX-License-Identifier: Apache-2.0 */
/* ring.h - a stream of bytes in memory that two processes share.
 *
 * One side writes, the other reads. The cursors count bytes and never wrap; the place
 * of a byte is its number modulo the size. Neither side believes the memory: each
 * keeps its own cursor to itself, reads the other's cursor once, checks that value and
 * only then stores it, so that a hostile peer can break this stream and nothing else.
 *
 * A side that is about to sleep sets a word of its own and then polls once more; the
 * other checks that word after it has moved its cursor, and wakes only a sleeping side. Both have a
 * fence in between, so one of the two sees the other. */
#ifndef TENSORPIPE_RING_H
#define TENSORPIPE_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define RING_LINE 128 /* what one processor fetches from another at once, at most */

/* In shared memory, byte for byte. A cursor, and how the other side sleeps that
 * waits for it to move (RING_FUTEX, RING_BELL; the waker clears it), share a
 * line: the side that moves the cursor checks the other word next. */
struct ring_words {
    _Alignas(RING_LINE) _Atomic uint64_t head; /* the writer's: bytes written */
    _Atomic uint32_t reader_sleeps;
    _Alignas(RING_LINE) _Atomic uint64_t tail; /* the reader's: bytes read */
    _Atomic uint32_t writer_sleeps;
};

#define RING_FUTEX 1u
#define RING_BELL 2u

#define RING_SIZE_MIN 4096u /* and a power of two */
#define RING_SIZE_MAX (64u << 20)

static inline bool ring_size_valid(uint64_t size)
{
    return size >= RING_SIZE_MIN && size <= RING_SIZE_MAX && (size & (size - 1)) == 0;
}

struct ring_writer {
    struct ring_words *words; /* shared */
    unsigned char *data;      /* shared, `size` bytes */
    uint64_t size;
    uint64_t head; /* of these bytes those before words->head are published */
    uint64_t tail; /* the reader's, as it was last seen; at most `size` behind head */
};

struct ring_reader {
    struct ring_words *words;
    const unsigned char *data;
    uint64_t size;
    uint64_t tail; /* the room before it is released by ring_release */
    uint64_t released;
    uint64_t head;      /* the writer's, as it was last seen; at most `size` before tail */
    uint64_t unchecked; /* bytes released since the last check whether the writer sleeps */
};

/* Copies as many bytes as fit. Returns their number; -1 when the words are malformed.
 * The reader does not see them before ring_publish. */
long ring_stage(struct ring_writer *w, const void *data, size_t len);
static inline void ring_publish(struct ring_writer *w)
{
    atomic_store_explicit(&w->words->head, w->head, memory_order_release);
}
/* Returns true if no room is left; reads the cursor again. */
bool ring_is_full(struct ring_writer *w);

/* Copies available bytes, up to `len`, the first of `whole`. Returns their number; -1 when
 * the words are malformed. Their room is not released before ring_release. */
long ring_take(struct ring_reader *r, void *to, size_t len, size_t whole);
static inline void ring_release(struct ring_reader *r)
{
    r->unchecked += r->tail - r->released;
    r->released = r->tail;
    atomic_store_explicit(&r->words->tail, r->tail, memory_order_release);
}
/* How far the writer is: there is something to read when that is not r->tail. */
static inline uint64_t ring_head(const struct ring_reader *r)
{
    return atomic_load_explicit(&r->words->head, memory_order_acquire);
}

/* Announces a sleep and how to wake; the caller polls again before it sleeps, and clears
 * the word if it does not sleep after all. */
void ring_sleep(_Atomic uint32_t *word, uint32_t how);
void ring_awake(_Atomic uint32_t *word, uint32_t how);

/* After ring_publish: how to wake the reader; 0: it does not sleep. */
static inline uint32_t ring_reader_to_wake(struct ring_writer *w)
{
    atomic_thread_fence(memory_order_seq_cst);
    if (!atomic_load_explicit(&w->words->reader_sleeps, memory_order_relaxed))
        return 0;
    return atomic_exchange(&w->words->reader_sleeps, 0);
}

/* Returns true if the reader must check whether the writer sleeps: a writer sleeps only while the
 * ring is full from end to end, and is to be woken for some work. So a reader checks after half a
 * ring, and when it finds the ring empty. */
static inline bool ring_should_look(const struct ring_reader *r, bool empty)
{
    return r->unchecked > r->size / 2 || (empty && r->unchecked);
}
/* After ring_release: how to wake the writer; 0: it does not sleep. */
static inline uint32_t ring_writer_to_wake(struct ring_reader *r)
{
    r->unchecked = 0;
    atomic_thread_fence(memory_order_seq_cst);
    if (!atomic_load_explicit(&r->words->writer_sleeps, memory_order_relaxed))
        return 0;
    return atomic_exchange(&r->words->writer_sleeps, 0);
}

/* copy.c: copying a part of something large.
 *
 * A copy larger than the caches is faster with stores that bypass them: the destination's lines are
 * not read first, and the lines prefetched for the next part stay cached. memcpy cannot detect this
 * case because it is given one part at a time. */

/* From this length of the whole on it pays (docs/internals/performance.md). */
#define COPY_PAST_CACHES_MIN ((size_t)16 << 20)

void copy_past_caches(void *restrict to, const void *restrict from, size_t len);

/* A part of `whole` bytes. */
static inline void copy_part(void *restrict to, const void *restrict from, size_t len, size_t whole)
{
    if (whole >= COPY_PAST_CACHES_MIN)
        copy_past_caches(to, from, len);
    else
        memcpy(to, from, len);
}

/* ring_setup.c: how two processes set up a shared pair of rings.
 *
 * The caller makes the memory and sends its descriptor over a Unix socket; the listener checks and
 * maps that memory, and answers with one byte: taken, or why not. From then on the socket carries
 * bells, and closes when the other end is gone. */

/* One end of a connection. */
struct ring_end {
    void *memory; /* NULL: there is none yet */
    size_t len;
    struct ring_writer out;
    struct ring_reader in;
};

/* The listener's answer to the memory. */
enum ring_answer { RING_TAKEN, RING_NO_DESCRIPTOR, RING_NO_MEMORY, RING_MALFORMED };

/* Bytes of the memory for two rings of `size` bytes. */
size_t ring_setup_bytes(uint64_t size);

/* The caller sends the memory. Returns 0 or an errno.
 *
 * size     of each ring */
int ring_setup_call(int sock, uint64_t size, struct ring_end *ret);
/* The caller reads the answer to it. Returns 0; EAGAIN while there is none; another errno
 * with the reason in *ret_why. */
int ring_setup_answered(int sock, const char **ret_why);

/* The listener takes the memory, and answers. Returns 0; EAGAIN while nothing has arrived; another
 * errno with the reason in *ret_why. */
int ring_setup_take(int sock, struct ring_end *ret, const char **ret_why);

/* NULL memory is fine. */
void ring_end_close(struct ring_end *e);

#endif
