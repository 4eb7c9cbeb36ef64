/* SPDX-License-Identifier: Apache-2.0 */
/* interop_wire_test.c - our objects, on bare sockets, with the real
 * libtensorpipe: first as its client, then as its listener.
 */
#include "peer.h"

#include "../tensorpipe/wire/peer_side.h"
#include "wire/handshake/identity.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)

/* The three connections of a pipe over uv and basic. */
struct raw_pipe {
    int descriptor, reply, channel;
};

/* One payload ('p'), tensor with target ('t') or without ('n'), as in the
 * peer's commands. */
struct part {
    char kind;
    const char *meta;
    unsigned long seed;
    size_t len;
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const struct nop_device cpu = { { (const unsigned char *)"cpu", 3 }, 0 };
static const struct wire_channel_device any_cpu[] = { { { { (const unsigned char *)"cpu", 3 }, 0 },
                                                        "any" } };
static const struct wire_channel channels[] = { { "basic", any_cpu, 1, 1 } };
static char our_address[32];
static const struct wire_transport transports[] = { { "uv", "uv:*", our_address } };
static const struct wire_offer plain = { transports, channels, 1, 1, NULL };
static const struct wire_offer tenrec = { transports, channels, 1, 1, "tenrec:1:0:1f:3" };

static void *make_bytes(const struct part *part)
{
    void *data = malloc(part->len > 0 ? part->len : 1);

    assert_non_null(data);
    peer_pattern(part->seed, data, part->len);
    return data;
}

static void send_part(int fd, const struct part *part)
{
    void *data = make_bytes(part);

    raw_write_frame(fd, data, part->len);
    free(data);
}

static size_t put_descriptor(void *buf, size_t cap, const char *meta, const struct part *parts,
                             size_t n)
{
    size_t payloads = 0;
    struct nop_writer w;

    while (payloads < n && parts[payloads].kind == 'p')
        payloads++;
    nop_writer_init(&w, buf, cap);
    nop_write_struct(&w, 3);
    nop_write_string(&w, nop_text(meta));
    nop_write_array(&w, payloads);
    for (size_t i = 0; i < n; i++) {
        bool tensor = parts[i].kind != 'p';
        if (i == payloads)
            nop_write_array(&w, n - payloads);
        nop_write_struct(&w, tensor ? 4 : 2);
        nop_write_uint(&w, parts[i].len);
        if (tensor)
            nop_write_device(&w, &cpu);
        if (parts[i].kind == 't')
            nop_write_device(&w, &cpu);
        else if (tensor)
            nop_write_byte(&w, NOP_NIL);
        nop_write_string(&w, nop_text(parts[i].meta));
    }
    if (payloads == n)
        nop_write_array(&w, 0);
    assert_true(w.len <= cap);
    return w.len;
}

static void send_message(const struct raw_pipe *pipe, const char *meta, const struct part *parts,
                         size_t n)
{
    struct nop_device devices[16];
    unsigned char buf[1024];
    uint32_t targetless = 0;
    tenrec_error err;
    size_t len = put_descriptor(buf, sizeof buf, meta, parts, n);

    raw_write_frame(pipe->descriptor, buf, len);
    for (size_t i = 0; i < n; i++)
        targetless += parts[i].kind == 'n';
    for (size_t i = 0; i < n; i++)
        if (parts[i].kind == 'p')
            send_part(pipe->descriptor, &parts[i]);
    if (targetless > 0) {
        len = raw_read_frame(pipe->reply, buf, sizeof buf);
        if (descriptor_reply_read(buf, len, targetless, devices, &err))
            fail_msg("%s", err.text);
        assert_true(nop_device_equal(&devices[0], &cpu));
    }
    for (size_t i = 0; i < n; i++)
        if (parts[i].kind != 'p' && parts[i].len > 0)
            send_part(pipe->channel, &parts[i]);
}

static void check_frame(int fd, const struct part *part)
{
    void *data = malloc(part->len > 0 ? part->len : 1), *expected = make_bytes(part);

    assert_non_null(data);
    assert_int_equal(raw_read_frame(fd, data, part->len), part->len);
    assert_int_equal(memcmp(data, expected, part->len), 0);
    free(expected);
    free(data);
}

static void check_descriptor(struct descriptor *d, struct payload_reader payloads, const char *meta,
                             const struct part *parts, size_t n)
{
    struct payload payload;
    struct descriptor_tensor tensor;

    assert_true(nop_bytes_is(d->metadata, meta));
    for (size_t i = 0; i < n; i++)
        if (parts[i].kind == 'p') {
            assert_true(payload_next(&payloads, &payload));
            assert_int_equal(payload.length, parts[i].len);
            assert_true(nop_bytes_is(payload.metadata, parts[i].meta));
        } else {
            assert_true(descriptor_next_tensor(d, &tensor));
            assert_int_equal(tensor.length, parts[i].len);
            assert_true(nop_bytes_is(tensor.metadata, parts[i].meta));
            assert_true(nop_device_equal(&tensor.source, &cpu));
            assert_int_equal(tensor.has_target, parts[i].kind == 't');
        }
    assert_false(payload_next(&payloads, &payload));
    assert_false(descriptor_next_tensor(d, &tensor));
}

static void receive_message(const struct raw_pipe *pipe, const char *meta, const struct part *parts,
                            size_t n)
{
    static const struct descriptor_limits limits = { 16, 16 };
    const struct nop_device devices[16] = { cpu, cpu, cpu, cpu };
    unsigned char buf[1024];
    struct descriptor d;
    tenrec_error err;
    size_t len = raw_read_frame(pipe->descriptor, buf, sizeof buf);

    if (descriptor_read(buf, len, &limits, &d, &err))
        fail_msg("%s", err.text);
    check_descriptor(&d, payload_reader(buf, len), meta, parts, n);
    if (d.n_targetless > 0) {
        len = descriptor_reply_write(buf, sizeof buf, devices, d.n_targetless);
        raw_write_frame(pipe->reply, buf, len);
    }
    for (size_t i = 0; i < n; i++)
        if (parts[i].kind == 'p')
            check_frame(pipe->descriptor, &parts[i]);
        else if (parts[i].len > 0)
            check_frame(pipe->channel, &parts[i]);
}

/* Makes the peer write that message on its pipe `number`. */
static void let_write(struct peer *p, size_t number, const char *meta, const struct part *parts,
                      size_t n)
{
    char line[1024];
    size_t at = (size_t)snprintf(line, sizeof line, "write %zu m%s", number, meta);

    for (size_t i = 0; i < n; i++)
        at += (size_t)snprintf(line + at, sizeof line - at, " %c:%s:s%lu:%zu", parts[i].kind,
                               parts[i].meta, parts[i].seed, parts[i].len);
    assert_true(at < sizeof line);
    peer_say(p, "%s", line);
}

static void expect_message(struct peer *p, size_t number, const char *meta,
                           const struct part *parts, size_t n)
{
    char line[1024];
    size_t at = (size_t)snprintf(line, sizeof line, "message %zu m%s", number, meta);

    for (size_t i = 0; i < n; i++)
        at += (size_t)snprintf(line + at, sizeof line - at, " %c:%s:%zu:%016llx", parts[i].kind,
                               parts[i].meta, parts[i].len,
                               (unsigned long long)peer_pattern_hash(parts[i].seed, parts[i].len));
    assert_true(at < sizeof line);
    peer_expect(p, "%s", line);
}

static int request_connection(const char *address, uint64_t id)
{
    unsigned char buf[HELLO_MAX(0)];
    int fd = raw_connect(address);

    raw_write_frame(fd, buf, hello_write_requested(buf, sizeof buf, id));
    return fd;
}

/* Our client's half of the handshake; `connect_now` false leaves the two
 * further connections to the caller, which gets their ids. */
static struct raw_pipe client_open(const char *address, const struct wire_offer *offer,
                                   const char *name, uint64_t ret_ids[2], bool connect_now)
{
    struct raw_pipe pipe = { raw_connect(address), -1, -1 };
    unsigned char buf[1024];
    struct wire_selection s;
    struct nop_bytes ids;
    struct answer a;
    tenrec_error err;
    size_t len;

    raw_write_frame(pipe.descriptor, buf, hello_write_spontaneous(buf, sizeof buf, nop_text(name)));
    raw_write_frame(pipe.descriptor, buf, brochure_write(buf, sizeof buf, offer));
    len = raw_read_frame(pipe.descriptor, buf, sizeof buf);
    if (answer_read(buf, len, &a, &err) || answer_check(&a, offer, "uv", &s, &err))
        fail_msg("%s", err.text);
    assert_true(nop_bytes_is(a.address, address));
    assert_non_null(wire_selection_find(&s, &cpu, &cpu));
    assert_true(answer_find_ids(&a, "basic", &ids));
    ret_ids[0] = a.reply_id;
    ret_ids[1] = nop_uint64_at(ids, 0);
    if (connect_now) {
        pipe.reply = request_connection(address, ret_ids[0]);
        pipe.channel = request_connection(address, ret_ids[1]);
    }
    return pipe;
}

/* Takes the next connection and reads its hello. */
static int accept_hello(int listener, struct hello *ret)
{
    static unsigned char buf[1024];
    int fd = raw_accept(listener);
    size_t len = raw_read_frame(fd, buf, sizeof buf);
    tenrec_error err;

    if (hello_read(buf, len, ret, &err))
        fail_msg("%s", err.text);
    return fd;
}

/* Our listener's half of the handshake. */
static struct raw_pipe listener_open(int listener, const struct wire_offer *offer,
                                     bool with_identity)
{
    const uint64_t reply_id = 300, channel_id = 70000;
    const struct wire_ids ids = { .reply = reply_id, .channels = &channel_id };
    struct raw_pipe pipe = { -1, -1, -1 };
    unsigned char buf[1024];
    struct wire_selection s;
    struct brochure b;
    struct hello hello;
    tenrec_error err;
    size_t len;

    pipe.descriptor = accept_hello(listener, &hello);
    assert_int_equal(hello.kind, HELLO_SPONTANEOUS);
    assert_true(nop_bytes_is(hello.name, "libtensorpipe"));
    len = raw_read_frame(pipe.descriptor, buf, sizeof buf);
    if (brochure_read(buf, len, &b, &err) || brochure_select(&b, offer, &s, &err))
        fail_msg("%s", err.text);
    assert_int_equal(selection_connections(&s, offer), 1);
    len = answer_write(buf, sizeof buf, offer, &s, &ids, with_identity);
    raw_write_frame(pipe.descriptor, buf, len);
    for (int i = 0; i < 2; i++) {
        int fd = accept_hello(listener, &hello);
        assert_int_equal(hello.kind, HELLO_REQUESTED);
        if (hello.id == reply_id)
            pipe.reply = fd;
        else if (hello.id == channel_id)
            pipe.channel = fd;
    }
    assert_true(pipe.reply >= 0 && pipe.channel >= 0);
    return pipe;
}

static void pipe_close(const struct raw_pipe *pipe)
{
    close(pipe->channel);
    close(pipe->reply);
    close(pipe->descriptor);
}

static struct peer *start(bool all)
{
    struct peer *p = peer_start(all);

