/* SPDX-License-Identifier: Apache-2.0 */
/* pages.c - the cost of memory in one process: a copy into present pages, into new
 * pages each time, and into new huge pages, each block given back at once (drop) or kept for a
 * while (keep). */
#include "raw.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define HUGE ((size_t)2 << 20)
#define KEEP_MAX 16 /* as Tenrec's work */

struct buffers {
    unsigned char *from, *into;
    void *kept[KEEP_MAX];
    size_t n_kept, kept_len;
};

static void give_back(struct buffers *b)
{
    while (b->n_kept)
        munmap(b->kept[--b->n_kept], b->kept_len);
}

/* The callee is idle. */
static int serve(struct trial *t)
{
    char byte;

    while (pair_read(t->fd, &byte, 1))
        ;
    return 0;
}

static void start(struct trial *t)
{
    struct buffers *b = calloc(1, sizeof *b);

    if (!b)
        pair_die("calloc");
    b->from = pair_memory(t->size, false);
    b->into = pair_memory(t->size, false);
    t->state = b;
}

static void copy(void *to, const void *from, size_t n)
{
    memcpy(to, from, n);
    __asm__ volatile("" ::: "memory"); /* keeps the copy, which is never read */
}

static void call_memcpy(struct trial *t)
{
    const struct buffers *b = t->state;

    copy(b->into, b->from, t->size);
}

static void call_new(struct trial *t, size_t spare, int advice)
{
    struct buffers *b = t->state;
    size_t n = t->size + spare;
    unsigned char *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    unsigned char *at = p;

    if (p == MAP_FAILED)
        pair_die("mmap");
    if (spare) {
        at = (unsigned char *)(((uintptr_t)p + spare - 1) & ~(uintptr_t)(spare - 1));
        madvise(at, t->size, advice);
    }
    copy(at, b->from, t->size);
    b->kept_len = n;
    b->kept[b->n_kept++] = p;
    if (strcmp(t->mode, "keep") != 0)
        give_back(b);
}

static void call_pages(struct trial *t)
{
    call_new(t, 0, 0);
}

static void call_huge(struct trial *t)
{
    call_new(t, HUGE, MADV_HUGEPAGE);
}

static void end(struct trial *t)
{
    give_back(t->state);
}

#define PAGES_WAY(name, mode, fn, most)                                                            \
    {                                                                                              \
        .peer = "raw", .via = name, .modes = mode, .progress = "busy", .serve = serve,             \
        .open = start, .call = fn, .close = end, .most_calls = most                                \
    }

const struct way raw_memcpy = PAGES_WAY("memcpy", "bandwidth", call_memcpy, 0);
const struct way raw_pages = PAGES_WAY("pages", "drop", call_pages, 0);
const struct way raw_huge = PAGES_WAY("huge", "drop", call_huge, 0);
const struct way raw_keep_pages = PAGES_WAY("pages", "keep", call_pages, KEEP_MAX - 1);
const struct way raw_keep_huge = PAGES_WAY("huge", "keep", call_huge, KEEP_MAX - 1);
