/* SPDX-License-Identifier: Apache-2.0 */
/* sharing_process_test.c - the owner and the holder are two processes, and one dies. */
#include "../testing.h"
#include "sharing_pair.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <tenrec/message.h>
#include <tenrec/tensor.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/tensor/mapping.h"
#include "core/tensor/shared_memory.h"
#include "core/tensor/sharing.h"
#include "core/tensor/sharing_inside.h"

#define FAULTED 3 /* exit status of a child */

/* The message on the socket in front of the descriptors. */
struct packet {
    unsigned char record[TENREC_SHARE_RECORD];
    uint64_t bytes;
};

static void send_share(int to, struct tenrec_share *share, uint64_t bytes)
{
    struct packet p = { .bytes = bytes };
    struct iovec iov = { &p, sizeof p };
    char room[CMSG_SPACE(sizeof share->fd)] = { 0 };
    struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };

    memcpy(p.record, share->record, sizeof p.record);
    if (share->n_fds) {
        struct cmsghdr *c;
        m.msg_control = room;
        m.msg_controllen = (socklen_t)CMSG_SPACE(share->n_fds * sizeof(int));
        c = CMSG_FIRSTHDR(&m);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = (socklen_t)CMSG_LEN(share->n_fds * sizeof(int));
        memcpy(CMSG_DATA(c), share->fd, share->n_fds * sizeof(int));
    }
    assert_int_equal(sendmsg(to, &m, 0), sizeof p);
    while (share->n_fds > 0)
        close(share->fd[--share->n_fds]);
}

/* Returns false if the other end is gone. */
static bool receive_share(int from, struct tenrec_share *share, uint64_t *ret_bytes)
{
    struct packet p;
    struct iovec iov = { &p, sizeof p };
    char room[CMSG_SPACE(sizeof share->fd)];
    struct msghdr m = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room
    };
    struct cmsghdr *c;

    if (recvmsg(from, &m, MSG_CMSG_CLOEXEC) != sizeof p)
        return false;
    *share = (struct tenrec_share){ .size = sizeof *share };
    memcpy(share->record, p.record, sizeof p.record);
    c = CMSG_FIRSTHDR(&m);
    if (c) {
        share->n_fds = (uint32_t)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
        memcpy(share->fd, CMSG_DATA(c), share->n_fds * sizeof(int));
    }
    *ret_bytes = p.bytes;
    return true;
}

static void tell(int fd, char byte)
{
    if (write(fd, &byte, 1) != 1)
        _exit(9);
}

static char hear(int fd)
{
    char byte = 0;

    return read(fd, &byte, 1) == 1 ? byte : 0;
}

struct child {
    pid_t pid;
    int data, talk; /* sockets */
};

typedef void child_fn(int data, int talk);

static struct child start(child_fn *fn)
{
    int data[2], talk[2];
    struct child c;

    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, data), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, talk), 0);
    c = (struct child){ fork(), data[0], talk[0] };
    if (c.pid == 0) {
        close(data[0]);
        close(talk[0]);
        fn(data[1], talk[1]);
        _exit(0);
    }
    assert_true(c.pid > 0);
    close(data[1]);
    close(talk[1]);
    return c;
}

/* Returns the signal that ended it, or minus its exit status. */
static int end(struct child *c, int sig)
{
    int status;

    if (sig)
        kill(c->pid, sig);
    assert_int_equal(waitpid(c->pid, &status, 0), c->pid);
    close(c->data);
    close(c->talk);
    return WIFSIGNALED(status) ? WTERMSIG(status) : -WEXITSTATUS(status);
}

/* Takes one tensor of bytes over the socket; NULL: it did not come. */
static struct tenrec_tensor *receive(struct tenrec_sharing *s, int data)
{
    struct tenrec_tensor *t = NULL;
    struct tenrec_share share;
    struct tenrec_tensor_desc d = {
        .ndim = 1, .dtype = TENREC_UINT8, .device = { TENREC_CPU, 0 }, .strides = { 1 }
    };

    if (!receive_share(data, &share, &d.bytes))
        return NULL;
    d.shape[0] = (int64_t)d.bytes;
    return take(s, &share, &d, &t, NULL) == TENREC_OK ? t : NULL;
}

/* Holds each tensor until it reads 'd'; answers with the first byte. */
static void hold(int data, int talk)
{
    struct tenrec_sharing *s = sharing_open();
    struct tenrec_tensor *t;

    while ((t = receive(s, data))) {
        tell(talk, (char)bytes_of(t)[0]);
        if (hear(talk) != 'd')
            break;
        tenrec_tensor_drop(t);
        tell(talk, 'D');
    }
    sharing_close(s);
}

