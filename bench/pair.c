/* SPDX-License-Identifier: Apache-2.0 */
#include "pair.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

void pair_die(const char *fmt, ...)
{
    int e = errno;
    va_list ap;

    va_start(ap, fmt);
    fputs("bench: ", stderr);
    vfprintf(stderr, fmt, ap);
    fprintf(stderr, " (%s)\n", strerror(e));
    va_end(ap);
    _exit(1); /* exit handlers of the peers' libraries may hang */
}

void pair_pin(enum pair_side side)
{
    const char *text = getenv("BENCH_CPUS");
    int cpu[2];
    cpu_set_t set;

    if (!text || !strcmp(text, "none"))
        return;
    if (sscanf(text, "%d,%d", &cpu[0], &cpu[1]) != 2 || cpu[side] < 0 || cpu[side] >= CPU_SETSIZE) {
        errno = EINVAL;
        pair_die("BENCH_CPUS is '%s', expected two numbers as in '0,1', or 'none'", text);
    }
    CPU_ZERO(&set);
    CPU_SET((size_t)cpu[side], &set);
    if (sched_setaffinity(0, sizeof set, &set))
        pair_die("cannot pin to cpu %d", cpu[side]);
}

/* The callee's network, from which only a link leads to the caller's. */
static void pair_move_away(void)
{
    const char *net = getenv("BENCH_CALLEE_NET");
    int fd = net ? open(net, O_RDONLY | O_CLOEXEC) : -1;

    if (net && (fd < 0 || setns(fd, CLONE_NEWNET)))
        pair_die("cannot enter the network %s", net);
    if (fd >= 0)
        close(fd);
}

pid_t pair_fork(int (*fn)(void *arg), void *arg)
{
    pid_t p;

    fflush(NULL);
    p = fork();
    if (p < 0)
        pair_die("fork");
    if (p == 0) {
        int rc;

        prctl(PR_SET_PDEATHSIG, SIGKILL);
        pair_move_away();
        pair_pin(PAIR_CALLEE);
        rc = fn(arg);
        fflush(NULL);
        _exit(rc);
    }
    pair_pin(PAIR_CALLER);
    return p;
}

bool pair_join(pid_t callee)
{
    int status;

    if (waitpid(callee, &status, 0) != callee)
        pair_die("waitpid");
    if (status == 0)
        return true;
    fprintf(stderr, "bench: the callee failed (wait status %d)\n", status);
    return false;
}

bool pair_quick(void)
{
    const char *q = getenv("BENCH_QUICK");

    return q && strcmp(q, "0") != 0;
}

uint64_t pair_cpu_ns(pid_t pid)
{
    struct timespec t = { 0 };
    clockid_t clock;

    if (clock_getcpuclockid(pid, &clock) || clock_gettime(clock, &t))
        pair_die("cannot read the CPU time of process %d", (int)pid);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void *pair_memory(size_t n, bool shared)
{
    int flags = MAP_ANONYMOUS | (shared ? MAP_SHARED : MAP_PRIVATE);
    void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, flags, -1, 0);

    if (p == MAP_FAILED)
        pair_die("no memory for %zu bytes", n);
    memset(p, 0, n);
    return p;
}

static unsigned char pattern(size_t i)
{
    return (unsigned char)(i * 131 + (i >> 12) + 7);
}

void pair_fill(void *p, size_t n)
{
    unsigned char *b = p;

    for (size_t i = 0; i < n; i++)
        b[i] = pattern(i);
}

bool pair_check(const void *p, size_t n)
{
    const unsigned char *b = p;

    for (size_t i = 0; i < n; i++)
        if (b[i] != pattern(i))
            return false;
    return true;
}

void pair_expect(const char *peer, const void *p, size_t n)
{
    if (pair_check(p, n))
        return;
    errno = EPROTO;
    pair_die("%s: the received bytes are corrupt", peer);
}

bool pair_read(int fd, void *p, size_t n)
{
    for (size_t got = 0; got < n;) {
        ssize_t k = read(fd, (char *)p + got, n - got);

        if (k > 0)
            got += (size_t)k;
        else if (k == 0 && got == 0)
            return false;
        else if (k == 0 || (errno != EAGAIN && errno != EINTR))
            pair_die("read");
    }
    return true;
}

void pair_write(int fd, const void *p, size_t n)
{
    for (size_t put = 0; put < n;) {
        ssize_t k = write(fd, (const char *)p + put, n - put);

        if (k > 0)
            put += (size_t)k;
        else if (errno != EAGAIN && errno != EINTR)
            pair_die("write");
    }
}
