/* SPDX-License-Identifier: Apache-2.0 */
/* interop_agent_test.c - the tensorpipe plugin, loaded as the core loads it,
 * with the real libtensorpipe: first calling it, then called by it.
 */
#include "peer.h"
#include "side.h"

#include "wire/tensorlist.h"

#include <stdio.h>
#include <stdlib.h>

#define MIB ((size_t)1 << 20)
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const char *config;
/* The choice of the agent and a peer with all transports and channels. */
static const char *channel = "basic";

static const size_t sizes[] = { 0, 1, 100, 4096, 65535, 65536, 1000000, 64 * MIB };
static const uint64_t tensors[] = { 16, 0, 70000, 1 };
static const uint64_t big_tensors[] = { 64 * MIB };

static bool has_all(bool all)
{
    return all || strcmp(channel, "basic") != 0;
}

static struct peer *start(bool all)
{
    struct peer *p = peer_start(has_all(all));

    if (!p) {
        print_message("libtensorpipe is not installed\n");
        skip();
    }
    return p;
}

/* ---- we call ---- */

/* A peer with all transports also listens on libtensorpipe's shm. */
static void let_listen(struct peer *p, bool all)
{
    peer_say(p, "listen uv://127.0.0.1%s", has_all(all) ? " shm://" : "");
}

static struct peer *start_echo(bool all, struct side *s)
{
    struct peer *p = start(all);

    peer_say(p, "echo");
    let_listen(p, all);
    side_open(s, config, peer_expect_begin(p, "listening "));
    return p;
}

static void call(struct side *s, int64_t id, size_t len, const uint64_t *lengths, uint32_t n)
{
    side_send(s, side_request(id, (unsigned long)id, len, lengths, n));
    side_check(side_answer(s, id), (unsigned long)id, len, lengths, n);
}

TEST(agent_calls_a_real_listener_with_payloads_of_all_sizes)
{
    struct side s;
    struct peer *p = start_echo(false, &s);

    for (size_t i = 0; i < COUNT(sizes); i++)
        call(&s, (int64_t)i, sizes[i], NULL, 0);
    peer_expect(p, "pipe 0 worker0");
    assert_int_equal(atomic_load(&s.sent), COUNT(sizes));
    side_close(&s);
    peer_stop(p);
}

TEST(agent_sends_tensors_to_a_real_listener)
{
    struct side s;
    struct peer *p = start_echo(false, &s);

    for (uint32_t n = 0; n <= COUNT(tensors); n++)
        call(&s, n, 10, tensors, n);
    call(&s, 50, 0, big_tensors, 1);
    side_close(&s);
    peer_stop(p);
}

TEST(agent_uses_its_best_transport_with_a_listener_that_has_more)
{
    char used[SIDE_INFO];
    struct side s;
    struct peer *p = start_echo(true, &s);

    call(&s, 1, 1000, tensors, COUNT(tensors));
    side_info(&s, "peer.1.channel", used);
    assert_string_equal(used, channel);
    side_info(&s, "peer.1.transport", used);
    assert_string_equal(used, "uv");
    side_close(&s);
    peer_stop(p);
}

TEST(agent_pipelines_calls_to_a_real_listener)
{
    struct side s;
    struct peer *p = start_echo(false, &s);

    for (uint32_t id = 0; id < 100; id++)
        side_send(&s, side_request(id, id, (size_t)id * id * 7, tensors, id % 3));
    for (uint32_t id = 100; id-- > 0;)
        side_check(side_answer(&s, id), id, (size_t)id * id * 7, tensors, id % 3);
    side_close(&s);
    peer_stop(p);
}