    if (!p) {
        print_message("libtensorpipe is not installed\n");
        skip();
    }
    return p;
}

static struct peer *start_listener(bool all, char ret_address[32])
{
    struct peer *p = start(all);

    peer_say(p, "listen uv://127.0.0.1");
    snprintf(ret_address, 32, "%s", peer_expect_begin(p, "listening "));
    return p;
}

static const struct part payloads[] = {
    { 'p', "p0", 1, 0 }, { 'p', "", 2, 10 }, { 'p', "p2", 3, 300 }, { 'p', "", 4, 70000 }
};
static const struct part tensors[] = {
    { 'p', "", 1, 3 }, { 't', "t0", 2, 16 }, { 't', "", 3, 0 }, { 't', "t2", 4, 70000 }
};
static const struct part targetless[] = {
    { 'p', "", 1, 3 }, { 't', "tz", 2, 0 }, { 'n', "tn", 3, 16 }, { 'n', "", 4, 0 }
};
static const struct part big[] = { { 'p', "", 1, 64 * MIB }, { 't', "", 2, 64 * MIB } };

/* A message of these parts. */
struct message {
    const char *meta;
    const struct part *parts;
    size_t n;
};

static const struct message every_kind[] = { { "", NULL, 0 },
                                             { "meta-1", payloads, COUNT(payloads) },
                                             { "", tensors, COUNT(tensors) },
                                             { "m3", targetless, COUNT(targetless) },
                                             { "", big, COUNT(big) } };
static const struct message one_of_tensors = { "", tensors, COUNT(tensors) };
static const struct message one_of_payloads = { "", payloads, COUNT(payloads) };
static const struct message one_of_targetless = { "", targetless, COUNT(targetless) };

/* Sends each of `n` messages to pipe `number` of the peer, and gets it back. */
static void exchange(struct peer *p, const struct raw_pipe *pipe, size_t number,
                     const struct message *m, size_t n)
{
    for (; n > 0; n--, m++) {
        peer_say(p, "read %zu", number);
        send_message(pipe, m->meta, m->parts, m->n);
        expect_message(p, number, m->meta, m->parts, m->n);
        let_write(p, number, m->meta, m->parts, m->n);
        receive_message(pipe, m->meta, m->parts, m->n);
        peer_expect(p, "wrote %zu", number);
    }
}

/* As the client of a real listener, which offers what it has, or all that there is. */
static void exchange_as_client(bool all, const struct wire_offer *offer, const char *name,
                               const struct message *messages, size_t n)
{
    char address[32];
    uint64_t ids[2];
    struct peer *p = start_listener(all, address);
    struct raw_pipe pipe = client_open(address, offer, name, ids, true);

    peer_expect(p, "pipe 0 %s", name);
    exchange(p, &pipe, 0, messages, n);
    pipe_close(&pipe);
    peer_stop(p);
}

/* As the listener of a real client. */
static void exchange_as_listener(bool all, const struct wire_offer *offer, bool with_identity,
                                 const struct message *messages, size_t n)
{
    struct peer *p = start(all);
    struct raw_pipe pipe;
    int listener = raw_listen(our_address);

    peer_say(p, "connect uv://%s", our_address);
    peer_expect(p, "connected 0");
    pipe = listener_open(listener, offer, with_identity);
    exchange(p, &pipe, 0, messages, n);
    pipe_close(&pipe);
    close(listener);
    peer_stop(p);
}

TEST(client_exchanges_every_kind_of_message_with_a_real_listener)
{
    exchange_as_client(false, &plain, "client", every_kind, COUNT(every_kind));
}

TEST(client_that_offers_uv_and_basic_only_gets_uv_and_basic)
{
    exchange_as_client(true, &plain, "", &one_of_tensors, 1);
}

TEST(client_may_bring_an_identity_that_a_real_listener_skips)
{
    exchange_as_client(false, &tenrec, "worker0", &one_of_payloads, 1);
}

TEST(listener_exchanges_every_kind_of_message_with_a_real_client)
{
    exchange_as_listener(false, &plain, false, every_kind, COUNT(every_kind));
}

TEST(listener_forces_uv_and_basic_on_a_client_that_has_more)
{
    exchange_as_listener(true, &plain, false, &one_of_tensors, 1);
}

TEST(listener_may_answer_with_an_identity_that_a_real_client_skips)
{
    exchange_as_listener(false, &tenrec, true, &one_of_payloads, 1);
}

TEST(client_opens_several_pipes_in_any_order)
{
    char address[32];
    uint64_t ids[3][2];
    struct raw_pipe pipes[3];
    struct peer *p = start_listener(false, address);

    for (int i = 0; i < 3; i++)
        pipes[i] = client_open(address, &plain, "several", ids[i], false);
    for (int i = 2; i >= 0; i--) {
        pipes[i].channel = request_connection(address, ids[i][1]);
        pipes[i].reply = request_connection(address, ids[i][0]);
    }
    for (size_t i = 0; i < 3; i++)
        peer_expect(p, "pipe %zu several", i);
    for (size_t i = 0; i < 3; i++)
        exchange(p, &pipes[i], i, &one_of_targetless, 1);
    for (int i = 0; i < 3; i++)
        pipe_close(&pipes[i]);
    peer_stop(p);
}

TEST(client_may_send_messages_before_the_other_connections)
{
    char address[32];
    uint64_t ids[2];
    struct peer *p = start_listener(false, address);
    struct raw_pipe pipe = client_open(address, &plain, "early", ids, false);

    send_message(&pipe, "first", payloads, COUNT(payloads));
    send_message(&pipe, "second", payloads, 1);
    pipe.channel = request_connection(address, ids[1]);
    pipe.reply = request_connection(address, ids[0]);
    peer_expect(p, "pipe 0 early");
    peer_say(p, "read 0");
    expect_message(p, 0, "first", payloads, COUNT(payloads));
    peer_say(p, "read 0");
    expect_message(p, 0, "second", payloads, 1);
    pipe_close(&pipe);
    peer_stop(p);
}

TEST(listener_reads_pipelined_messages_of_a_real_client)
{
    struct peer *p = start(false);
    struct raw_pipe pipe;
    int listener = raw_listen(our_address);

    peer_say(p, "connect uv://%s", our_address);
    for (int i = 0; i < 20; i++)
        let_write(p, 0, i % 2 ? "odd" : "even", tensors, COUNT(tensors));
    pipe = listener_open(listener, &plain, false);
    for (int i = 0; i < 20; i++)
        receive_message(&pipe, i % 2 ? "odd" : "even", tensors, COUNT(tensors));
    for (int i = 0; i < 20; i++)
        peer_expect(p, "wrote 0");
    pipe_close(&pipe);
    close(listener);
    peer_stop(p);
}

TEST(real_peer_reports_the_end_when_we_close_early)
{
    char address[32];
    uint64_t ids[2];
    struct peer *p = start_listener(false, address);
    struct raw_pipe pipe = client_open(address, &plain, "short", ids, true);

    peer_expect(p, "pipe 0 short");
    peer_say(p, "read 0");
    pipe_close(&pipe);
    peer_expect_begin(p, "failed 0 read ");
    /* The listener lives on. */
    pipe = client_open(address, &plain, "next", ids, true);
    peer_expect(p, "pipe 1 next");
    peer_say(p, "close 1");
    peer_expect(p, "closed 1");
    assert_true(raw_ended(pipe.descriptor));
    pipe_close(&pipe);
    peer_stop(p);
}
