/* SPDX-License-Identifier: Apache-2.0 */
#include "conformance/store/store_clients.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define WORD_MAX 64

struct order {
    enum { FAR_SET, FAR_HOLDS } what;
    char key[WORD_MAX], value[WORD_MAX];
};

static int far_fd = -1;
static pid_t far_pid;

/* Until the other end is closed. A demand that does not hold ends this process, with its text. */
static void far_run(int fd)
{
    struct order o;

    clients_join();
    while (read(fd, &o, sizeof o) == sizeof o) {
        if (o.what == FAR_SET)
            put(one, o.key, o.value);
        else
            holds(one, o.key, o.value);
        if (write(fd, &o, 1) != 1)
            break;
    }
    clients_leave();
    exit(CASE_OK);
}

void far_start(void)
{
    int fd[2];

    expect_here(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fd) == 0);
    fflush(NULL);
    far_pid = fork();
    if (far_pid == 0) {
        close(fd[0]);
        far_run(fd[1]);
    }
    close(fd[1]);
    expect_here(far_pid > 0);
    far_fd = fd[0];
}

static void far_order(int what, const char *key, const char *value)
{
    struct order o = { .what = what };

    snprintf(o.key, sizeof o.key, "%s", key);
    snprintf(o.value, sizeof o.value, "%s", value);
    clients_note(key);
    expect_here(write(far_fd, &o, sizeof o) == sizeof o);
}

static void far_answer(void)
{
    struct pollfd p = { .fd = far_fd, .events = POLLIN };
    char done;

    if (poll(&p, 1, (int)expect_ms() + 1000) != 1)
        expect_fail("the second process does not answer");
    if (read(far_fd, &done, 1) != 1)
        expect_fail("the second process has failed");
}

void far_set(const char *key, const char *value)
{
    far_order(FAR_SET, key, value);
    far_answer();
}

void far_holds_begin(const char *key, const char *value)
{
    far_order(FAR_HOLDS, key, value);
}

void far_holds_end(void)
{
    far_answer();
}

void far_holds(const char *key, const char *value)
{
    far_holds_begin(key, value);
    far_holds_end();
}

void far_end(void)
{
    int status = 0;

    close(far_fd);
    expect_here(waitpid(far_pid, &status, 0) == far_pid);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != CASE_OK)
        expect_fail("the second process ended with status %#x", status);
}