TEST(agent_connects_again_after_a_real_listener_closed_the_pipe)
{
    struct side s;
    struct peer *p = start(false);

    let_listen(p, false);
    side_open(&s, config, peer_expect_begin(p, "listening "));
    side_send(&s, side_request(1, 1, 10, NULL, 0));
    peer_expect(p, "pipe 0 worker0");
    peer_say(p, "read 0");
    peer_expect_begin(p, "message 0 m p::4:");
    peer_say(p, "close 0");
    assert_becomes(atomic_load(&s.lost) == 1);
    assert_int_equal(s.why.code, TENREC_EPEER_LOST);

    side_send(&s, side_request(2, 2, 10, NULL, 0));
    peer_expect(p, "pipe 1 worker0");
    peer_say(p, "read 1");
    peer_expect_begin(p, "message 1 m p::4:");
    side_close(&s);
    peer_stop(p);
}

TEST(agent_fails_a_call_when_the_real_listener_is_gone)
{
    struct side s;
    struct peer *p = start_echo(false, &s);

    call(&s, 1, 10, NULL, 0);
    peer_stop(p);
    assert_becomes(atomic_load(&s.lost) == 1);
    side_send(&s, side_request(2, 2, 10, NULL, 0));
    /* Either the connect is refused, or the pipe is lost with the call. */
    assert_becomes(atomic_load(&s.failed) + atomic_load(&s.lost) >= 2);
    side_close(&s);
}

TEST(real_peer_sees_the_end_when_the_agent_disconnects)
{
    struct side s;
    tenrec_error err;
    struct peer *p = start(false);

    let_listen(p, false);
    side_open(&s, config, peer_expect_begin(p, "listening "));
    side_send(&s, side_request(1, 1, 10, NULL, 0));
    peer_expect(p, "pipe 0 worker0");
    peer_say(p, "read 0");
    peer_expect_begin(p, "message 0 m");
    peer_say(p, "read 0");
    assert_status(chain_disconnect(s.chain, SIDE_PEER, &err), &err);
    peer_expect_begin(p, "failed 0 read ");
    side_close(&s);
    peer_stop(p);
}

/* ---- we are called ---- */

static struct peer *start_client(bool all, struct side *s)
{
    struct peer *p = start(all);

    side_open(s, config, NULL);
    peer_say(p, "connect uv://%s", side_address(s));
    peer_expect(p, "connected 0");
    return p;
}

/* The tensor list of uint8 tensors, as the peer's words take it. */
static const char *list_hex(const uint64_t *lengths, uint32_t n)
{
    static char text[2 * TENSORLIST_MAX(8) + 1];
    struct tenrec_tensor_desc desc[8] = { 0 };
    unsigned char list[TENSORLIST_MAX(8)];
    tenrec_error err;
    size_t len;

    for (uint32_t i = 0; i < n; i++)
        desc[i] = (struct tenrec_tensor_desc){ .bytes = lengths[i],
                                               .dtype = { TENREC_DTYPE_UINT, 8, 1 },
                                               .ndim = 1,
                                               .device = { TENREC_CPU, 0 },
                                               .shape = { (int64_t)lengths[i] },
                                               .strides = { 1 } };
    assert_status(tensorlist_write(list, sizeof list, desc, n, sizeof desc[0], false, &len, &err),
                  &err);
    for (size_t i = 0; i < len; i++)
        snprintf(text + 2 * i, 3, "%02x", list[i]);
    return text;
}

/* A request of torch's form on the peer's pipe; `kind` is 't' or 'n'. */
static void let_call(struct peer *p, size_t number, unsigned type, unsigned id, size_t len,
                     const uint64_t *lengths, uint32_t n, char kind)
{
    char parts[256] = "";
    size_t at = 0;

    for (uint32_t i = 0; i < n; i++)
        at += (size_t)snprintf(parts + at, sizeof parts - at, " %c::s%u:%llu", kind, id + i + 1,
                               (unsigned long long)lengths[i]);
    peer_say(p, "write %zu m p::x%02x%02x0000 p::x%02x00000000000000 p::s%u:%zu p::x%s%s", number,
             type & 0xff, type >> 8, id, id, len, list_hex(lengths, n), parts);
}

