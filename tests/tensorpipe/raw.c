/* SPDX-License-Identifier: Apache-2.0 */
/* raw.c - a TensorPipe peer made of bare sockets and byte arrays. */
#include "raw.h"

#include "node.h"
#include "transport/conn.h"
#include "transport/tcp/transport_uv.h"
#include "wire/descriptor.h"
#include "wire/handshake/brochure.h"
#include "wire/handshake/identity.h"
#include "wire/plain.h"
#include "wire/tensorlist.h"
#include <errno.h>
#include <sys/time.h>
#include <unistd.h>

const unsigned char raw_hello[12] = { 0xb8, 0, 0xb9, 1, 0xbd, 6, 'c', 'l', 'i', 'e', 'n', 't' };
const unsigned char raw_brochure[38] = { 0xb9, 2,   0xbb, 1,    0xbd, 2,    'u',  'v',  0xbd, 4,
                                         'u',  'v', ':',  '*',  0xbb, 1,    0xbd, 5,    'b',  'a',
                                         's',  'i', 'c',  0xbb, 1,    0xb9, 2,    0xbd, 3,    'c',
                                         'p',  'u', 0,    0xbd, 3,    'a',  'n',  'y' };

static void limit(int fd)
{
    const struct timeval tv = { 20, 0 };

    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof tv);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof tv);
}

