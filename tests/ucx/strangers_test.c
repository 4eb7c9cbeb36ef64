/* SPDX-License-Identifier: Apache-2.0 */
/* strangers_test.c - what callers that are no members can make a worker hold.
 *
 *     strangers_test CONFIG */
#include "../testing.h"
#include "conformance/world.h"
#include "stranger.h"

#include <stdlib.h>
#include <tenrec/log.h>

enum { ANNOUNCED = 6 << 20 /* two of them fit */ };

static const char *config_path;
static struct world w;
static struct side *a, *b;
static struct tally t;
static char *bytes;

static const struct head hello = { .kind = HEAD_HELLO, .type = -1, .count = 0, .length = 1000 };

static void set_up(void)
{
    world_open(&w, NULL, config_path, 2, NULL);
    a = &w.worker[0];
    b = &w.worker[1];
    bytes = calloc(1, ANNOUNCED);
    stranger_open(chain_address(a->chain));
    stranger_say(&hello, NULL, 0);
}

/* Whatever happened, the worker serves its members. */
static void tear_down(void)
{
    const size_t before = side_count(a);

    stranger_close();
    send_msg(b, a->id, make_request(9, bytes, ANNOUNCED, 0, &t), &t);
    assert_becomes(side_count(a) == before + 1);
    world_close(&w);
    free(bytes);
}

/* A message whose tensor is to come. */
static void announce_tensor(uint64_t sequence)
{
    const struct tenrec_tensor_desc d = { .bytes = ANNOUNCED,
                                          .dtype = { TENREC_DTYPE_UINT, 8, 1 },
                                          .ndim = 1,
                                          .target = { TENREC_CPU, 0 },
                                          .shape = { ANNOUNCED },
                                          .strides = { 1 } };
    struct head h = { .kind = HEAD_MESSAGE, .sequence = sequence, .type = 0x102, .count = 1 };
    unsigned char list[200];

    h.list_len = (uint64_t)(head_tensor_write(list, &d, true) - list);
    stranger_say(&h, list, h.list_len);
}

/* A message whose payload is to come, and which has a tensor without bytes. */
static void announce_payload(uint64_t sequence)
{
    const struct tenrec_tensor_desc d = { .dtype = { TENREC_DTYPE_UINT, 8, 1 }, .ndim = 1 };
    struct head h = { .kind = HEAD_MESSAGE,
                      .flags = HEAD_APART,
                      .sequence = sequence,
                      .type = 0x102,
                      .count = 1,
                      .length = ANNOUNCED };
    unsigned char list[200];

    h.list_len = (uint64_t)(head_tensor_write(list, &d, false) - list);
    stranger_say(&h, list, h.list_len);
}

TEST_WITH(ucx_strangers_have_no_memory_for_tensors_beyond_the_limit, set_up, tear_down)
{
    for (uint64_t i = 1; i <= 3; i++)
        announce_tensor(i);
    announce_payload(4); /* after them, and beyond the limit, too */
    assert_becomes(stranger_is_cut());
    assert_int_equal(atomic_load(&a->placed), 2);
}

TEST_WITH(ucx_strangers_give_back_what_they_held, set_up, tear_down)
{
    for (int round = 1; round <= 3; round++) {
        announce_tensor(1);
        announce_tensor(2);
        assert_becomes((stranger_is_cut(), atomic_load(&a->placed) == 2 * round));
        stranger_close();
        stranger_open(chain_address(a->chain));
        stranger_say(&hello, NULL, 0);
    }
}

TEST_WITH(ucx_strangers_hold_no_payloads_beyond_the_limit, set_up, tear_down)
{
    for (uint64_t i = 1; i <= 3; i++)
        announce_payload(i);
    assert_becomes(stranger_is_cut());
    assert_int_equal(atomic_load(&a->placed), 2);
}

TEST_WITH(ucx_strangers_hold_no_early_messages_beyond_the_limit, set_up, tear_down)
{
    struct head h = { .kind = HEAD_MESSAGE, .sequence = 2, .type = 0x102, .length = 1 << 20 };

    for (int i = 0; i < 40 && !stranger_is_cut(); i++, h.sequence++) {
        stranger_say(&h, bytes, h.length);
        stranger_flush();
    }
    assert_becomes(stranger_is_cut());
    assert_int_equal(side_count(a), 0);
}

TEST_WITH(ucx_strangers_that_read_no_answer_get_no_more, set_up, tear_down)
{
    const struct head ask = { .kind = HEAD_MESSAGE, .sequence = 1, .type = 0x102, .id = 5 };
    static struct tally answers;
    struct tenrec_route route;

    stranger_say(&ask, NULL, 0);
    assert_becomes((stranger_is_cut(), side_got(a, 0, NULL)));
    route = side_got(a, 0, NULL)->route;
    for (int i = 0; i < 8 && atomic_load(&answers.failed) == 0; i++) {
        struct tenrec_msg *msg = make_request(5, bytes, ANNOUNCED, 0, &answers);

        msg->type = TENREC_MSG_RET;
        msg->route = route;
        send_msg(a, TENREC_ANONYMOUS, msg, &answers);
    }
    assert_int_equal(atomic_load(&answers.failed), 1);
    assert_int_equal(atomic_load(&answers.last_error), TENREC_EAGAIN);
}

static void on_log(void *arg, enum tenrec_log_level level, const char *part, const char *text)
{
    (void)arg, (void)level, (void)part, (void)text;
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    config_path = argv[1];
    setenv("UCX_RNDV_THRESH", "inf", 1); /* bytes come without being asked for */
    tenrec_log_set_callback(on_log, NULL);
    return testing_run(NULL, NULL);
}
