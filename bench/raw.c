/* raw.c - what TCP over loopback allows, between two pinned processes.
 *
 *     raw latency|rate|bandwidth busy|sleep
 *
 * latency    64 bytes there and 64 back
 * rate       64 of these in flight; each side writes and reads as many at once
 *            as there are
 * bandwidth  64 MiB into a buffer that is used again, then 64 bytes back
 *
 * busy: the sockets do not block and both sides spin; sleep: both block. */
#include "pair.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct job {
    int fd;
    size_t calls; /* the untimed ones included */
};

/* Spinning costs nothing to a blocking socket: it never says EAGAIN. */
static bool again(ssize_t k)
{
    return k < 0 && (errno == EAGAIN || errno == EINTR);
}

static void read_all(int fd, void *p, size_t n)
{
    for (size_t got = 0; got < n;) {
        ssize_t k = read(fd, (char *)p + got, n - got);

        if (k > 0)
            got += (size_t)k;
        else if (!again(k))
            pair_die("read");
    }
}

static void write_all(int fd, const void *p, size_t n)
{
    for (size_t put = 0; put < n;) {
        ssize_t k = write(fd, (const char *)p + put, n - put);

        if (k > 0)
            put += (size_t)k;
        else if (!again(k))
            pair_die("write");
    }
}

static int latency_callee(void *arg)
{
    const struct job *j = arg;
    char b[PAIR_SMALL];

    for (size_t i = 0; i < j->calls; i++) {
        read_all(j->fd, b, sizeof b);
        write_all(j->fd, b, sizeof b);
    }
    return 0;
}

static void latency(int fd, struct samples *s, size_t warm, size_t calls)
{
    char b[PAIR_SMALL] = { 1 };

    for (size_t i = 0; i < warm + calls; i++) {
        uint64_t t = samples_now_ns();

        write_all(fd, b, sizeof b);
        read_all(fd, b, sizeof b);
        if (i >= warm)
            samples_add(s, samples_now_ns() - t);
    }
}

static int rate_callee(void *arg)
{
    const struct job *j = arg;
    char b[2 * PAIR_INFLIGHT * PAIR_SMALL];
    size_t have = 0;

    for (size_t done = 0; done < j->calls;) {
        ssize_t k = read(j->fd, b + have, sizeof b - have);
        size_t whole;

        if (k <= 0) {
            if (!again(k))
                pair_die("read");
            continue;
        }
        have += (size_t)k;
        whole = have / PAIR_SMALL;
        write_all(j->fd, b, whole * PAIR_SMALL);
        have -= whole * PAIR_SMALL;
        memmove(b, b + whole * PAIR_SMALL, have);
        done += whole;
    }
    return 0;
}

static void rate(int fd, size_t calls)
{
    char out[PAIR_INFLIGHT * PAIR_SMALL] = { 1 }, in[2 * PAIR_INFLIGHT * PAIR_SMALL];
    size_t sent = 0, got = 0, bytes = 0;

    while (got < calls) {
        size_t room = PAIR_INFLIGHT - (sent - got);
        ssize_t k;

        if (room > calls - sent)
            room = calls - sent;
        if (room) {
            write_all(fd, out, room * PAIR_SMALL);
            sent += room;
        }
        k = read(fd, in, sizeof in);
        if (k <= 0) {
            if (!again(k))
                pair_die("read");
            continue;
        }
        bytes += (size_t)k;
        got = bytes / PAIR_SMALL;
    }
}

static int bandwidth_callee(void *arg)
{
    const struct job *j = arg;
    unsigned char *into = malloc(PAIR_LARGE);
    char ack[PAIR_SMALL] = { 1 };

    if (!into)
        pair_die("malloc");
    memset(into, 1, PAIR_LARGE);
    for (size_t i = 0; i < j->calls; i++) {
        read_all(j->fd, into, PAIR_LARGE);
        if (i == 0 && !pair_check(into, PAIR_LARGE)) {
            fprintf(stderr, "bench: raw: the bytes arrived changed\n");
            return 1;
        }
        write_all(j->fd, ack, sizeof ack);
    }
    free(into);
    return 0;
}

static void bandwidth(int fd, struct samples *s, size_t warm, size_t calls)
{
    unsigned char *from = malloc(PAIR_LARGE);
    char ack[PAIR_SMALL];

    if (!from)
        pair_die("malloc");
    pair_fill(from, PAIR_LARGE);
    for (size_t i = 0; i < warm + calls; i++) {
        uint64_t t = samples_now_ns();

        write_all(fd, from, PAIR_LARGE);
        read_all(fd, ack, sizeof ack);
        if (i >= warm)
            samples_add(s, samples_now_ns() - t);
    }
    free(from);
}

int main(int argc, char **argv)
{
    struct pair_result r = { .peer = "raw", .size_bytes = PAIR_SMALL, .inflight = 1 };
    struct samples s;
    int (*callee)(void *) = latency_callee;
    struct job j;
    size_t warm;
    uint64_t begin, cpu;
    int fd[2];
    pid_t p;

    if (argc != 3 || (strcmp(argv[2], "busy") != 0 && strcmp(argv[2], "sleep") != 0)) {
        fprintf(stderr, "usage: raw latency|rate|bandwidth busy|sleep\n");
        return 2;
    }
    r.mode = argv[1];
    r.progress = argv[2];
    if (!strcmp(r.mode, "rate")) {
        callee = rate_callee;
        r.inflight = PAIR_INFLIGHT;
    } else if (!strcmp(r.mode, "bandwidth")) {
        callee = bandwidth_callee;
        r.size_bytes = PAIR_LARGE;
    } else if (strcmp(r.mode, "latency") != 0) {
        fprintf(stderr, "bench: no mode '%s'\n", r.mode);
        return 2;
    }
    r.calls = pair_calls(r.mode);
    warm = pair_warm(r.mode);
    if (samples_init(&s, r.calls))
        pair_die("calloc");
    pair_sockets(fd, !strcmp(r.progress, "busy"));
    j = (struct job){ fd[1], warm + r.calls };
    p = pair_fork(callee, &j);
    if (callee == rate_callee)
        rate(fd[0], warm);
    cpu = pair_cpu_ns();
    begin = samples_now_ns();
    if (callee == rate_callee)
        rate(fd[0], r.calls);
    else if (callee == bandwidth_callee)
        bandwidth(fd[0], &s, warm, r.calls);
    else
        latency(fd[0], &s, warm, r.calls);
    /* Where each call is timed by itself, the untimed ones ran in between. */
    if (callee == rate_callee)
        r.wall_ns = samples_now_ns() - begin;
    cpu = pair_cpu_ns() - cpu;
    if (!pair_join(p))
        return 1;
    r.cpu_us_per_call = (double)(cpu + pair_children_cpu_ns()) / 1e3 / (double)(warm + r.calls);
    pair_print(&r, &s);
    samples_finish(&s);
    return 0;
}
