/* SPDX-License-Identifier: Apache-2.0 */
/* pair.h - a caller and a callee process on two processors: the base of all
 * benchmark programs.
 *
 * Environment: BENCH_CPUS="0,1" pins the caller to cpu 0 and the
 * callee to cpu 1 ("none": no pinning), BENCH_QUICK=1 makes short runs, and
 * BENCH_CALLEE_NET=/run/netns/NAME puts the callee into that network. */
#ifndef TENREC_BENCH_PAIR_H
#define TENREC_BENCH_PAIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PAIR_SMALL 64u                /* bytes of a small message, and of every answer */
#define PAIR_LARGE ((size_t)64 << 20) /* bytes of a large message */
#define PAIR_INFLIGHT 64u

enum pair_side { PAIR_CALLER, PAIR_CALLEE };

/* Pins the calling thread, and the threads that it makes later. */
void pair_pin(enum pair_side side);

/* Forks the callee, which runs fn(arg) pinned and exits with its result; it
 * dies with the caller. Pins the caller too. */
pid_t pair_fork(int (*fn)(void *arg), void *arg);

/* Waits for the callee; returns false after a line on stderr if it failed. */
bool pair_join(pid_t callee);

/* Returns true for short runs. */
bool pair_quick(void);

/* CPU time of a process so far, in nanoseconds. */
uint64_t pair_cpu_ns(pid_t pid);

/* Maps anonymous memory with all pages present, private or shared with children
 * forked later. Ends the program when out of memory. */
void *pair_memory(size_t n, bool shared);

/* A pattern that also reveals displaced pages. pair_expect ends the program with a
 * line that names the peer if the bytes differ. */
void pair_fill(void *p, size_t n);
bool pair_check(const void *p, size_t n);
void pair_expect(const char *peer, const void *p, size_t n);

/* Transfer all bytes, spinning on a non-blocking descriptor. pair_read returns false
 * if the other end was closed first. */
bool pair_read(int fd, void *p, size_t n);
void pair_write(int fd, const void *p, size_t n);

/* For loops that spin. */
static inline void pair_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Prints one line with errno and ends the program. */
#if defined(__GNUC__)
__attribute__((noreturn, format(printf, 1, 2)))
#endif
void pair_die(const char *fmt, ...);

#ifdef __cplusplus
}
#endif

#endif
