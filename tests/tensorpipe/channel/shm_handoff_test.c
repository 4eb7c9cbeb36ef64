/* SPDX-License-Identifier: Apache-2.0 */
/* shm_handoff_test.c - packets of descriptors on the socket beside a tensor's note. */
#include "channel/channel.h"
#include "node.h"
#include "pipe/pipe.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define KIND 3
#define NOTE_LEN (1 + TENREC_SHARE_RECORD + 1 + 8)
#define FEW 100
#define MANY 20000 /* more than a reader may skip; all fit into the socket */

/* A pipe as far as its reader of packets looks, and the peer's end of its socket. */
struct fixture {
    struct endpoint endpoint;
    struct tenrec_host host;
    struct conn conn;
    struct pipe pipe;
    int peer;
    unsigned fds; /* that the host was handed */
};

static struct fixture f; /* too large for the stack */

static tenrec_status host_shared(struct tenrec_agent *self, struct tenrec_sharing *s,
                                 struct tenrec_share *share, struct tenrec_tensor_desc *desc,
                                 tenrec_error *err)
{
    (void)self, (void)s, (void)desc, (void)err;
    f.fds += share->n_fds;
    while (share->n_fds > 0)
        close(share->fd[--share->n_fds]);
    return TENREC_OK;
}

static void setup(void)
{
    int fd[2];

    memset(&f, 0, sizeof f);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
    f.host = (struct tenrec_host){ .size = sizeof f.host, .shared = host_shared };
    f.endpoint.host = &f.host;
    f.conn.source.fd = fd[0];
    f.pipe.ep = &f.endpoint;
    f.pipe.conns.of[CONN_REPLY] = &f.conn;
    f.pipe.tensors.sharing = (void *)&f;
    f.peer = fd[1];
}

static void teardown(void)
{
    close(f.conn.source.fd);
    close(f.peer);
}

/* A packet with one descriptor. */
static void packet_send(uint64_t number)
{
    union {
        struct cmsghdr align;
        char buf[CMSG_SPACE(sizeof(int))];
    } control = { .buf = { 0 } };
    unsigned char text[1 + 8] = { 1 };
    struct iovec iov = { text, sizeof text };
    struct msghdr m = { .msg_iov = &iov,
                        .msg_iovlen = 1,
                        .msg_control = control.buf,
                        .msg_controllen = sizeof control.buf };
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);

    put_le64(text + 1, number);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = (socklen_t)CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(c), &f.peer, sizeof(int));
    assert_int_equal(sendmsg(f.peer, &m, MSG_NOSIGNAL | MSG_DONTWAIT), sizeof text);
}

static void bells_send(size_t n)
{
    static const unsigned char zeros[MANY];

    assert_int_equal(send(f.peer, zeros, n, MSG_NOSIGNAL | MSG_DONTWAIT), n);
}

static tenrec_status note_arrives(uint64_t number)
{
    unsigned char note[NOTE_LEN] = { KIND };
    tenrec_error err;

    note[1 + TENREC_SHARE_RECORD] = 1;
    put_le64(note + NOTE_LEN - 8, number);
    return shm_handoff_arrived(&f.pipe, (struct nop_bytes){ note, sizeof note }, NULL, &err);
}

TEST_WITH(share_finds_its_packet_behind_bells_and_older_packets, setup, teardown)
{
    bells_send(FEW);
    for (uint64_t number = 1; number <= 5; number++)
        packet_send(number);
    bells_send(FEW);
    packet_send(6);
    assert_int_equal(note_arrives(5), TENREC_OK);
    assert_int_equal(note_arrives(6), TENREC_OK);
    assert_int_equal(f.fds, 2);
}

TEST_WITH(share_gives_up_when_its_packet_lies_behind_too_many_bells, setup, teardown)
{
    bells_send(MANY);
    packet_send(1);
    assert_int_equal(note_arrives(1), TENREC_EPROTOCOL);
    assert_int_equal(f.fds, 0);
}

TEST_WITH(share_refuses_a_note_whose_packet_did_not_come, setup, teardown)
{
    packet_send(1);
    assert_int_equal(note_arrives(2), TENREC_EPROTOCOL);
    packet_send(4);
    assert_int_equal(note_arrives(3), TENREC_EPROTOCOL);
    assert_int_equal(f.fds, 0);
}
