/* SPDX-License-Identifier: Apache-2.0 */
/* budget_test.c - the memory that strangers make an agent hold is bounded for all together. */
#include "core/backend/account.h"
#include "core/backend/chain_layer.h"
#include "raw.h"

#include "node.h"
#include "wire/descriptor.h"
#include "wire/tensorlist.h"
#include <arpa/inet.h>
#include <endian.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- accounts alone ---- */

TEST(budget_refuses_beyond_its_limits_and_names_the_limit)
{
    const struct tp_options o = { .max_stranger_bytes = 1000, .max_source_bytes = 400 };
    const struct tenrec_budget *budget = chain_host.budget;
    struct tenrec_account *a = budget->open(), *b = budget->open();
    tenrec_error err;

    assert_int_equal(budget->take(a, 300, &o.strangers, &err), TENREC_OK);
    assert_int_equal(budget->take(a, 101, &o.strangers, &err), TENREC_EAGAIN);
    assert_non_null(strstr(err.text, "max_source_bytes (400)"));
    assert_non_null(strstr(err.text, "max_stranger_bytes (1000)"));
    assert_int_equal(budget->take(a, 100, &o.strangers, &err), TENREC_OK);
    /* A single message may be larger than the limit of a source, not than that of all. */
    assert_int_equal(budget->take(b, 601, &o.strangers, &err), TENREC_EAGAIN);
    assert_int_equal(budget->take(b, 600, &o.strangers, &err), TENREC_OK);
    assert_int_equal(accounts_held(), 1000);
    budget->give(a, 400);
    budget->give(b, 600);
    assert_int_equal(accounts_held(), 0);
    budget->close(a);
    budget->close(b);
}

/* ---- an agent ---- */

#define LIMIT (256u << 10)
#define LARGE 200000u /* more than a read buffer */

static struct node n[2];

static void setup(void)
{
    for (int i = 0; i < 2; i++) {
        node_init(&n[i], i);
        n[i].options.max_stranger_bytes = n[i].options.max_source_bytes = LIMIT;
        node_open(&n[i]);
    }
    nodes_start(n, 2);
}

static void teardown(void)
{
    group_close(n, 2);
    assert_int_equal(accounts_held(), 0);
}

static unsigned char frames[LARGE + 4096], back[2 * LIMIT];

/* A request with `len` bytes of payload, of which the last `missing` are not sent. */
static void raw_request(struct raw_pipe *p, int64_t id, size_t len, size_t missing)
{
    static const unsigned char zeros[LARGE];
    size_t all = raw_message(frames, TENREC_MSG_CALL, id, zeros, len);

    raw_send(p->fd[0], frames, all - missing);
}

static void assert_answered(struct raw_pipe *p, int64_t id, int32_t type)
{
    int64_t got;
    long len;

    assert_int_equal(raw_recv_message(p, &got, back, sizeof back - 1, &len), type);
    back[len] = 0;
    assert_int_equal(got, id);
}

static void assert_refused(struct raw_pipe *p, int64_t id)
{
    assert_answered(p, id, TENREC_MSG_EXCEPTION);
    assert_non_null(strstr((char *)back, "max_stranger_bytes"));
}

static void answer_little(struct node *to, tenrec_peer from, struct tenrec_msg *msg)
{
    (void)from;
    answer(to, msg, message_of(TENREC_MSG_RET, "", 1, 0, NULL, 0));
    msg->release(msg);
}

TEST_WITH(agent_refuses_messages_of_strangers_beyond_their_budget, setup, teardown)
{
    struct raw_pipe slow, other;

    n[1].on_request = answer_little;
    raw_pipe_open(&slow, n[1].address);
    raw_pipe_open(&other, n[1].address);
    raw_request(&slow, 1, LARGE, LARGE / 2);
    assert_becomes(accounts_held() >= LARGE);
    raw_request(&other, 2, LARGE, 0);
    assert_refused(&other, 2);
    /* Its bytes were skipped, and nothing is charged for them. */
    raw_request(&other, 3, 100, 0);
    assert_answered(&other, 3, TENREC_MSG_RET);
    raw_pipe_close(&slow);
    assert_becomes(accounts_held() == 0);
    raw_request(&other, 4, LARGE, 0);
    assert_answered(&other, 4, TENREC_MSG_RET);
    raw_pipe_close(&other);
}