int raw_connect_if_room(const char *address)
{
    union transport_address a;
    tenrec_error err;
    int fd;

    address += strlen(TRANSPORT_UV_SCHEME);
    assert_int_equal(transport_parse(address, strlen(address), &a, &err), TENREC_OK);
    fd = socket(a.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return fd;
    assert_int_equal(connect(fd, &a.any, a.any.sa_family == AF_INET6 ? sizeof a.v6 : sizeof a.v4),
                     0);
    limit(fd);
    return fd;
}

int raw_connect(const char *address)
{
    int fd = raw_connect_if_room(address);

    assert_true(fd >= 0);
    return fd;
}

int raw_listen(char address[64])
{
    union transport_address a = { .v4 = { .sin_family = AF_INET } };
    socklen_t len = sizeof a.v4;
    char text[TRANSPORT_TEXT_MAX];
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    a.v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    limit(fd);
    assert_int_equal(bind(fd, &a.any, len), 0);
    assert_int_equal(listen(fd, 16), 0);
    assert_int_equal(getsockname(fd, &a.any, &len), 0);
    transport_format(&a, text);
    snprintf(address, 64, "uv://%.50s", text);
    return fd;
}

int raw_accept(int fd)
{
    int c = accept(fd, NULL, NULL);

    assert_true(c >= 0);
    limit(c);
    return c;
}

void raw_send(int fd, const void *data, size_t len)
{
    while (len) {
        ssize_t n = send(fd, data, len, MSG_NOSIGNAL);

        if (n <= 0)
            return; /* closed: the test checks the effect */
        data = (const char *)data + n;
        len -= (size_t)n;
    }
}

static void put_le(unsigned char *to, uint64_t v, int n)
{
    for (int i = 0; i < n; i++)
        to[i] = (unsigned char)(v >> (8 * i));
}

void raw_frame(int fd, const void *body, size_t len)
{
    unsigned char head[8];

    put_le(head, len, 8);
    raw_send(fd, head, 8);
    raw_send(fd, body, len);
}

bool raw_recv(int fd, void *data, size_t len)
{
    while (len) {
        ssize_t n = recv_again(fd, data, len, 0);

        if (n <= 0)
            return false;
        data = (char *)data + n;
        len -= (size_t)n;
    }
    return true;
}

long raw_recv_frame(int fd, void *buf, size_t cap)
{
    unsigned char head[8];
    uint64_t len = 0;

    if (!raw_recv(fd, head, 8))
        return -1;
    for (int i = 7; i >= 0; i--)
        len = len << 8 | head[i];
    assert_true(len <= cap);
    return raw_recv(fd, buf, (size_t)len) ? (long)len : -1;
}

bool raw_closed(int fd)
{
    char buf[4096];
    ssize_t n;

    do
        n = recv_again(fd, buf, sizeof buf, 0);
    while (n > 0);
    return n == 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
}

void raw_hello_requested(int fd, uint64_t id)
{
    unsigned char hello[HELLO_MAX(0)];

    raw_frame(fd, hello, hello_write_requested(hello, sizeof hello, id));
}

static void take_answer(struct raw_pipe *p, const unsigned char *frame, long len)
{
    struct wire_device_map map;
    struct nop_device device;
    struct nop_bytes text;
    struct answer answer;
    tenrec_error err;

    assert_true(len > 0);
    if (answer_read(frame, (size_t)len, &answer, &err) != TENREC_OK)
        fail_msg("%s", err.text);
    p->id[1] = answer.reply_id;
    assert_true(answer_find_ids(&answer, "basic", &text));
    assert_int_equal(nop_uint64_count(text), 1);
    p->id[2] = nop_uint64_at(text, 0);
    p->identity[0] = '\0';
    if (wire_channels_find(answer.channels, answer.n_channels, IDENTITY_ENTRY, &map) &&
        wire_device_map_next(&map, &device, &text))
        snprintf(p->identity, sizeof p->identity, "%.*s", (int)text.len, (const char *)text.data);
}

void raw_pipe_ask(struct raw_pipe *p, const char *address, const char *identity)
{
    const struct wire_transport uv = { "uv", "uv:*", NULL };
    const struct wire_channel_device any = { { nop_text("cpu"), 0 }, "any" };
    const struct wire_channel basic = {
        .name = "basic", .devices = &any, .n_devices = 1, .n_connections = 1
    };
    const struct wire_offer offer = { &uv, &basic, 1, 1, identity };
    unsigned char buf[2048];

    p->fd[0] = raw_connect(address);
    raw_frame(p->fd[0], raw_hello, sizeof raw_hello);
    raw_frame(p->fd[0], buf, brochure_write(buf, sizeof buf, &offer));
    take_answer(p, buf, raw_recv_frame(p->fd[0], buf, sizeof buf));
}

void raw_pipe_defer(struct raw_pipe *p, const char *address)
{
    const struct wire_transport uv = { "uv", "uv:*", NULL };
    const struct wire_channel_device one_lane = { { nop_text("cpu"), 0 }, "2:1" };
    const struct wire_channel lanes = {
        .name = "tenrec_lanes", .devices = &one_lane, .n_devices = 1, .n_connections = 1
    };
    const struct wire_offer offer = { &uv, &lanes, 1, 1, "tenrec:1:-1:0:a0" };
    unsigned char buf[2048];

    p->fd[0] = raw_connect(address);
    raw_frame(p->fd[0], raw_hello, sizeof raw_hello);
    raw_frame(p->fd[0], buf, brochure_write(buf, sizeof buf, &offer));
    assert_true(raw_recv_frame(p->fd[0], buf, sizeof buf) > 0);
}

void raw_pipe_join(struct raw_pipe *p, const char *address, int which)
{
    p->fd[which] = raw_connect(address);
    raw_hello_requested(p->fd[which], p->id[which]);
}

void raw_pipe_open_as(struct raw_pipe *p, const char *address, const char *identity)
{
    raw_pipe_ask(p, address, identity);
    raw_pipe_join(p, address, 1);
    raw_pipe_join(p, address, 2);
}

void raw_pipe_open(struct raw_pipe *p, const char *address)
{
    raw_pipe_open_as(p, address, NULL);
}

void raw_pipe_close(struct raw_pipe *p)
{
    for (int i = 0; i < 3; i++)
        close(p->fd[i]);
}

size_t raw_message(unsigned char *buf, int32_t type, int64_t id, const void *payload, size_t len)
{
    return plain_write(buf, type, id, payload, len);
}

static size_t tensor_message(unsigned char *buf, int32_t type, int64_t id, bool with_target,
                             int64_t times)
{
    static const unsigned char cpu[] = { 0xb9, 2, 0xbd, 3, 'c', 'p', 'u', 0 };
    const struct tenrec_tensor_desc desc = {
        .bytes = 4,
        .dtype = { TENREC_DTYPE_FLOAT, 32, 1 },
        .ndim = 1,
        .device = { TENREC_CPU, 0 },
        .target = { TENREC_CPU, 0 },
        .shape = { times },
        .strides = { times == 1 },
    };
    unsigned char list[1024], *at = buf + 8;
    tenrec_error err;
    size_t list_len;
    const unsigned lens[] = { 4, 8, 0 };

    assert_int_equal(
        tensorlist_write(list, sizeof list, &desc, 1, sizeof desc, false, &list_len, &err),
        TENREC_OK);
    memcpy(at, "\xb9\x03\xbd\x00\xba\x04", 6);
    at += 6;
    for (int i = 0; i < 3; i++) {
        memcpy(at, "\xb9\x02?\xbd\x00", 5);
        at[2] = (unsigned char)lens[i];
        at += 5;
    }
    memcpy(at, "\xb9\x02\x80?\xbd\x00\xba\x01\xb9\x04\x04", 11);
    assert_in_range(list_len, 128, 255);
    at[3] = (unsigned char)list_len;
    at += 11;
    memcpy(at, cpu, sizeof cpu);
    at += sizeof cpu;
    if (with_target) {
        memcpy(at, cpu, sizeof cpu);
        at += sizeof cpu;
    } else {
        *at++ = 0xbe;
    }
    *at++ = 0xbd;
    *at++ = 0;
    put_le(buf, (uint64_t)(at - buf - 8), 8);
    put_le(at, 4, 8);
    put_le(at + 8, (uint32_t)type, 4);
    at += 12;
    put_le(at, 8, 8);
    put_le(at + 8, (uint64_t)id, 8);
    at += 16;
    put_le(at, 0, 8);
    put_le(at + 8, list_len, 8);
    memcpy(at + 16, list, list_len);
    return (size_t)(at - buf) + 16 + list_len;
}

size_t raw_tensor_message(unsigned char *buf, int32_t type, int64_t id, bool with_target)
{
    return tensor_message(buf, type, id, with_target, 1);
}

size_t raw_view_message(unsigned char *buf, int32_t type, int64_t id, int64_t times)
{
    return tensor_message(buf, type, id, true, times);
}

size_t raw_lanes_message(unsigned char *buf, size_t cap, int64_t id, uint64_t bytes)
{
    const struct tenrec_tensor_desc desc = {
        .bytes = bytes,
        .dtype = { TENREC_DTYPE_UINT, 8, 1 },
        .ndim = 1,
        .device = { TENREC_CPU, 0 },
        .target = { TENREC_CPU, 0 },
        .shape = { (int64_t)bytes },
        .strides = { 1 },
    };
    struct descriptor_note note = { 9, { 2 } }; /* lanes, and the length of a stripe */
    unsigned char list[1024], *at = buf + FRAME_HEAD;
    uint64_t lens[] = { 4, 8, 0, 0 };
    tenrec_error err;
    size_t list_len;
    int32_t type = TENREC_MSG_CALL;

    assert_int_equal(
        tensorlist_write(list, sizeof list, &desc, 1, sizeof desc, false, &list_len, &err),
        TENREC_OK);
    lens[3] = list_len;
    put_le64(note.bytes + 1, bytes);
    lens[0] = descriptor_write(at, cap - FRAME_HEAD, lens, &desc, 1, sizeof desc, &note);
    put_le64(buf, lens[0]);
    at = conn_put_frame(at + lens[0], &type, sizeof type);
    at = conn_put_frame(at, &id, sizeof id);
    at = conn_put_frame(at, NULL, 0);
    at = conn_put_frame(at, list, list_len);
    return (size_t)(at - buf);
}

int32_t raw_recv_message(struct raw_pipe *p, int64_t *ret_id, void *buf, size_t cap, long *ret_len)
{
    unsigned char object[4096], type[4], id[8];
    int32_t t;

    assert_true(raw_recv_frame(p->fd[0], object, sizeof object) > 0);
    assert_int_equal(raw_recv_frame(p->fd[0], type, 4), 4);
    assert_int_equal(raw_recv_frame(p->fd[0], id, 8), 8);
    *ret_len = raw_recv_frame(p->fd[0], buf, cap);
    assert_true(*ret_len >= 0);
    assert_true(raw_recv_frame(p->fd[0], object, sizeof object) > 0);
    memcpy(&t, type, 4);
    memcpy(ret_id, id, 8);
    return t;
}
