/* SPDX-License-Identifier: Apache-2.0 */
/* seals_test.c - a descriptor that a peer passed is asked for its seals before all else: the
 * kernel alone answers that, where a file system in user space could keep a worker waiting.
 *
 * The peer's is one end of a pipe, which cannot be sealed; calls that a file system answers
 * are counted. */
#include "core/tensor/memfd_region.h"
#include "node.h"
#include "transport/ring/ring.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define SIZE 65536

static unsigned looks; /* at files */

/* Which of each two the C library's header names depends on the size of offsets. */
#define COUNTED(call, type)                                                                        \
    int __real_##call(int fd, type *ret);                                                          \
    int __wrap_##call(int fd, type *ret);                                                          \
    int __wrap_##call(int fd, type *ret)                                                           \
    {                                                                                              \
        looks++;                                                                                   \
        return __real_##call(fd, ret);                                                             \
    }
COUNTED(fstat, struct stat)
COUNTED(fstat64, struct stat)
COUNTED(fstatfs, struct statfs)
COUNTED(fstatfs64, struct statfs)

/* A descriptor that cannot be sealed, and its other end. */
static int unsealed[2];

static void setup(void)
{
    looks = 0;
    assert_int_equal(pipe(unsealed), 0);
}

static void teardown(void)
{
    close(unsealed[0]);
    close(unsealed[1]);
}

TEST_WITH(seals_of_a_region_are_asked_first, setup, teardown)
{
    struct memfd_region own, mapped;
    tenrec_error err;

    assert_int_equal(memfd_region_map(unsealed[0], REGION_READ, &mapped, &err), TENREC_EPROTOCOL);
    assert_int_equal(looks, 0);
    assert_int_equal(memfd_region_make(SIZE, REGION_READ, &own, &err), TENREC_OK);
    assert_int_equal(memfd_region_map(dup(own.fd), REGION_READ, &mapped, &err), TENREC_OK);
    assert_true(looks > 0); /* as they would be above */
    memfd_region_close(&mapped);
    memfd_region_close(&own);
}

/* Takes the message of an honest caller, and sends its text with another descriptor. */
static void pass_another(int from, int to, int fd)
{
    union {
        struct cmsghdr align;
        char buf[CMSG_SPACE(sizeof(int))];
    } control = { .buf = { 0 } };
    unsigned char text[64];
    struct iovec iov = { text, sizeof text };
    struct msghdr m = { .msg_iov = &iov,
                        .msg_iovlen = 1,
                        .msg_control = control.buf,
                        .msg_controllen = sizeof control.buf };
    const ssize_t n = recvmsg(from, &m, MSG_DONTWAIT);
    int passed;

    assert_true(n > 0);
    memcpy(&passed, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof passed);
    close(passed);
    memcpy(CMSG_DATA(CMSG_FIRSTHDR(&m)), &fd, sizeof fd);
    iov.iov_len = (size_t)n;
    assert_int_equal(sendmsg(to, &m, MSG_NOSIGNAL), n);
}

TEST_WITH(seals_of_a_ring_are_asked_first, setup, teardown)
{
    struct ring_end caller, listener;
    int honest[2], hostile[2];
    const char *why;

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, honest), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, hostile), 0);
    assert_int_equal(ring_setup_call(honest[0], SIZE, &caller), 0);
    pass_another(honest[1], hostile[0], unsealed[0]);
    looks = 0;
    assert_int_equal(ring_setup_take(hostile[1], &listener, &why), EPROTO);
    assert_int_equal(looks, 0);
    ring_end_close(&caller);
    for (int i = 0; i < 2; i++) {
        close(honest[i]);
        close(hostile[i]);
    }
}