TEST_WITH(agent_ends_pipes_of_strangers_that_read_no_answers, setup, teardown)
{
    struct raw_pipe p;
    size_t sent = 0, len = raw_message(frames, TENREC_MSG_CALL, 1, back, 3000);
    ssize_t r = 1;

    raw_pipe_open(&p, n[1].address);
    while (r > 0 && sent < 128u << 20) {
        r = send(p.fd[0], frames, len, MSG_NOSIGNAL);
        sent += r > 0 ? (size_t)r : 0;
        assert_true(accounts_held() < 2 * LIMIT);
    }
    assert_true(sent < 128u << 20);
    assert_true(raw_closed(p.fd[0]));
    raw_pipe_close(&p);
    assert_becomes(accounts_held() == 0);
    assert_ping(&n[0], 1);
}

static void answer_much(struct node *to, tenrec_peer from, struct tenrec_msg *msg)
{
    static char much[2 * LIMIT];

    (void)from;
    answer(to, msg, message_of(TENREC_MSG_RET, much, sizeof much, 0, NULL, 0));
    msg->release(msg);
}

TEST_WITH(agent_answers_an_exception_for_an_answer_beyond_the_budget, setup, teardown)
{
    struct raw_pipe p;

    n[1].on_request = answer_much;
    raw_pipe_open(&p, n[1].address);
    raw_request(&p, 1, 1, 0);
    assert_refused(&p, 1);
    raw_pipe_close(&p);
}

TEST_WITH(agent_does_not_charge_members_to_the_strangers_of_their_host, setup, teardown)
{
    static char data[4 * LIMIT];
    struct raw_pipe slow;
    struct call c = { .id = 0 };

    raw_pipe_open(&slow, n[1].address);
    raw_request(&slow, 1, LARGE, LARGE / 2);
    assert_becomes(accounts_held() >= LARGE);
    assert_int_equal(
        call_sync(&n[0], 1, message_of(TENREC_MSG_CALL, "x", 1, 1, data, sizeof data), &c),
        TENREC_OK);
    assert_int_equal(c.answer->n_tensors, 1);
    call_finish(&c);
    raw_pipe_close(&slow);
}

/* Four bytes that look like more: some of the core's functions would copy them so often. */
static void assert_view_refused(struct node *at, int64_t times, const char *option)
{
    struct raw_pipe p;
    int64_t id;
    long len;

    raw_pipe_open(&p, at->address);
    raw_send(p.fd[0], frames, raw_view_message(frames, TENREC_MSG_CALL, 1, times));
    raw_frame(p.fd[2], "wxyz", 4);
    assert_int_equal(raw_recv_message(&p, &id, back, sizeof back - 1, &len), TENREC_MSG_EXCEPTION);
    back[len] = 0;
    assert_non_null(strstr((char *)back, option));
    /* The bytes were skipped. */
    raw_send(p.fd[0], frames, raw_view_message(frames, TENREC_MSG_CALL, 2, 100));
    raw_frame(p.fd[2], "wxyz", 4);
    assert_int_equal(raw_recv_message(&p, &id, back, sizeof back, &len), TENREC_MSG_RET);
    assert_int_equal(id, 2);
    raw_pipe_close(&p);
}

TEST_WITH(agent_refuses_views_whose_elements_are_beyond_its_limits, setup, teardown)
{
    assert_view_refused(&n[1], LIMIT, "max_stranger_bytes");
    assert_view_refused(&n[1], INT64_C(1) << 33, "max_message");
}

#define MANY 20000 /* tensors, of which there are lists for as long as they are read */

static unsigned char descriptor[DESCRIPTOR_MAX(MANY)];

/* A descriptor of a message of `count` tensors with a byte each. Returns its length. */
static size_t describe(uint32_t count)
{
    static const uint64_t len[DESCRIPTOR_AGENT_PAYLOADS] = { 4, 8, 1, 47 };
    static struct tenrec_tensor_desc t[MANY];

    for (uint32_t i = 0; i < count; i++) {
        t[i].bytes = 1;
        t[i].device = t[i].source = t[i].target = (struct tenrec_device){ TENREC_CPU, 0 };
    }
    return descriptor_write(descriptor, sizeof descriptor, len, t, count, sizeof t[0], NULL);
}

