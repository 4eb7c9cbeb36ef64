/* SPDX-License-Identifier: Apache-2.0 */
/* memory.c - shared memory that both processes poll: a word on its own cache line in
 * each direction, and rings of 64-byte entries. */
#include "raw.h"

#include <stdatomic.h>
#include <string.h>

#define SLOTS 256u /* a power of two, and more than are in flight */
#define END UINT64_MAX

struct ring {
    _Alignas(128) _Atomic uint64_t head; /* entries written */
    _Alignas(128) unsigned char slot[SLOTS][PAIR_SMALL];
};

struct rings {
    struct ring there, back;
};

static size_t bytes(size_t size)
{
    (void)size;
    return sizeof(struct rings);
}

/* Waits until more than `seen` entries were written; returns their number, or END. */
static uint64_t see(struct ring *r, uint64_t seen)
{
    uint64_t n;

    while ((n = atomic_load_explicit(&r->head, memory_order_acquire)) == seen)
        pair_relax();
    return n;
}

static void publish(struct ring *r, uint64_t n)
{
    atomic_store_explicit(&r->head, n, memory_order_release);
}

/* The message is one word: a lower bound for any message. */
static int serve_words(struct rings *r)
{
    uint64_t n = 0;

    while ((n = see(&r->there, n)) != END)
        publish(&r->back, n);
    return 0;
}

static int serve(struct trial *t)
{
    struct rings *r = t->shared;
    uint64_t done = 0, n;
    unsigned char message[PAIR_SMALL];

    if (!strcmp(t->mode, "latency"))
        return serve_words(r);
    while ((n = see(&r->there, done)) != END)
        for (; done < n; publish(&r->back, ++done)) {
            memcpy(message, r->there.slot[done % SLOTS], sizeof message);
            memcpy(r->back.slot[done % SLOTS], message, sizeof message);
        }
    return 0;
}

static void start(struct trial *t)
{
    (void)t;
}

static void call(struct trial *t)
{
    struct rings *r = t->shared;
    uint64_t n = atomic_load_explicit(&r->there.head, memory_order_relaxed);

    publish(&r->there, n + 1);
    see(&r->back, n);
}

static void flood(struct trial *t, size_t calls)
{
    struct rings *r = t->shared;
    uint64_t got = atomic_load_explicit(&r->there.head, memory_order_relaxed), sent = got;
    uint64_t end = got + calls;
    unsigned char message[PAIR_SMALL] = { 1 };

    while (got < end) {
        for (; sent < end && sent - got < PAIR_INFLIGHT; publish(&r->there, ++sent))
            memcpy(r->there.slot[sent % SLOTS], message, sizeof message);
        for (uint64_t n = see(&r->back, got); got < n; got++) {
            memcpy(message, r->back.slot[got % SLOTS], sizeof message);
            atomic_signal_fence(memory_order_seq_cst); /* keeps the measured copy */
        }
    }
}

static void end(struct trial *t)
{
    publish(&((struct rings *)t->shared)->there, END);
}

const struct way raw_spin = { .peer = "raw",
                              .via = "spin",
                              .modes = "latency rate",
                              .progress = "busy",
                              .shared_bytes = bytes,
                              .serve = serve,
                              .open = start,
                              .call = call,
                              .flood = flood,
                              .close = end };