/* Its answer: the same payload and tensors, the same list in our words. */
static void expect_answer(struct peer *p, size_t number, unsigned id, size_t len,
                          const uint64_t *lengths, uint32_t n)
{
    const unsigned char type[4] = { 3, 2, 0, 0 }, id_bytes[8] = { (unsigned char)id };
    char line[1024];
    const char *rest;
    size_t at;

    at = (size_t)snprintf(
        line, sizeof line, "message %zu m p::4:%016llx p::8:%016llx p::%zu:%016llx p::", number,
        (unsigned long long)peer_hash(type, 4), (unsigned long long)peer_hash(id_bytes, 8), len,
        (unsigned long long)peer_pattern_hash(id, len));
    assert_true(at < sizeof line);
    rest = strchr(peer_expect_begin(p, line), ' ');
    at = 0;
    line[0] = '\0';
    for (uint32_t i = 0; i < n; i++)
        at += (size_t)snprintf(line + at, sizeof line - at, " t::%llu:%016llx",
                               (unsigned long long)lengths[i],
                               (unsigned long long)peer_pattern_hash(id + i + 1, lengths[i]));
    assert_string_equal(rest ? rest : "", line);
}

static void called(struct peer *p, size_t number, unsigned id, size_t len, const uint64_t *lengths,
                   uint32_t n, char kind)
{
    peer_say(p, "read %zu", number);
    let_call(p, number, TENREC_MSG_CALL, id, len, lengths, n, kind);
    peer_expect(p, "wrote %zu", number);
    expect_answer(p, number, id, len, lengths, n);
}

TEST(real_client_calls_the_agent_with_payloads_of_all_sizes)
{
    struct side s;
    struct peer *p = start_client(false, &s);

    for (unsigned i = 0; i < COUNT(sizes); i++)
        called(p, 0, i, sizes[i], NULL, 0, 't');
    assert_int_equal(s.last_from, TENREC_ANONYMOUS);
    side_close(&s);
    peer_stop(p);
}

TEST(real_client_sends_tensors_to_the_agent)
{
    struct side s;
    struct peer *p = start_client(false, &s);

    for (unsigned n = 0; n <= COUNT(tensors); n++)
        called(p, 0, n, 10, tensors, n, 't');
    called(p, 0, 100, 0, big_tensors, 1, 't');
    side_close(&s);
    peer_stop(p);
}

TEST(real_client_is_told_devices_for_tensors_without_target)
{
    struct side s;
    struct peer *p = start_client(false, &s);

    for (unsigned n = 1; n <= COUNT(tensors); n++)
        called(p, 0, n, 10, tensors, n, 'n');
    side_close(&s);
    peer_stop(p);
}

TEST(real_client_with_more_transports_gets_the_transports_of_the_agent)
{
    struct side s;
    struct peer *p = start_client(true, &s);

    called(p, 0, 1, 1000, tensors, COUNT(tensors), 't');
    side_close(&s);
    peer_stop(p);
}

TEST(real_client_pipelines_calls_on_several_pipes)
{
    struct side s;
    struct peer *p = start_client(false, &s);

    for (size_t i = 1; i < 4; i++) {
        peer_say(p, "connect uv://%s", side_address(&s));
        peer_expect(p, "connected %zu", i);
    }
    for (unsigned id = 0; id < 80; id++) {
        peer_say(p, "read %u", id % 4);
        let_call(p, id % 4, TENREC_MSG_CALL, id, (size_t)id * 1000, tensors, id % 3,
                 id % 5 ? 't' : 'n');
    }
    for (unsigned id = 0; id < 80; id++)
        expect_answer(p, id % 4, id, (size_t)id * 1000, tensors, id % 3);
    side_close(&s);
    peer_stop(p);
}