TEST_WITH(agent_ends_pipes_of_strangers_whose_lists_are_beyond_the_budget, setup, teardown)
{
    struct raw_pipe p;

    raw_pipe_open(&p, n[1].address);
    raw_frame(p.fd[0], descriptor, describe(MANY));
    assert_true(raw_closed(p.fd[0]));
    raw_pipe_close(&p);
    assert_becomes(accounts_held() == 0);
    assert_ping(&n[0], 1);
}

/* One byte of the descriptor never comes. */
TEST_WITH(agent_ends_pipes_of_strangers_whose_objects_are_beyond_the_budget, setup, teardown)
{
    const uint64_t len = htole64(describe(MANY));
    struct raw_pipe p;
    int fd;

    assert_in_range(le64toh(len), LIMIT, 1 << 20);
    raw_pipe_open(&p, n[1].address);
    raw_send(p.fd[0], &len, sizeof len);
    raw_send(p.fd[0], descriptor, le64toh(len) - 1);
    assert_true(raw_closed(p.fd[0]));
    raw_pipe_close(&p);
    /* Nor of a Brochure. */
    fd = raw_connect(n[1].address);
    raw_frame(fd, raw_hello, sizeof raw_hello);
    raw_send(fd, &len, sizeof len);
    raw_send(fd, descriptor, le64toh(len) - 1);
    assert_true(raw_closed(fd));
    close(fd);
    assert_becomes(accounts_held() == 0);
    assert_ping(&n[0], 1);
}

/* A message whose lists are large, and whose list of tensors is none: its bytes are skipped. */
TEST_WITH(agent_releases_the_budget_of_a_read_message, setup, teardown)
{
    const uint32_t count = 500;
    unsigned char one[8 + 1] = { 1 };
    struct raw_pipe p;

    raw_pipe_open(&p, n[1].address);
    raw_frame(p.fd[0], descriptor, describe(count));
    assert_becomes(accounts_held() > count * sizeof(struct tenrec_tensor_desc));
    raw_frame(p.fd[0], "\0\1\0", 4);
    raw_frame(p.fd[0], "\1\0\0\0\0\0\0", 8);
    raw_frame(p.fd[0], "x", 1);
    raw_frame(p.fd[0], descriptor, TENSORLIST_EMPTY_LEN);
    for (uint32_t i = 0; i < count; i++)
        raw_send(p.fd[2], one, sizeof one);
    assert_answered(&p, 1, TENREC_MSG_EXCEPTION);
    assert_int_equal(accounts_held(), 0);
    raw_pipe_close(&p);
}

static struct tenrec_msg *_Atomic request_held;

static void hold_request(struct node *to, tenrec_peer from, struct tenrec_msg *msg)
{
    (void)to, (void)from;
    atomic_store(&request_held, msg);
}

static void assert_charged_until_release(struct raw_pipe *p, size_t len)
{
    struct tenrec_msg *msg;

    raw_request(p, 1, len, 0);
    assert_becomes((msg = atomic_exchange(&request_held, NULL)) != NULL);
    assert_true(accounts_held() >= len && accounts_held() > 0);
    msg->release(msg);
    assert_int_equal(accounts_held(), 0);
}

/* Also small requests, which are read in one step, and when the connection is gone. */
TEST_WITH(agent_charges_requests_of_strangers_until_their_release, setup, teardown)
{
    struct tenrec_msg *msg;
    struct raw_pipe p;

    n[1].on_request = hold_request;
    raw_pipe_open(&p, n[1].address);
    assert_charged_until_release(&p, LARGE);
    assert_charged_until_release(&p, 10);
    raw_request(&p, 2, LARGE, 0);
    assert_becomes((msg = atomic_exchange(&request_held, NULL)) != NULL);
    raw_request(&p, 3, LARGE, 0);
    assert_refused(&p, 3);
    raw_pipe_close(&p);
    assert_true(accounts_held() >= LARGE);
    msg->release(msg);
    assert_becomes(accounts_held() == 0);
}
