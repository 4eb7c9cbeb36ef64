/* SPDX-License-Identifier: Apache-2.0 */
/* words.h - a peer that changes a word of shared memory just before it is read.
 *
 * A test that is compiled with this header in front of each file (-include) has every
 * atomic load pass through words_before_load, and every mapping of a descriptor lie
 * between two pages that nothing may touch. So words_try can run a scenario again for
 * each load in turn, with the word changed before that load, and an access outside of
 * the mapping ends the run with SIGSEGV. A second thread
 * that changes words by luck finds far less, and never the same twice. */
#ifndef TENREC_TESTS_WORDS_H
#define TENREC_TESTS_WORDS_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

void words_before_load(volatile const void *word, size_t size);
void *words_map(void *at, size_t len, int protection, int flags, int fd, long offset);
int words_unmap(void *at, size_t len);

/* Runs `scenario` once as it is, and then for every load and every change. Fails the
 * test if a run touches memory outside of a mapping. Returns the number of loads.
 *
 * size     of the ring: some changes are about as large */
size_t words_try(void (*scenario)(void), uint64_t size);

#ifdef __clang__
#define WORDS_LOAD(p, order) __c11_atomic_load(p, order)
#else
#define WORDS_LOAD(p, order)                                                                       \
    __extension__({                                                                                \
        __typeof__((void)0, *(p)) words_value_;                                                    \
        __atomic_load((p), &words_value_, (order));                                                \
        words_value_;                                                                              \
    })
#endif

#ifndef WORDS_PLAIN
#undef atomic_load
#undef atomic_load_explicit
#define atomic_load_explicit(p, order)                                                             \
    (words_before_load((p), sizeof *(p)), WORDS_LOAD((p), (order)))
#define atomic_load(p) atomic_load_explicit((p), memory_order_seq_cst)
#define mmap words_map
#define munmap words_unmap
#endif

#endif
