/* SPDX-License-Identifier: Apache-2.0 */
/* limits_test.c - messages larger than their reader takes: refused by their sender, which knows the
 * reader's limits; dropped by the reader, if the sender does not. */
#include "agent/agent.h"
#include "node.h"
#include "pipe/pipe.h"
#include <stdlib.h>

#define LIMIT (64u << 10)

static struct node n[2];
static struct call kept;
static unsigned char bytes[4 * LIMIT];

static void keep_first(struct node *self, tenrec_peer from, struct tenrec_msg *msg)
{
    if (msg->payload_len == 4 && memcmp(msg->payload, "keep", 4) == 0)
        keep_request(self, from, msg);
    else
        echo_request(self, from, msg);
}

/* One call of worker0 is under way, which nothing that is refused may end. */
static void open_with(uint64_t max_message_0, uint64_t max_message_1, uint64_t max_object_1)
{
    node_init(&n[0], 0);
    node_init(&n[1], 1);
    n[0].options.max_message = max_message_0;
    n[1].options.max_message = max_message_1;
    n[1].options.max_object = max_object_1;
    n[1].on_request = keep_first;
    node_open(&n[0]);
    node_open(&n[1]);
    nodes_start(n, 2);
    assert_ping(&n[0], 1);
    kept = (struct call){ .wake_fd = -1 };
    call_start(&n[0], &kept, 1, request("keep"));
    assert_becomes(atomic_load(&n[1].requests) == 2);
}

static void open_narrow_reader(void)
{
    open_with(UINT64_C(1) << 34, LIMIT, 4096);
}

static void open_narrow_caller(void)
{
    open_with(LIMIT, UINT64_C(1) << 34, 1 << 20);
}

static void forget_limits(struct pipe *p, void *arg)
{
    (void)arg;
    pthread_mutex_lock(&p->lock);
    p->terms.max_message = p->terms.max_object = 0;
    pthread_mutex_unlock(&p->lock);
}

/* As peers of another library. */
static void forget_all(struct node *of)
{
    pipe_table_each(&((struct agent *)of->agent.impl)->pipes, forget_limits, NULL);
}

/* The call under way is still, over the same pipe. */
static void assert_unharmed(void)
{
    assert_ping(&n[0], 1);
    assert_false(atomic_load(&kept.done));
    assert_int_equal(n[0].lost, 0);
    assert_int_equal(n[1].callers_lost, 0);
    assert_int_equal(node_counter(&n[0], "pipes_opened"), 1);
}

static void close_both(void)
{
    group_close(n, 2);
}

static struct tenrec_msg *with_tensors(uint32_t count, uint64_t each)
{
    return message_of(TENREC_MSG_CALL, "t", 1, count, bytes, each);
}

static void assert_refused(struct tenrec_msg *msg, const char *text)
{
    const unsigned before = atomic_load(&n[1].requests);
    struct call c = { .id = 0 };

    assert_int_equal(call_sync(&n[0], 1, msg, &c), TENREC_ETOOBIG);
    assert_text_has(c.err.text, text);
    assert_unharmed();
    assert_int_equal(atomic_load(&n[1].requests), before + 1);
    assert_int_equal(node_counter(&n[1], "messages_skipped"), 0);
}

TEST_WITH(limit_of_the_reader_refuses_a_payload_before_it_is_sent, open_narrow_reader, close_both)
{
    assert_refused(message_of(TENREC_MSG_CALL, bytes, LIMIT, 0, NULL, 0),
                   "a message of 65595 bytes; worker \"worker1\" takes 65536 at most (its "
                   "max_message)");
}

TEST_WITH(limit_of_the_reader_refuses_tensors_before_they_are_sent, open_narrow_reader, close_both)
{
    assert_refused(with_tensors(1, LIMIT), "worker \"worker1\" takes 65536 at most");
    assert_refused(with_tensors(4, LIMIT / 4), "worker \"worker1\" takes 65536 at most");
}

TEST_WITH(limit_of_the_reader_refuses_the_objects_of_many_tensors, open_narrow_reader, close_both)
{
    assert_refused(with_tensors(1000, 1), "worker \"worker1\" takes 4096 at most (its max_object)");
}

TEST_WITH(limit_of_the_reader_refuses_more_tensors_than_a_message_has, open_narrow_reader,
          close_both)
{
    assert_refused(with_tensors(100000, 0),
                   "a message with 100000 tensors; worker \"worker1\" takes 65536 at most");
}

/* To the byte: the list of the tensors counts, too. */
TEST_WITH(limit_of_the_reader_lets_all_pass_that_it_takes, open_narrow_reader, close_both)
{
    struct call c = { .id = 0 };
    uint64_t room;

    assert_int_equal(call_sync(&n[0], 1, with_tensors(1, LIMIT - 1024), &c), TENREC_OK);
    call_finish(&c);
    for (room = 512; room; room--) {
        if (call_sync(&n[0], 1, with_tensors(1, LIMIT - room), &c))
            break;
        call_finish(&c);
    }
    assert_int_equal(c.status, TENREC_ETOOBIG);
    assert_true(room > 0);
    assert_text_has(c.err.text, "a message of 65537 bytes");
    assert_int_equal(node_counter(&n[1], "messages_skipped"), 0);
    assert_unharmed();
}

