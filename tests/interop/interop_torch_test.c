/* SPDX-License-Identifier: Apache-2.0 */
/* interop_torch_test.c - the tensorpipe plugin and a torch worker with its
 * default transports and channels: one calls the other.
 */
#include "peer.h"
#include "side.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const char *config, *worker;

static const uint64_t sizes[] = { 0, 1, 1000, 70000, 5 * MIB, 64 * MIB };

/* Its address goes to `ret`; `us`: where it finds worker "tenrec". */
static struct peer *start(const char *us, char ret[64])
{
    const char *argv[] = { "/usr/bin/python3", worker, NULL };
    struct peer *p;
    const char *said;

    if (access(argv[0], X_OK) < 0) {
        print_message("%s is not installed\n", argv[0]);
        skip();
    }
    p = peer_start_program(argv);
    peer_say(p, "start %s", us);
    said = peer_expect_begin(p, "");
    if (strcmp(said, "no torch") == 0) {
        print_message("python3-torch is not installed\n");
        peer_stop(p);
        skip();
    }
    assert_memory_equal(said, "address ", 8);
    snprintf(ret, 64, "%s", said + 8);
    return p;
}

static void assert_info(struct side *s, const char *key, const char *expected)
{
    char value[SIDE_INFO];

    side_info(s, key, value);
    if (!strstr(value, expected))
        fail_msg("%s is '%s', expected '%s'", key, value, expected);
}

static unsigned digit(char c)
{
    return (unsigned)(c <= '9' ? c - '0' : c - 'a' + 10);
}

/* A call that torch pickled as `what` says: "not async", then that. */
static struct tenrec_msg *pickled_request(struct peer *p, const char *what, int64_t id,
                                          const uint64_t *len, uint32_t n)
{
    struct tenrec_msg *msg;
    unsigned char *to;
    const char *hex;

    peer_say(p, "%s %llu", what, (unsigned long long)len[0]);
    hex = peer_expect_begin(p, "pickle ");
    msg = side_request(id, (unsigned long)id, 1 + strlen(hex) / 2, len, n);
    to = msg->payload;
    *to++ = 0;
    for (; *hex; hex += 2)
        *to++ = (unsigned char)(digit(hex[0]) << 4 | digit(hex[1]));
    return msg;
}

/* operator.add(tensor, 1) */
static struct tenrec_msg *add_request(struct peer *p, int64_t id, uint64_t len)
{
    return pickled_request(p, "pickle", id, &len, 1);
}

/* views(tensor, the last 3/4 of it): two tensors, one storage. */
static struct tenrec_msg *views_request(struct peer *p, int64_t id, uint64_t len)
{
    const uint64_t both[2] = { len, 0 };
    struct tenrec_msg *msg = pickled_request(p, "pickle_views", id, both, 2);
    struct tenrec_tensor_desc *whole = tenrec_msg_tensor(msg, 0);
    struct tenrec_tensor_desc *part = tenrec_msg_tensor(msg, 1);

    free(part->data);
    *part = *whole;
    part->same_storage = 1;
    part->byte_offset = len / 4;
    part->shape[0] = (int64_t)(len - len / 4);
    return msg;
}

TEST(agent_calls_a_torch_worker)
{
    char address[64];
    struct peer *p = start("", address);
    struct side s;

    side_open(&s, config, address);
    for (uint32_t i = 0; i < COUNT(sizes); i++) {
        struct tenrec_msg *answer;
        struct tenrec_tensor_desc *t;

        side_send(&s, add_request(p, i, sizes[i]));
        answer = side_answer(&s, i);
        assert_int_equal(answer->type, TENREC_MSG_RET);
        assert_int_equal(answer->n_tensors, 1);
        t = tenrec_msg_tensor(answer, 0);
        assert_int_equal(t->bytes, sizes[i]);
        for (uint64_t at = 0; at < t->bytes; at++)
            ((unsigned char *)t->data)[at]--;
        side_check_pattern(t->data, i + 1, t->bytes);
        answer->release(answer);
    }
    assert_info(&s, "peer.1.transport", "uv");
    side_close(&s);
    peer_stop(p);
}

