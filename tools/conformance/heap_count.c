/* SPDX-License-Identifier: Apache-2.0 */
/* heap_count.c - heap_use() where the allocator does not count, as musl's: the functions below
 * stand before those of the C library in the whole process, count, and call them. */
#include "conformance/heap_use.h"

#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static _Atomic size_t used;

/* Stores the next definition after this one. The linker of musl allocates nothing to find it. */
#define NEXT(name) (*(void **)&next = dlsym(RTLD_NEXT, #name))

static void *heap_counted(void *p)
{
    if (p)
        atomic_fetch_add_explicit(&used, malloc_usable_size(p), memory_order_relaxed);
    return p;
}

size_t heap_use(void)
{
    return atomic_load(&used);
}

static void *heap_take(size_t size)
{
    static __typeof__(&malloc) next;

    if (!next)
        NEXT(malloc);
    return heap_counted(next(size));
}

void *malloc(size_t size)
{
    return heap_take(size);
}

/* Not by musl's, which calls malloc, so that it would count twice. */
void *calloc(size_t n, size_t size)
{
    size_t all;
    void *p;

    if (__builtin_mul_overflow(n, size, &all)) {
        errno = ENOMEM;
        return NULL;
    }
    p = heap_take(all);
    return p ? memset(p, 0, all) : NULL;
}

void *realloc(void *old, size_t size)
{
    static __typeof__(&realloc) next;
    const size_t before = old ? malloc_usable_size(old) : 0;
    void *p;

    if (!next)
        NEXT(realloc);
    p = next(old, size);
    if (p)
        atomic_fetch_sub_explicit(&used, before, memory_order_relaxed);
    return heap_counted(p);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    static __typeof__(&aligned_alloc) next;

    if (!next)
        NEXT(aligned_alloc);
    return heap_counted(next(alignment, size));
}

int posix_memalign(void **ret, size_t alignment, size_t size)
{
    if (alignment < sizeof(void *))
        return EINVAL;
    void *p = aligned_alloc(alignment, size);
    if (!p)
        return errno;
    *ret = p;
    return 0;
}

void *memalign(size_t alignment, size_t size)
{
    return aligned_alloc(alignment, size);
}

void free(void *p)
{
    static __typeof__(&free) next;

    if (!p)
        return;
    if (!next)
        NEXT(free);
    atomic_fetch_sub_explicit(&used, malloc_usable_size(p), memory_order_relaxed);
    next(p);
}
