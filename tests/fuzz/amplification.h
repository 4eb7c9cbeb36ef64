/* SPDX-License-Identifier: Apache-2.0 */
/* amplification.h - asserts that little input makes little memory and little work.
 *
 * The limits of libFuzzer (-rss_limit_mb, -timeout) see what an input makes, not what it makes for
 * its size: 1 KB that makes 34 KB is 1 GB that makes 34. So a target counts what it allocates
 * between fuzz_measure and fuzz_expect_made, and compares that with the length of its input.
 * Included by one file of a target, which links with `amplification_wraps` (meson.build). */
#ifndef TENREC_TESTS_FUZZ_AMPLIFICATION_H
#define TENREC_TESTS_FUZZ_AMPLIFICATION_H

#include "fuzz.h"

#include <stdio.h>

/* Since fuzz_measure. Freed memory counts, too: what is made and freed in turn costs time. */
static struct {
    size_t bytes; /* that were allocated; of a block that grows, each size */
    size_t steps; /* fuzz_step: units of work whose number must not outgrow the input */
} fuzz_made;

static inline void fuzz_measure(void)
{
    fuzz_made.bytes = fuzz_made.steps = 0;
}

/* Called by a function of the target, once for each unit of work; or the target sets the number. */
static inline void fuzz_step(void)
{
    fuzz_made.steps++;
}

/* At most a * len + b. */
struct fuzz_bound {
    size_t a, b;
};

static inline void fuzz_expect_bound(const char *what, size_t made, size_t len,
                                     struct fuzz_bound at_most)
{
    if (made <= at_most.a * len + at_most.b)
        return;
    fprintf(stderr, "amplification: %zu bytes of input make %zu %s, more than %zu * input + %zu\n",
            len, made, what, at_most.a, at_most.b);
    abort();
}

/* `len` bytes of input may have made so many bytes of memory, and so many steps. */
static inline void fuzz_expect_made(size_t len, struct fuzz_bound bytes, struct fuzz_bound steps)
{
    fuzz_expect_bound("bytes of memory", fuzz_made.bytes, len, bytes);
    fuzz_expect_bound("steps", fuzz_made.steps, len, steps);
}

/* ---- the allocator ---- */

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_malloc(size_t size)
{
    fuzz_made.bytes += size;
    return __real_malloc(size);
}

void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size)
{
    fuzz_made.bytes += n * size;
    return __real_calloc(n, size);
}

void *__real_realloc(void *old, size_t size);
void *__wrap_realloc(void *old, size_t size);
void *__wrap_realloc(void *old, size_t size)
{
    fuzz_made.bytes += size;
    return __real_realloc(old, size);
}

void *__real_aligned_alloc(size_t alignment, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
    fuzz_made.bytes += size;
    return __real_aligned_alloc(alignment, size);
}

#endif