static void lend_to(struct child *c, const struct tenrec_tensor *t)
{
    struct tenrec_share share;

    assert_true(sharing_share(owner, tenrec_tensor_desc(t), &share));
    send_share(c->data, &share, tenrec_tensor_desc(t)->bytes);
    assert_int_equal(hear(c->talk), bytes_of(t)[0]);
}

TEST_WITH(sharing_counts_across_processes, open_both, close_both)
{
    struct child c = start(hold);
    struct tenrec_tensor *t = make(MIB, TENREC_SHARED, 'x');

    for (int i = 0; i < 3; i++) {
        lend_to(&c, t);
        sharing_collect(clock_now_ns());
        assert_int_equal(sharing_lent(), 1);
        tell(c.talk, 'd');
        assert_int_equal(hear(c.talk), 'D');
        sharing_collect(clock_now_ns());
        assert_int_equal(sharing_lent(), 0);
    }
    tenrec_tensor_drop(t);
    shutdown(c.data, SHUT_RDWR);
    assert_int_equal(end(&c, 0), 0);
}

TEST_WITH(sharing_gets_memory_back_when_the_holder_is_killed, open_both, close_both)
{
    struct child c = start(hold);
    struct tenrec_tensor *t = make(MIB, TENREC_SHARED, 'x');

    lend_to(&c, t);
    tenrec_tensor_drop(t);
    assert_int_equal(end(&c, SIGKILL), SIGKILL);
    sharing_close(owner); /* its connection broke */
    owner = NULL;
    sharing_collect(clock_now_ns());
    assert_int_equal(sharing_lent(), 0);
    assert_int_equal(shared_memory_count().blocks, 0);
}

/* The memory exists as long as a process holds it. */
static void die_as_owner(int data, int talk)
{
    struct tenrec_sharing *s = sharing_open();
    struct tenrec_tensor *t = make(MIB, TENREC_SHARED, 'o');
    struct tenrec_share share;

    if (!sharing_share(s, tenrec_tensor_desc(t), &share))
        _exit(1);
    send_share(data, &share, MIB);
    hear(talk); /* until it is killed */
    _exit(2);
}

TEST_WITH(sharing_keeps_the_mapping_when_the_owner_is_killed, open_both, close_both)
{
    struct child c = start(die_as_owner);
    struct tenrec_tensor *t = receive(holder, c.data);

    assert_non_null(t);
    assert_int_equal(end(&c, SIGKILL), SIGKILL);
    for (int i = 0; i < MIB; i += 4096)
        assert_int_equal(bytes_of(t)[i], 'o');
    sharing_close(holder);
    holder = NULL;
    assert_int_equal(bytes_of(t)[MIB - 1], 'o');
    tenrec_tensor_drop(t);
}

static void faulted(int sig)
{
    (void)sig;
    _exit(FAULTED);
}

static void write_into(int data, int talk)
{
    struct tenrec_tensor *t = receive(sharing_open(), data);

    if (!t)
        _exit(1);
    signal(SIGSEGV, faulted); /* also where a sanitizer has its own */
    tell(talk, (char)bytes_of(t)[0]);
    bytes_of(t)[0] = 'y';
    tell(talk, 'w');
}

TEST_WITH(sharing_faults_a_writer_of_lent_memory, open_both, close_both)
{
    struct child c = start(write_into);
    struct tenrec_tensor *t = make(MIB, TENREC_SHARED, 'x');

    lend_to(&c, t);
    assert_int_equal(hear(c.talk), 0);
    assert_int_equal(end(&c, 0), -FAULTED);
    assert_int_equal(bytes_of(t)[0], 'x');
    tenrec_tensor_drop(t);
    sharing_close(owner);
    owner = NULL;
}

TEST_WITH(sharing_lets_the_receiver_write_moved_memory, open_both, close_both)
{
    struct child c = start(write_into);
    struct tenrec_tensor *t = make(MIB, TENREC_SHARED | TENREC_MOVES, 'x');
    struct tenrec_share share;

    assert_true(sharing_share(owner, tenrec_tensor_desc(t), &share));
    send_share(c.data, &share, MIB);
    tenrec_tensor_drop(t);
    assert_int_equal(shared_memory_count().regions, 0);
    assert_int_equal(hear(c.talk), 'x');
    assert_int_equal(hear(c.talk), 'w');
    assert_int_equal(end(&c, 0), 0);
}
