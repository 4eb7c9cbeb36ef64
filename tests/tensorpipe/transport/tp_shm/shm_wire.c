/* SPDX-License-Identifier: Apache-2.0 */
/* shm_wire.c - a peer's end of connections over shm. */
#include "shm_wire.h"

#include "caller.h"
#include "node.h"
#include "transport/conn.h"
#include "wire/handshake/hello.h"

#include <errno.h>
#include <unistd.h>

void wire_open(struct wire *w, int fd)
{
    struct shm_hello hello;
    tenrec_error err;
    int e;

    w->fd = fd;
    if (shm_link_init(&w->link, &hello, &err))
        fail_msg("%s", err.text);
    assert_int_equal(shm_hello_send(fd, &hello), 0);
    shm_hello_close(&hello);
    assert_becomes((e = shm_hello_receive(fd, &hello)) != EAGAIN);
    assert_int_equal(e, 0);
    if (shm_link_attach(&w->link, &hello, &err))
        fail_msg("%s", err.text);
    shm_hello_close(&hello);
}

void wire_close(struct wire *w)
{
    close(w->fd);
    shm_link_finish(&w->link);
}

void wire_send(struct wire *w, const void *data, size_t len)
{
    const struct iovec iov = { (void *)(uintptr_t)data, len };

    assert_int_equal(shm_link_write(&w->link, &iov, 1), len);
}

void wire_receive(struct wire *w, void *data, size_t len)
{
    size_t got = 0;

    while (got < len) {
        const struct iovec iov = { (unsigned char *)data + got, len - got };
        ssize_t r;

        assert_becomes((r = shm_link_read(&w->link, &iov, 1)) != -EAGAIN);
        assert_true(r > 0);
        got += (size_t)r;
    }
}

void wire_request(struct wire *w, uint64_t id)
{
    unsigned char frame[FRAME_HEAD + HELLO_MAX(0)];

    wire_send(w, frame, caller_hello(frame, id));
}

uint64_t wire_requested(struct wire *w)
{
    unsigned char head[FRAME_HEAD], body[HELLO_MAX(0)];
    struct hello hello;
    tenrec_error err;

    wire_receive(w, head, sizeof head);
    assert_true(get_le64(head) <= sizeof body);
    wire_receive(w, body, (size_t)get_le64(head));
    if (hello_read(body, (size_t)get_le64(head), &hello, &err))
        fail_msg("%s", err.text);
    assert_int_equal(hello.kind, HELLO_REQUESTED);
    return hello.id;
}