static void add_unanswered(struct pipe *p, void *arg)
{
    *(int64_t *)arg += p->outgoing ? pipe_unanswered(p) : 0;
}

static int64_t unanswered(struct node *of)
{
    int64_t sum = 0;

    pipe_table_each(&((struct agent *)of->agent.impl)->pipes, add_unanswered, &sum);
    return sum;
}

TEST(limit_of_the_reader_refuses_a_message_that_waited_for_the_handshake)
{
    struct call c = { .id = 0 };

    node_init(&n[0], 0);
    node_init(&n[1], 1);
    n[1].options.max_message = LIMIT;
    node_open(&n[0]);
    node_open(&n[1]);
    nodes_start(n, 2);
    assert_int_equal(call_sync(&n[0], 1, with_tensors(1, LIMIT), &c), TENREC_ETOOBIG);
    assert_ping(&n[0], 1);
    assert_int_equal(unanswered(&n[0]), 0);
    group_close(n, 2);
}

static _Atomic tenrec_status answer_status;
static char answer_text[sizeof((tenrec_error *)0)->text];

static void answered(void *arg, const tenrec_error *err)
{
    (void)arg;
    if (err)
        snprintf(answer_text, sizeof answer_text, "%s", err->text);
    atomic_store(&answer_status, err ? err->code : TENREC_OK);
}

/* With a large answer. */
static void answer_largely(struct node *self, tenrec_peer from, struct tenrec_msg *msg)
{
    struct tenrec_msg *response = message_of(TENREC_MSG_RET, bytes, 2 * LIMIT, 0, NULL, 0);

    (void)from;
    response->id = msg->id;
    response->route = msg->route;
    self->agent.ops->send(&self->agent, TENREC_ANONYMOUS, response,
                          (struct tenrec_done){ answered, NULL });
    msg->release(msg);
}

TEST_WITH(limit_of_the_caller_refuses_an_answer_before_it_is_sent, open_narrow_caller, close_both)
{
    struct call c = { .wake_fd = -1 };

    atomic_store(&answer_status, 1);
    n[1].on_request = answer_largely;
    call_start(&n[0], &c, 1, request("much"));
    assert_becomes(atomic_load(&answer_status) != 1);
    assert_int_equal(answer_status, TENREC_ETOOBIG);
    assert_string_equal(answer_text, "a message of 131131 bytes; caller \"worker0\" takes 65536 at "
                                     "most (its max_message)");
    n[1].on_request = echo_request;
    assert_unharmed();
    assert_false(atomic_load(&c.done)); /* the core answers in its place */
}

static void assert_dropped(struct tenrec_msg *msg, const char *text)
{
    struct call c = { .id = 0 };

    assert_int_equal(call_sync(&n[0], 1, msg, &c), TENREC_OK);
    assert_int_equal(c.answer->type, TENREC_MSG_EXCEPTION);
    assert_non_null(memmem(c.answer->payload, (size_t)c.answer->payload_len, text, strlen(text)));
    call_finish(&c);
    assert_unharmed();
}

TEST_WITH(message_beyond_the_limit_is_dropped_and_answered, open_narrow_reader, close_both)
{
    forget_all(&n[0]);
    assert_dropped(message_of(TENREC_MSG_CALL, bytes, 3 * LIMIT, 0, NULL, 0),
                   "a message of 196667 bytes; max_message is 65536");
    assert_dropped(with_tensors(1, 2 * LIMIT), "max_message is 65536");
    assert_dropped(with_tensors(4, LIMIT / 2), "max_message is 65536");
    assert_int_equal(node_counter(&n[1], "messages_skipped"), 3);
}

TEST_WITH(list_of_tensors_beyond_the_limit_is_dropped_and_answered, open_narrow_reader, close_both)
{
    forget_all(&n[0]);
    assert_dropped(with_tensors(190, 1), "max_object is 4096");
}

TEST_WITH(answer_beyond_the_limit_is_dropped_and_ends_its_call_alone, open_narrow_caller,
          close_both)
{
    struct call c = { .id = 0 };

    forget_all(&n[1]);
    n[1].on_request = answer_largely;
    assert_int_equal(call_sync(&n[0], 1, request("much"), &c), TENREC_OK);
    assert_int_equal(c.answer->type, TENREC_MSG_EXCEPTION);
    call_finish(&c);
    n[1].on_request = echo_request;
    assert_unharmed();
}

int main(void)
{
    return testing_run(NULL, NULL);
}
