/* SPDX-License-Identifier: Apache-2.0 */
/* peer.c - the libtensorpipe process and raw sockets. */
#include "peer.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define DEADLINE_MS 30000
#define MAX_LINES 256

struct peer {
    pid_t pid;
    int in, out; /* its stdin and stdout */
    size_t len;  /* of `buf` */
    char buf[8192];
    char *lines[MAX_LINES];
    size_t n_lines;
    char *rest; /* of the line that was taken last */
};

static int64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

struct peer *peer_start_program(const char *const argv[])
{
    struct peer *p;
    int in[2], out[2];

    p = calloc(1, sizeof *p);
    assert_non_null(p);
    assert_int_equal(pipe(in), 0);
    assert_int_equal(pipe(out), 0);
    p->pid = fork();
    assert_true(p->pid >= 0);
    if (p->pid == 0) {
        dup2(in[0], 0);
        dup2(out[1], 1);
        for (int fd = 3; fd < 256; fd++)
            close(fd);
        execv(argv[0], (char *const *)(uintptr_t)argv);
        _exit(127);
    }
    close(in[0]);
    close(out[1]);
    p->in = in[1];
    p->out = out[0];
    return p;
}

struct peer *peer_start(bool all)
{
    const char *argv[] = { getenv("TENSORPIPE_PEER"), all ? "all" : "plain", NULL };

    return argv[0] ? peer_start_program(argv) : NULL;
}

static void peer_free(struct peer *p)
{
    close(p->out);
    for (size_t i = 0; i < p->n_lines; i++)
        free(p->lines[i]);
    free(p->rest);
    free(p);
}

void peer_kill(struct peer *p)
{
    kill(p->pid, SIGKILL);
    waitpid(p->pid, NULL, 0);
    close(p->in);
    peer_free(p);
}

