/* SPDX-License-Identifier: Apache-2.0 */
/* hostile_test.c - strangers that send what no worker sends: their connection ends, and the worker
 * serves the others.
 *
 *     hostile_test CONFIG */
#include "../testing.h"
#include "conformance/world.h"
#include "stranger.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <tenrec/log.h>
#include <unistd.h>

static const char *config_path;
static struct world w;
static struct side *a, *b;
static struct tally t;

static void set_up(void)
{
    world_open(&w, NULL, config_path, 2, NULL);
    a = &w.worker[0];
    b = &w.worker[1];
    stranger_open(chain_address(a->chain));
}

/* Whatever happened, the worker serves its peers. */
static void tear_down(void)
{
    stranger_close();
    atomic_store(&a->answers, true);
    atomic_store(&a->refuses, false);
    chain_resume(a->chain);
    send_ping(b, a->id, 5, &t);
    assert_becomes(side_count(b) > 0);
    world_close(&w);
}

static const struct head right_hello = {
    .kind = HEAD_HELLO, .type = -1, .count = 0, .length = 1000
};

static void say_hello(void)
{
    stranger_say(&right_hello, NULL, 0);
}

static void assert_cut(void)
{
    assert_becomes(stranger_is_cut());
    assert_int_equal(side_count(a), 0);
}

static void assert_head_is_cut(const struct head *h, const void *data, size_t len)
{
    say_hello();
    stranger_say(h, data, len);
    assert_cut();
}

/* A message with these tensors, whose list is whole. */
static size_t list_of(const struct tenrec_tensor_desc *d, uint32_t n, bool apart,
                      unsigned char *ret)
{
    unsigned char *at = ret;

    for (uint32_t i = 0; i < n; i++)
        at = head_tensor_write(at, &d[i], apart);
    return (size_t)(at - ret);
}

static struct tenrec_tensor_desc tensor(uint64_t bytes)
{
    return (struct tenrec_tensor_desc){ .bytes = bytes,
                                        .dtype = { TENREC_DTYPE_UINT, 8, 1 },
                                        .ndim = 1,
                                        .target = { TENREC_CPU, 0 },
                                        .shape = { (int64_t)bytes },
                                        .strides = { 1 } };
}

TEST_WITH(ucx_hostile_message_of_a_stranger_is_from_no_member, set_up, tear_down)
{
    const struct head h = { .kind = HEAD_MESSAGE, .sequence = 1, .type = 0x102, .length = 2 };
    tenrec_peer from = -7;

    say_hello();
    stranger_say(&h, "hi", 2);
    stranger_flush();
    assert_becomes((stranger_is_cut(), side_got(a, 0, &from)));
    assert_int_equal(from, TENREC_ANONYMOUS);
    assert_false(stranger_is_cut());
}

TEST_WITH(ucx_hostile_header_of_another_length_ends_the_connection, set_up, tear_down)
{
    stranger_send("short", 5, NULL, 0);
    assert_cut();
}

TEST_WITH(ucx_hostile_header_of_zeros_ends_the_connection, set_up, tear_down)
{
    static const unsigned char zeros[HEAD_LEN];

    stranger_send(zeros, sizeof zeros, NULL, 0);
    assert_cut();
}

TEST_WITH(ucx_hostile_message_before_the_hello_ends_the_connection, set_up, tear_down)
{
    const struct head h = { .kind = HEAD_MESSAGE, .type = 0x102 };

    stranger_say(&h, NULL, 0);
    assert_cut();
}

TEST_WITH(ucx_hostile_second_hello_ends_the_connection, set_up, tear_down)
{
    struct head h = right_hello;

    h.sequence = 1;
    assert_head_is_cut(&h, NULL, 0);
}

TEST_WITH(ucx_hostile_hello_for_another_life_ends_the_connection, set_up, tear_down)
{
    struct head h = right_hello;

    h.length++;
    stranger_say(&h, NULL, 0);
    assert_cut();
}

TEST_WITH(ucx_hostile_hello_of_a_member_with_another_incarnation_makes_no_member, set_up, tear_down)
{
    const struct head m = { .kind = HEAD_MESSAGE, .sequence = 1, .type = 0x102 };
    struct head h = right_hello;
    tenrec_peer from = -7;

    h.type = b->id;
    h.id = 1;
    stranger_say(&h, NULL, 0);
    stranger_say(&m, NULL, 0);
    stranger_flush();
    assert_becomes((stranger_is_cut(), side_got(a, 0, &from)));
    assert_int_equal(from, TENREC_ANONYMOUS);
}

TEST_WITH(ucx_hostile_number_that_was_used_ends_the_connection, set_up, tear_down)
{
    const struct head h = { .kind = HEAD_MESSAGE, .sequence = 0, .type = 0x102 };

    assert_head_is_cut(&h, NULL, 0);
}