TEST(agent_passes_any_message_type_through)
{
    struct side s;
    struct peer *p = start_client(false, &s);

    peer_say(p, "read 0");
    let_call(p, 0, TENREC_MSG_FORWARD_AUTOGRAD_REQ, 5, 20, NULL, 0, 't');
    expect_answer(p, 0, 5, 20, NULL, 0);
    assert_int_equal(s.last_type, TENREC_MSG_FORWARD_AUTOGRAD_REQ);
    side_close(&s);
    peer_stop(p);
}

TEST(agent_lives_on_when_a_real_client_closes_early)
{
    static const char *const before[] = { "", "read 0", "write 0 m p::x02010000",
                                          "write 0 m p::s1:67108864 p::s2:10" };

    for (size_t i = 0; i < COUNT(before); i++) {
        struct side s;
        struct peer *p = start_client(false, &s);

        if (before[i][0])
            peer_say(p, "%s", before[i]);
        peer_say(p, "close 0");
        peer_expect(p, "closed 0");
        peer_say(p, "connect uv://%s", side_address(&s));
        called(p, 1, 1, 100, tensors, COUNT(tensors), 't');
        side_close(&s);
        peer_stop(p);
    }
}

TEST(agent_ends_only_the_pipe_that_carries_nonsense)
{
    static const char *const nonsense[] = {
        "m",                                                  /* no payload at all */
        "m p::x02010000",                                     /* one */
        "m p::x020100 p::x0000000000000000 p::x p::x",        /* a type of three bytes */
        "m p::x02010000 p::x00 p::x p::x",                    /* an id of one */
        "m p::x02010000 p::x0000000000000000 p::x p::x p::x", /* five */
    };
    char failed[32];
    struct side s;
    struct peer *p = start_client(false, &s);

    for (size_t i = 0; i < COUNT(nonsense); i++) {
        peer_say(p, "connect uv://%s", side_address(&s));
        peer_expect(p, "connected %zu", i + 1);
        peer_say(p, "read %zu", i + 1);
        peer_say(p, "write %zu %s", i + 1, nonsense[i]);
        snprintf(failed, sizeof failed, "failed %zu read ", i + 1);
        peer_expect_begin(p, failed);
    }
    called(p, 0, 1, 100, tensors, COUNT(tensors), 't');
    side_close(&s);
    peer_stop(p);
}

TEST(agent_answers_a_bad_tensor_list_with_an_exception)
{
    static const char *const lists[] = { "p::x", "p::x80027473", "p::x800263",
                                         "p::x80027473 t::s1:100", "p::x n::s1:100" };
    const unsigned char type[4] = { 0x37, 2, 0, 0 };
    char exception[64];
    struct side s;
    struct peer *p = start_client(false, &s);

    snprintf(exception, sizeof exception, "message 0 m p::4:%016llx ",
             (unsigned long long)peer_hash(type, 4));
    for (size_t i = 0; i < COUNT(lists); i++) {
        peer_say(p, "read 0");
        peer_say(p, "write 0 m p::x02010000 p::x0700000000000000 p::s1:100 %s", lists[i]);
        peer_expect_begin(p, exception);
    }
    called(p, 0, 1, 100, tensors, COUNT(tensors), 't');
    assert_int_equal(atomic_load(&s.requests), 1);
    side_close(&s);
    peer_stop(p);
}

TEST(real_client_sees_the_end_when_the_agent_shuts_down)
{
    struct side s;
    struct peer *p = start_client(false, &s);

    called(p, 0, 1, 10, NULL, 0, 't');
    peer_say(p, "read 0");
    side_close(&s);
    peer_expect_begin(p, "failed 0 read ");
    peer_stop(p);
}

int main(int argc, char **argv)
{
    if (argc < 2 || argc > 3) {
        fprintf(stderr, "usage: %s CONFIG [CHANNEL]\n", argv[0]);
        return 2;
    }
    config = argv[1];
    if (argc > 2)
        channel = argv[2];
    return testing_run(NULL, NULL);
}