void peer_stop(struct peer *p)
{
    int64_t deadline = now_ms() + DEADLINE_MS;
    pid_t done = 0;
    int status;

    if (!p)
        return;
    close(p->in);
    while (done == 0 && now_ms() < deadline) {
        done = waitpid(p->pid, &status, WNOHANG);
        if (done == 0)
            poll(NULL, 0, 5);
    }
    if (done == 0) {
        kill(p->pid, SIGKILL);
        waitpid(p->pid, &status, 0);
    }
    peer_free(p);
    assert_true(done > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

void peer_say(struct peer *p, const char *fmt, ...)
{
    static char line[65536];
    va_list ap;
    int n;

    va_start(ap, fmt);
    n = vsnprintf(line, sizeof line - 1, fmt, ap);
    va_end(ap);
    assert_true(n > 0 && (size_t)n < sizeof line - 1);
    line[n++] = '\n';
    raw_write(p->in, line, (size_t)n);
}

/* Moves whole lines from the buffer to the list. */
static void split_lines(struct peer *p)
{
    char *end;

    while ((end = memchr(p->buf, '\n', p->len))) {
        size_t n = (size_t)(end - p->buf) + 1;
        assert_true(p->n_lines < MAX_LINES);
        p->lines[p->n_lines++] = strndup(p->buf, n - 1);
        memmove(p->buf, p->buf + n, p->len - n);
        p->len -= n;
    }
}

static void no_line(struct peer *p, const char *wanted, bool ended)
{
    int status = 0;

    if (ended && waitpid(p->pid, &status, 0) == p->pid)
        print_error("the peer ended with status 0x%x\n", (unsigned int)status);
    for (size_t i = 0; i < p->n_lines; i++)
        print_error("the peer said: %s\n", p->lines[i]);
    fail_msg("the peer did not say: %s", wanted);
}

/* Takes the first line that is `wanted`, or only begins so. */
static const char *take_line(struct peer *p, const char *wanted, bool begin)
{
    int64_t deadline = now_ms() + DEADLINE_MS;
    size_t len = strlen(wanted), at = 0;

    for (;;) {
        struct pollfd poller = { .fd = p->out, .events = POLLIN };
        ssize_t n;

        for (; at < p->n_lines; at++)
            if (!strncmp(p->lines[at], wanted, len) && (begin || !p->lines[at][len])) {
                free(p->rest);
                p->rest = p->lines[at];
                p->n_lines--;
                memmove(&p->lines[at], &p->lines[at + 1], (p->n_lines - at) * sizeof p->lines[0]);
                return p->rest + len;
            }
        if (now_ms() >= deadline)
            no_line(p, wanted, false);
        if (poll(&poller, 1, 100) != 1)
            continue;
        n = read(p->out, p->buf + p->len, sizeof p->buf - p->len);
        if (n <= 0)
            no_line(p, wanted, true);
        p->len += (size_t)n;
        split_lines(p);
    }
}

void peer_expect(struct peer *p, const char *fmt, ...)
{
    static char line[65536];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    take_line(p, line, false);
}

const char *peer_expect_begin(struct peer *p, const char *begin)
{
    return take_line(p, begin, true);
}

void peer_pattern(unsigned long seed, void *ret, size_t len)
{
    const size_t period = 65536;
    unsigned char *bytes = ret;

    for (size_t i = 0; i < len && i < period; i++)
        bytes[i] = (unsigned char)(seed + i * 31 + (i >> 8));
    for (size_t i = period; i < len; i += period)
        memcpy(bytes + i, bytes, len - i < period ? len - i : period);
}

uint64_t peer_hash(const void *data, size_t len)
{
    const unsigned char *bytes = data;
    uint64_t h = 0xcbf29ce484222325u, word;
    size_t i = 0;

    for (; i + 8 <= len; i += 8) {
        memcpy(&word, bytes + i, 8);
        h = (h ^ word) * 0x100000001b3u;
    }
    for (; i < len; i++)
        h = (h ^ bytes[i]) * 0x100000001b3u;
    return h;
}

uint64_t peer_pattern_hash(unsigned long seed, size_t len)
{
    void *data = malloc(len > 0 ? len : 1);
    uint64_t h;

    assert_non_null(data);
    peer_pattern(seed, data, len);
    h = peer_hash(data, len);
    free(data);
    return h;
}

static struct sockaddr_in parse_address(const char *address)
{
    struct sockaddr_in sin = { .sin_family = AF_INET };
    char host[32];
    unsigned int port;

    assert_int_equal(sscanf(address, "%31[0-9.]:%u", host, &port), 2);
    assert_int_equal(inet_pton(AF_INET, host, &sin.sin_addr), 1);
    sin.sin_port = htons((uint16_t)port);
    return sin;
}

static void set_deadline(int fd)
{
    const struct timeval limit = { .tv_sec = DEADLINE_MS / 1000 };

    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

int raw_connect(const char *address)
{
    struct sockaddr_in sin = parse_address(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&sin, sizeof sin), 0);
    set_deadline(fd);
    return fd;
}

int raw_listen(char ret_address[32])
{
    struct sockaddr_in sin = parse_address("127.0.0.1:0");
    socklen_t len = sizeof sin;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    set_deadline(fd);
    assert_int_equal(bind(fd, (struct sockaddr *)&sin, sizeof sin), 0);
    assert_int_equal(listen(fd, 16), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&sin, &len), 0);
    snprintf(ret_address, 32, "127.0.0.1:%u", (unsigned int)ntohs(sin.sin_port));
    return fd;
}

int raw_accept(int listener)
{
    int fd = accept(listener, NULL, NULL);

    assert_true(fd >= 0);
    set_deadline(fd);
    return fd;
}

void raw_write(int fd, const void *data, size_t len)
{
    const char *at = data;

    while (len > 0) {
        ssize_t n = write(fd, at, len);
        assert_true(n > 0);
        at += n;
        len -= (size_t)n;
    }
}

void raw_read(int fd, void *data, size_t len)
{
    char *at = data;

    while (len > 0) {
        ssize_t n = read(fd, at, len);
        assert_true(n > 0);
        at += n;
        len -= (size_t)n;
    }
}

void raw_write_frame(int fd, const void *data, size_t len)
{
    uint64_t head = len;

    raw_write(fd, &head, sizeof head);
    raw_write(fd, data, len);
}

size_t raw_read_frame(int fd, void *buf, size_t cap)
{
    uint64_t head;

    raw_read(fd, &head, sizeof head);
    assert_true(head <= cap);
    raw_read(fd, buf, (size_t)head);
    return (size_t)head;
}

bool raw_ended(int fd)
{
    char byte;
    ssize_t n = read(fd, &byte, 1);

    return n == 0 || (n < 0 && errno == ECONNRESET);
}