TEST_WITH(ucx_hostile_messages_before_their_turn_end_the_connection, set_up, tear_down)
{
    struct head h = { .kind = HEAD_MESSAGE, .sequence = 2, .type = 0x102 };

    say_hello();
    for (int i = 0; i < 5000; i++, h.sequence++) {
        stranger_say(&h, NULL, 0);
        stranger_is_cut();
    }
    assert_cut();
}

TEST_WITH(ucx_hostile_payload_of_another_length_ends_the_connection, set_up, tear_down)
{
    const struct head h = { .kind = HEAD_MESSAGE, .sequence = 1, .type = 0x102, .length = 100 };

    assert_head_is_cut(&h, "short", 5);
}

TEST_WITH(ucx_hostile_count_of_tensors_ends_the_connection, set_up, tear_down)
{
    const struct head h = {
        .kind = HEAD_MESSAGE, .sequence = 1, .type = 0x102, .count = UINT32_MAX, .list_len = 64
    };
    static const unsigned char data[64];

    assert_head_is_cut(&h, data, sizeof data);
}

TEST_WITH(ucx_hostile_list_beyond_its_data_ends_the_connection, set_up, tear_down)
{
    const struct head h = {
        .kind = HEAD_MESSAGE, .sequence = 1, .type = 0x102, .count = 1, .list_len = UINT64_MAX
    };
    static const unsigned char data[80];

    assert_head_is_cut(&h, data, sizeof data);
}

TEST_WITH(ucx_hostile_payload_beyond_the_limit_ends_the_connection, set_up, tear_down)
{
    const struct tenrec_tensor_desc d = tensor(0);
    unsigned char list[200];
    const struct head h = { .kind = HEAD_MESSAGE,
                            .flags = HEAD_APART,
                            .sequence = 1,
                            .type = 0x102,
                            .count = 1,
                            .length = UINT64_MAX,
                            .list_len = list_of(&d, 1, false, list) };

    assert_head_is_cut(&h, list, h.list_len);
}

TEST_WITH(ucx_hostile_tensors_beyond_any_memory_end_the_connection, set_up, tear_down)
{
    struct tenrec_tensor_desc d[2] = { tensor(8), tensor(8) };
    unsigned char list[400];
    struct head h = { .kind = HEAD_MESSAGE, .sequence = 1, .type = 0x102, .count = 2 };

    d[0].bytes = d[1].bytes = UINT64_MAX;
    h.list_len = list_of(d, 2, true, list);
    assert_head_is_cut(&h, list, h.list_len);
}

/* A message in two parts is answered, and the next one is delivered. */
static void assert_dropped_alone(const struct head *h, const void *list, uint32_t apart)
{
    const struct head next = { .kind = HEAD_MESSAGE, .sequence = 2, .type = 0x102, .id = 9 };
    const struct head part = { .kind = HEAD_PART, .sequence = 1, .count = apart };

    say_hello();
    stranger_say(h, list, h->list_len);
    stranger_say(&part, "eight123", 8);
    assert_becomes(stranger_answers() >= 2); /* the hello and the exception */
    stranger_say(&next, NULL, 0);
    stranger_flush();
    assert_becomes((stranger_is_cut(), side_got(a, 0, NULL)));
    assert_int_equal(side_got(a, 0, NULL)->id, 9);
}

TEST_WITH(ucx_hostile_tensor_beyond_the_limit_is_dropped_alone, set_up, tear_down)
{
    struct tenrec_tensor_desc d = tensor(8);
    unsigned char list[200];
    struct head h = { .kind = HEAD_MESSAGE, .sequence = 1, .type = 0x102, .count = 1 };

    d.bytes = UINT64_C(1) << 40;
    h.list_len = list_of(&d, 1, true, list);
    assert_dropped_alone(&h, list, 1);
}

TEST_WITH(ucx_hostile_payload_beyond_the_limit_is_dropped_beside_tensors, set_up, tear_down)
{
    const struct tenrec_tensor_desc d = tensor(0);
    unsigned char list[200];
    const struct head h = { .kind = HEAD_MESSAGE,
                            .flags = HEAD_APART,
                            .sequence = 1,
                            .type = 0x102,
                            .count = 1,
                            .length = UINT64_C(1) << 40,
                            .list_len = list_of(&d, 1, false, list) };

    assert_dropped_alone(&h, list, 0);
}

TEST_WITH(ucx_hostile_tensor_without_its_bytes_ends_the_connection, set_up, tear_down)
{
    const struct tenrec_tensor_desc d = tensor(4000);
    unsigned char list[200];
    const struct head h = { .kind = HEAD_MESSAGE,
                            .sequence = 1,
                            .type = 0x102,
                            .count = 1,
                            .list_len = list_of(&d, 1, false, list) };

    assert_head_is_cut(&h, list, h.list_len); /* inline, and not there */
}

TEST_WITH(ucx_hostile_tensor_for_a_device_ends_the_connection, set_up, tear_down)
{
    struct tenrec_tensor_desc d = tensor(4);
    unsigned char list[200];
    struct head h = { .kind = HEAD_MESSAGE, .sequence = 1, .type = 0x102, .count = 1 };

    d.target.kind = TENREC_CUDA;
    h.list_len = list_of(&d, 1, false, list);
    memset(list + h.list_len, 1, 4);
    assert_head_is_cut(&h, list, h.list_len + 4);
}

