/* SPDX-License-Identifier: Apache-2.0 */
/* copy.c - large messages between two spinning processes: one copy into shared
 * memory; two overlapping copies through a ring; and one copy by the kernel out of
 * the other process's private memory. */
#include "raw.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/uio.h>

#define CHUNK ((size_t)128 << 10)
#define CHUNKS 8u
#define END UINT64_MAX

/* Words that both processes spin on; the data follows. */
struct board {
    _Alignas(128) _Atomic uint64_t there; /* messages, or chunks, written */
    _Alignas(128) _Atomic uint64_t back;  /* of these, read */
    _Alignas(4096) unsigned char data[];
};

static size_t bytes_copy(size_t size)
{
    return sizeof(struct board) + size;
}

static size_t bytes_ring(size_t size)
{
    (void)size;
    return sizeof(struct board) + CHUNK * CHUNKS;
}

static size_t bytes_board(size_t size)
{
    (void)size;
    return sizeof(struct board);
}

static void await(_Atomic uint64_t *word, uint64_t least)
{
    while (atomic_load_explicit(word, memory_order_acquire) < least)
        pair_relax();
}

/* The caller's private memory; the callee's copy of it is copied on write. */
static void prepare(struct trial *t)
{
    t->state = pair_memory(t->size, false);
    pair_fill(t->state, t->size);
}

static void start(struct trial *t)
{
    (void)t;
}

static void end(struct trial *t)
{
    atomic_store(&((struct board *)t->shared)->there, END);
}

/* ---- one copy ----------------------------------------------------------------------- */

static int copy_serve(struct trial *t)
{
    struct board *b = t->shared;

    for (uint64_t i = 1;; i++) {
        await(&b->there, i);
        if (atomic_load(&b->there) == END)
            return 0;
        if (i == 1)
            pair_expect(t->peer, b->data, t->size);
        atomic_store_explicit(&b->back, i, memory_order_release);
    }
}

static void copy_call(struct trial *t)
{
    struct board *b = t->shared;
    uint64_t i = atomic_load(&b->back) + 1;

    memcpy(b->data, t->state, t->size);
    atomic_store_explicit(&b->there, i, memory_order_release);
    await(&b->back, i);
}

/* ---- two copies through a ring -------------------------------------------------------- */

static size_t chunk_bytes(const struct trial *t, size_t at)
{
    return t->size - at < CHUNK ? t->size - at : CHUNK;
}

static int ring_serve(struct trial *t)
{
    struct board *b = t->shared;
    unsigned char *into = pair_memory(t->size, false);
    uint64_t n = 0;

    for (bool first = true;; first = false) {
        for (size_t at = 0; at < t->size; at += CHUNK, n++) {
            await(&b->there, n + 1);
            if (atomic_load(&b->there) == END)
                return 0;
            memcpy(into + at, b->data + n % CHUNKS * CHUNK, chunk_bytes(t, at));
            atomic_store_explicit(&b->back, n + 1, memory_order_release);
        }
        if (first)
            pair_expect(t->peer, into, t->size);
    }
}

static void ring_call(struct trial *t)
{
    struct board *b = t->shared;
    const unsigned char *from = t->state;
    uint64_t n = atomic_load_explicit(&b->there, memory_order_relaxed);

    for (size_t at = 0; at < t->size; at += CHUNK) {
        await(&b->back, n < CHUNKS ? 0 : n - CHUNKS + 1);
        memcpy(b->data + n % CHUNKS * CHUNK, from + at, chunk_bytes(t, at));
        atomic_store_explicit(&b->there, ++n, memory_order_release);
    }
    await(&b->back, n);
}

/* ---- the kernel copies ------------------------------------------------------------------ */

static int readv_serve(struct trial *t)
{
    struct board *b = t->shared;
    unsigned char *into = pair_memory(t->size, false);

    for (uint64_t i = 1;; i++) {
        await(&b->there, i);
        if (atomic_load(&b->there) == END)
            return 0;
        for (size_t at = 0; at < t->size;) {
            struct iovec to = { into + at, t->size - at };
            struct iovec from = { (char *)t->state + at, t->size - at };
            ssize_t k = process_vm_readv(t->caller, &to, 1, &from, 1, 0);

            if (k <= 0)
                pair_die("process_vm_readv");
            at += (size_t)k;
        }
        if (i == 1)
            pair_expect(t->peer, into, t->size);
        atomic_store_explicit(&b->back, i, memory_order_release);
    }
}

static void readv_call(struct trial *t)
{
    struct board *b = t->shared;
    uint64_t i = atomic_load(&b->back) + 1;

    atomic_store_explicit(&b->there, i, memory_order_release);
    await(&b->back, i);
}

#define COPY_WAY(name, bytes, what)                                                                \
    {                                                                                              \
        .peer = "raw", .via = name, .modes = "bandwidth", .progress = "busy",                      \
        .shared_bytes = bytes, .prepare = prepare, .serve = what##_serve, .open = start,           \
        .call = what##_call, .close = end                                                          \
    }

const struct way raw_copy = COPY_WAY("copy", bytes_copy, copy);
const struct way raw_ring = COPY_WAY("ring", bytes_ring, ring);
const struct way raw_readv = COPY_WAY("readv", bytes_board, readv);
