/* SPDX-License-Identifier: Apache-2.0 */
#include "forge.h"

#include "../testing.h"
#include "stranger.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <sys/socket.h>

enum { FRAME_MAX = 512 };

/* The id of forged messages, by which their bytes are found. */
static const int64_t mark = 0x466f726765644d67;

static atomic_bool watches;
static unsigned char frame[2][FRAME_MAX]; /* what UCX sent over each connection */
static size_t frame_len[2];
static int connection;
static size_t number_at; /* in a frame */
static int number = -1;  /* to write there; -1: none */
static int forged;       /* frames in which it was written */

/* UCX's, and everyone's. */
ssize_t send(int fd, const void *bytes, size_t len, int flags)
{
    static ssize_t (*_Atomic found)(int, const void *, size_t, int);
    ssize_t (*real)(int, const void *, size_t, int) = found;
    unsigned char changed[FRAME_MAX];

    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "send");
    found = real;
    if (!atomic_load(&watches) || len > FRAME_MAX || !memmem(bytes, len, &mark, sizeof mark))
        return real(fd, bytes, len, flags);
    memcpy(changed, bytes, len);
    if (number >= 0) {
        assert_int_equal(len, frame_len[0]);
        changed[number_at] = (unsigned char)number;
        forged++;
    } else {
        memcpy(frame[connection], bytes, len);
        frame_len[connection] = len;
    }
    return real(fd, changed, len, flags);
}

ssize_t sendmsg(int fd, const struct msghdr *msg, int flags)
{
    static ssize_t (*_Atomic found)(int, const struct msghdr *, int);
    ssize_t (*real)(int, const struct msghdr *, int) = found;
    unsigned char all[FRAME_MAX];
    size_t len = 0;

    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "sendmsg");
    found = real;
    for (size_t i = 0; atomic_load(&watches) && i < msg->msg_iovlen; i++) {
        const struct iovec *part = &msg->msg_iov[i];

        if (part->iov_len > sizeof all - len)
            return real(fd, msg, flags);
        memcpy(all + len, part->iov_base, part->iov_len);
        len += part->iov_len;
    }
    return len ? send(fd, all, len, flags) : real(fd, msg, flags);
}

static void say_marked(const struct head *h)
{
    struct head marked = *h;

    marked.id = mark;
    stranger_say(&marked, NULL, 0);
    stranger_flush();
}

/* UCX sends messages in another form until the other side has answered. */
static void open_and_hear(const char *address)
{
    const struct head hello = { .kind = HEAD_HELLO, .type = -1, .length = 1000 };

    stranger_open(address);
    stranger_say(&hello, NULL, 0);
    assert_becomes(stranger_answers() > 0);
}

void forge_learn(const char *address)
{
    const struct head h = { .kind = HEAD_HELLO, .sequence = 1 }; /* ends the connection */

    number = -1;
    atomic_store(&watches, true);
    for (connection = 0; connection < 2; connection++) {
        frame_len[connection] = 0;
        open_and_hear(address);
        say_marked(&h);
        stranger_close();
    }
    atomic_store(&watches, false);
    assert_true(frame_len[0] > 0);
    assert_int_equal(frame_len[0], frame_len[1]);
    for (number_at = 0; frame[0][number_at] == frame[1][number_at]; number_at++)
        assert_true(number_at < frame_len[0]);
}

void forge_say(const char *address, const struct head *h)
{
    const int first = frame[0][number_at]; /* of a stranger */

    open_and_hear(address);
    forged = 0;
    atomic_store(&watches, true);
    for (number = 1; number < first; number += 2)
        say_marked(h);
    atomic_store(&watches, false);
    assert_true(forged > 0);
    assert_int_equal(forged, first / 2);
    stranger_close();
}