TEST(agent_sends_a_torch_worker_two_views_of_one_storage)
{
    static const uint64_t len[] = { 8, 70000, 5 * MIB };
    char address[64];
    struct peer *p = start("", address);
    struct side s;

    side_open(&s, config, address);
    for (uint32_t i = 0; i < COUNT(len); i++) {
        const struct tenrec_tensor_desc *whole, *part;
        struct tenrec_msg *answer;

        side_send(&s, views_request(p, i, len[i]));
        answer = side_answer(&s, i);
        assert_int_equal(answer->type, TENREC_MSG_RET);
        assert_int_equal(answer->n_tensors, 2); /* else it raised: they share nothing there */
        whole = tenrec_msg_tensor(answer, 0);
        part = tenrec_msg_tensor(answer, 1);
        assert_int_equal(part->same_storage, 1);
        assert_ptr_equal(part->data, whole->data);
        assert_int_equal(part->bytes, len[i]);
        assert_int_equal(part->byte_offset, len[i] / 4);
        assert_int_equal(part->shape[0], len[i] - len[i] / 4);
        for (uint64_t at = 0; at < len[i]; at++)
            ((unsigned char *)whole->data)[at]--;
        side_check_pattern(whole->data, i + 1, len[i]);
        answer->release(answer);
    }
    side_close(&s);
    peer_stop(p);
}

TEST(agent_calls_a_torch_worker_many_times_at_once)
{
    char address[64];
    struct peer *p = start("", address);
    struct side s;

    side_open(&s, config, address);
    for (int64_t id = 0; id < 100; id++)
        side_send(&s, add_request(p, id, 1000 * (uint64_t)id));
    for (int64_t id = 0; id < 100; id++) {
        struct tenrec_msg *answer = side_answer(&s, id);

        assert_int_equal(answer->type, TENREC_MSG_RET);
        assert_int_equal(tenrec_msg_tensor(answer, 0)->bytes, 1000 * id);
        answer->release(answer);
    }
    side_close(&s);
    peer_stop(p);
}

/* The answer is the pickled call itself, without the byte before it. */
static void strip(struct tenrec_msg *msg)
{
    char *payload = msg->payload;

    memmove(payload, payload + 1, (size_t)--msg->payload_len);
}

TEST(torch_worker_calls_the_agent)
{
    char address[64];
    struct peer *p;
    struct side s;

    side_open(&s, config, NULL);
    s.on_request = strip;
    p = start(side_address(&s), address);
    for (uint32_t i = 0; i < COUNT(sizes); i++) {
        peer_say(p, "call %llu", (unsigned long long)sizes[i]);
        peer_expect(p, "same");
    }
    assert_info(&s, "callers", ", uv, ");
    assert_int_equal(atomic_load(&s.requests), COUNT(sizes));
    peer_stop(p);
    side_close(&s);
}

TEST(torch_worker_sends_the_agent_two_views_of_one_storage)
{
    static const uint64_t len[] = { 8, 70000, 5 * MIB };
    char address[64];
    struct peer *p;
    struct side s;

    side_open(&s, config, NULL);
    s.on_request = strip;
    p = start(side_address(&s), address);
    for (uint32_t i = 0; i < COUNT(len); i++) {
        peer_say(p, "call_views %llu", (unsigned long long)len[i]);
        peer_expect(p, "same");
    }
    peer_stop(p);
    side_close(&s);
}

TEST(agent_hears_that_a_torch_worker_was_killed)
{
    char address[64];
    struct peer *p = start("", address);
    struct tenrec_msg *answer;
    struct side s;

    side_open(&s, config, address);
    side_send(&s, add_request(p, 1, 1000));
    answer = side_answer(&s, 1);
    answer->release(answer);
    peer_kill(p);
    assert_becomes(atomic_load(&s.lost) == 1);
    side_close(&s);
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: %s CONFIG WORKER.py\n", argv[0]);
        return 2;
    }
    config = argv[1];
    worker = argv[2];
    return testing_run(NULL, NULL);
}
