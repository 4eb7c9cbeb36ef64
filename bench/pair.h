/* pair.h - what the benchmark programs share: two pinned processes, and one
 * line of JSON per figure.
 *
 * The environment says how: BENCH_CPUS="0,1" pins the caller to cpu 0 and the
 * callee to cpu 1 ("none": no pinning), BENCH_QUICK=1 makes short runs. */
#ifndef TENREC_BENCH_PAIR_H
#define TENREC_BENCH_PAIR_H

#include "samples.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PAIR_SMALL 64u                /* bytes of a small message */
#define PAIR_LARGE ((size_t)64 << 20) /* bytes of a large one */
#define PAIR_INFLIGHT 64u

enum pair_side { PAIR_CALLER, PAIR_CALLEE };

/* One figure. Zero means: does not apply, and is not printed. */
struct pair_result {
    const char *peer;     /* "raw", "tenrec", ... */
    const char *mode;     /* "latency", "rate", "bandwidth" */
    const char *progress; /* "busy" or "sleep" */
    size_t size_bytes, inflight, calls;
    uint64_t wall_ns;
    double cpu_us_per_call; /* of both processes together */
    double sends_per_message, receives_per_message;
};

/* Pins the calling thread, and with it the threads it makes later. */
void pair_pin(enum pair_side side);

/* Forks the callee, which runs fn(arg) pinned and exits with its result; it
 * dies with the caller. Pins the caller too. */
pid_t pair_fork(int (*fn)(void *arg), void *arg);

/* Waits for the callee; false (and a line on stderr) when it failed. */
bool pair_join(pid_t callee);

/* Two connected TCP sockets over loopback, without Nagle; ends the program on
 * failure. */
void pair_sockets(int fd[2], bool nonblocking);

/* Calls to time, and to make before that untimed. */
size_t pair_calls(const char *mode);
size_t pair_warm(const char *mode);

/* A pattern that shows displaced pages too. */
void pair_fill(unsigned char *p, size_t n);
bool pair_check(const unsigned char *p, size_t n);

/* CPU time used by this process, and by its children that were joined, in
 * nanoseconds. */
uint64_t pair_cpu_ns(void);
uint64_t pair_children_cpu_ns(void);

void pair_print(const struct pair_result *r, struct samples *s);

/* Prints one line with errno and ends the program. */
#if defined(__GNUC__)
__attribute__((noreturn, format(printf, 1, 2)))
#endif
void pair_die(const char *fmt, ...);

#ifdef __cplusplus
}
#endif

#endif