/* A message of one tensor of 20000 bytes apart, then this part. */
static void assert_part_is_cut(const struct head *part, size_t len)
{
    static const unsigned char bytes[30000];
    const struct tenrec_tensor_desc d = tensor(20000);
    unsigned char list[200];
    const struct head h = { .kind = HEAD_MESSAGE,
                            .sequence = 1,
                            .type = 0x102,
                            .count = 1,
                            .list_len = list_of(&d, 1, true, list) };

    say_hello();
    stranger_say(&h, list, h.list_len);
    stranger_say(part, bytes, len);
    assert_cut();
}

TEST_WITH(ucx_hostile_part_of_another_length_ends_the_connection, set_up, tear_down)
{
    const struct head part = { .kind = HEAD_PART, .sequence = 1, .count = 1 };

    assert_part_is_cut(&part, 20001);
}

TEST_WITH(ucx_hostile_part_of_no_tensor_ends_the_connection, set_up, tear_down)
{
    const struct head part = { .kind = HEAD_PART, .sequence = 1, .count = 2 };

    assert_part_is_cut(&part, 20000);
}

TEST_WITH(ucx_hostile_payload_that_is_not_apart_ends_the_connection, set_up, tear_down)
{
    const struct head part = { .kind = HEAD_PART, .sequence = 1, .count = 0 };

    assert_part_is_cut(&part, 0);
}

TEST_WITH(ucx_hostile_part_of_no_message_ends_the_connection, set_up, tear_down)
{
    const struct head part = { .kind = HEAD_PART, .sequence = 0, .count = 0 };

    assert_part_is_cut(&part, 0);
}

TEST_WITH(ucx_hostile_note_to_a_callee_ends_the_connection, set_up, tear_down)
{
    const struct head h = { .kind = HEAD_TAKEN, .length = 1 };

    assert_head_is_cut(&h, NULL, 0);
}

TEST_WITH(ucx_hostile_requests_beyond_the_window_end_the_connection, set_up, tear_down)
{
    enum { PIECE = 1 << 20 };
    struct head h = { .kind = HEAD_MESSAGE, .sequence = 1, .type = 0x102, .length = PIECE };
    char *bytes = calloc(1, PIECE);

    atomic_store(&a->refuses, true);
    say_hello();
    for (int i = 0; i < 80 && !stranger_is_cut(); i++, h.sequence++) {
        stranger_say(&h, bytes, PIECE);
        stranger_flush();
    }
    assert_cut();
    free(bytes);
}

/* A right message with some bytes changed: it is delivered or ends the connection. */
TEST_WITH(ucx_hostile_changed_bytes_do_no_harm, set_up, tear_down)
{
    unsigned char list[512], wire[HEAD_LEN];
    const struct tenrec_tensor_desc d[2] = { tensor(40), tensor(20) };
    unsigned seed = 1;

    atomic_store(&a->discards, true);
    for (int i = 0; i < 300; i++) {
        struct head h = { .kind = HEAD_MESSAGE, .sequence = 1, .type = 0x180, .count = 2 };
        size_t len;

        h.list_len = list_of(d, 2, false, list);
        len = h.list_len + 60;
        memset(list + h.list_len, 7, 60);
        head_write(wire, &h);
        for (int k = 0; k < 1 + i % 3; k++) {
            const unsigned r = (unsigned)rand_r(&seed);
            const unsigned at = (r >> 8) % (HEAD_LEN + (unsigned)len);
            unsigned char *byte = at < HEAD_LEN ? &wire[at] : &list[at - HEAD_LEN];

            *byte = (unsigned char)(i % 2 ? *byte ^ (1u << (r & 7)) : r);
        }
        say_hello();
        stranger_send(wire, sizeof wire, list, len);
        stranger_flush();
        stranger_close();
        stranger_open(chain_address(a->chain));
    }
}

static void on_log(void *arg, enum tenrec_log_level level, const char *part, const char *text)
{
    (void)arg, (void)level, (void)part, (void)text;
}

/* Connects with plain TCP, and sends nothing. */
static int connect_in_silence(const char *address)
{
    const char *colon = strrchr(address, ':');
    const struct sockaddr_in at = { .sin_family = AF_INET,
                                    .sin_port = htons((uint16_t)strtoul(colon + 1, NULL, 10)),
                                    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&at, sizeof at), 0);
    return fd;
}

TEST_WITH(ucx_hostile_silent_connection_ends_when_the_worker_shuts_down, set_up, NULL)
{
    const int fd = connect_in_silence(chain_address(a->chain));
    char byte;

    stranger_close();
    world_close(&w);
    assert_becomes(recv(fd, &byte, 1, MSG_DONTWAIT) >= 0 || errno != EAGAIN);
    close(fd);
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    config_path = argv[1];
    tenrec_log_set_callback(on_log, NULL);
    return testing_run(NULL, NULL);
}
