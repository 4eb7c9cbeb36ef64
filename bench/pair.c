#include "pair.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
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
    exit(1);
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

void pair_sockets(int fd[2], bool nonblocking)
{
    struct sockaddr_in a = { .sin_family = AF_INET };
    socklen_t n = sizeof a;
    int one = 1;
    int l = socket(AF_INET, SOCK_STREAM, 0);

    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (l < 0 || bind(l, (struct sockaddr *)&a, n) || listen(l, 1) ||
        getsockname(l, (struct sockaddr *)&a, &n))
        pair_die("cannot listen on loopback");
    fd[0] = socket(AF_INET, SOCK_STREAM, 0);
    if (fd[0] < 0 || connect(fd[0], (struct sockaddr *)&a, n))
        pair_die("cannot connect to loopback");
    fd[1] = accept(l, NULL, NULL);
    if (fd[1] < 0)
        pair_die("accept");
    close(l);
    for (int i = 0; i < 2; i++) {
        setsockopt(fd[i], IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        if (nonblocking)
            fcntl(fd[i], F_SETFL, O_NONBLOCK);
    }
}

static bool quick(void)
{
    const char *q = getenv("BENCH_QUICK");

    return q && strcmp(q, "0") != 0;
}

size_t pair_calls(const char *mode)
{
    if (!strcmp(mode, "rate"))
        return quick() ? 20000 : 200000;
    if (!strcmp(mode, "bandwidth"))
        return quick() ? 6 : 24;
    return quick() ? 2000 : 20000;
}

size_t pair_warm(const char *mode)
{
    return !strcmp(mode, "bandwidth") ? 3 : pair_calls(mode) / 10;
}

static unsigned char pattern(size_t i)
{
    return (unsigned char)(i * 131 + (i >> 12) + 7);
}

void pair_fill(unsigned char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        p[i] = pattern(i);
}

bool pair_check(const unsigned char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (p[i] != pattern(i))
            return false;
    return true;
}

static uint64_t cpu_ns_of(int who)
{
    struct rusage u;

    getrusage(who, &u);
    return ((uint64_t)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000u +
            (uint64_t)(u.ru_utime.tv_usec + u.ru_stime.tv_usec)) *
           1000u;
}

uint64_t pair_cpu_ns(void)
{
    return cpu_ns_of(RUSAGE_SELF);
}

uint64_t pair_children_cpu_ns(void)
{
    return cpu_ns_of(RUSAGE_CHILDREN);
}

void pair_print(const struct pair_result *r, struct samples *s)
{
    double seconds = (double)r->wall_ns / 1e9;

    printf("{\"peer\": \"%s\", \"mode\": \"%s\", \"progress\": \"%s\", \"size_bytes\": %zu, "
           "\"inflight\": %zu, \"calls\": %zu",
           r->peer, r->mode, r->progress, r->size_bytes, r->inflight, r->calls);
    if (s && s->n)
        printf(", \"p50_us\": %.3f, \"p99_us\": %.3f", samples_us(s, 0.5), samples_us(s, 0.99));
    if (s && s->n && !strcmp(r->mode, "bandwidth"))
        printf(", \"gib_per_s\": %.3f",
               (double)r->size_bytes / (1u << 30) / (samples_us(s, 0.5) / 1e6));
    if (seconds > 0)
        printf(", \"calls_per_s\": %.1f", (double)r->calls / seconds);
    if (r->cpu_us_per_call > 0)
        printf(", \"cpu_us_per_call\": %.3f", r->cpu_us_per_call);
    if (r->sends_per_message > 0)
        printf(", \"sends_per_message\": %.4f, \"receives_per_message\": %.4f",
               r->sends_per_message, r->receives_per_message);
    printf("}\n");
    fflush(stdout);
}
