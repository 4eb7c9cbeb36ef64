/* SPDX-License-Identifier: Apache-2.0 */
/* proof_test.c - connections to a worker with a group secret, by strangers and by members that
 * claim to be others.
 *
 *     proof_test CONFIG */
#include "../testing.h"
#include "by_hand.h"
#include "stranger.h"

#include <tenrec/log.h>

static const char *config_path;
static struct world w;
static struct side *a, *b;
static struct tally t;
static struct proof_party member, tool = { .rank = -1, .name = "", .address = "" };

static const struct head hello_of_member = {
    .kind = HEAD_HELLO, .type = 1, .id = 1001, .count = 0, .length = 1000
};
static const struct head hello_of_tool = { .kind = HEAD_HELLO, .type = -1, .length = 1000 };
static const struct head request = { .kind = HEAD_MESSAGE, .type = 0x102, .id = 7 };

static void set_up(void)
{
    world_open(&w, NULL, config_path, 2, NULL);
    a = &w.worker[0];
    b = &w.worker[1];
    member = (struct proof_party){ b->id, 1001, b->name, chain_address(b->chain) };
}

/* Whatever happened, the worker serves its members, which prove themselves. */
static void tear_down(void)
{
    const size_t before = side_count(a);

    by_hand_close();
    send_ping(b, a->id, 5, &t);
    assert_becomes(side_count(a) == before + 1);
    assert_true(side_got(a, before, NULL)->flags & TENREC_MSG_PROVED);
    world_close(&w);
}

static void assert_cut(void)
{
    stranger_flush();
    assert_becomes(stranger_is_cut());
    assert_int_equal(side_count(a), 0);
}

/* ---- with the secret ------------------------------------------------------------------- */

TEST_WITH(ucx_proof_of_a_member_marks_its_messages, set_up, tear_down)
{
    tenrec_peer from = -7;
    tenrec_error err;

    by_hand_open(OUR_SECRET, &member, a);
    assert_status(by_hand_prove(&err), &err);
    by_hand_say(hello_of_member);
    by_hand_say(request);
    assert_becomes((stranger_is_cut(), side_got(a, 0, &from)));
    assert_int_equal(from, b->id);
    assert_true(side_got(a, 0, NULL)->flags & TENREC_MSG_PROVED);
}

TEST_WITH(ucx_proof_of_a_tool_marks_its_messages, set_up, tear_down)
{
    tenrec_peer from = -7;
    tenrec_error err;

    by_hand_open(OUR_SECRET, &tool, a);
    assert_status(by_hand_prove(&err), &err);
    by_hand_say(hello_of_tool);
    by_hand_say(request);
    assert_becomes((stranger_is_cut(), side_got(a, 0, &from)));
    assert_int_equal(from, TENREC_ANONYMOUS);
    assert_true(side_got(a, 0, NULL)->flags & TENREC_MSG_PROVED);
}

/* Proves to be the first party, and says this hello. */
static void assert_hello_is_cut(const struct proof_party *me, struct head hello)
{
    tenrec_error err;

    by_hand_open(OUR_SECRET, me, a);
    assert_status(by_hand_prove(&err), &err);
    by_hand_say(hello);
    by_hand_say(request);
    assert_cut();
}

TEST_WITH(ucx_proof_of_a_member_is_none_of_another_member, set_up, tear_down)
{
    struct head hello = hello_of_member;

    hello.type = 0;
    hello.id = 1000;
    assert_hello_is_cut(&member, hello);
}

TEST_WITH(ucx_proof_of_a_member_is_none_of_another_life, set_up, tear_down)
{
    struct head hello = hello_of_member;

    hello.id = 1002;
    assert_hello_is_cut(&member, hello);
}

TEST_WITH(ucx_proof_of_a_member_is_none_of_a_tool, set_up, tear_down)
{
    assert_hello_is_cut(&member, hello_of_tool);
}

TEST_WITH(ucx_proof_of_a_tool_is_none_of_a_member, set_up, tear_down)
{
    assert_hello_is_cut(&tool, hello_of_member);
}

TEST_WITH(ucx_proof_of_another_cookie_ends_the_connection, set_up, tear_down)
{
    tenrec_error err;

    by_hand_open(OUR_SECRET, &member, a);
    by_hand_cookie[0] ^= 1; /* and not in the label */
    assert_int_equal(by_hand_prove(&err), TENREC_ECONNECT);
    assert_cut();
}

TEST_WITH(ucx_proof_is_bound_to_the_first_cookie, set_up, tear_down)
{
    tenrec_error err;
    size_t len;
    const unsigned char *out;

    by_hand_open(OUR_SECRET, &member, a);
    out = by_hand_output(&len);
    by_hand_say_proof(out, len);
    assert_status(by_hand_take(&err), &err);
    by_hand_cookie[0] ^= 1;
    out = by_hand_output(&len);
    by_hand_say_proof(out, len);
    assert_cut();
}

TEST_WITH(ucx_proof_after_the_proof_ends_the_connection, set_up, tear_down)
{
    tenrec_error err;

    by_hand_open(OUR_SECRET, &member, a);
    assert_status(by_hand_prove(&err), &err);
    by_hand_say_proof("TNRP", 4);
    assert_cut();
}

/* ---- without the secret ---------------------------------------------------------------- */

TEST_WITH(ucx_proof_of_another_secret_is_refused, set_up, tear_down)
{
    tenrec_error err;

    by_hand_open(OTHER_SECRET, &member, a);
    assert_int_equal(by_hand_prove(&err), TENREC_EPERM);
    assert_text_has(err.text, "another group secret");
}

/* The whole proof of a member, as a stranger on the path saw it. */
TEST_WITH(ucx_proof_that_was_recorded_is_refused, set_up, tear_down)
{
    unsigned char said[2][PROOF_RECORD_MAX];
    size_t len[2];
    tenrec_error err;

    by_hand_open(OUR_SECRET, &member, a);
    for (int i = 0; i < 2; i++) {
        memcpy(said[i], by_hand_output(&len[i]), PROOF_RECORD_MAX);
        by_hand_say_proof(said[i], len[i]);
        assert_status(by_hand_take(&err), &err);
    }
    by_hand_close();
    by_hand_open(OUR_SECRET, &member, a);
    by_hand_say_proof(said[0], len[0]);
    by_hand_take(&err);
    by_hand_say_proof(said[1], len[1]);
    assert_int_equal(by_hand_take(&err), TENREC_EPERM);
    assert_cut();
}

TEST_WITH(ucx_message_before_the_proof_is_refused_with_the_reason, set_up, tear_down)
{
    struct head first = hello_of_member;
    tenrec_error err;

    by_hand_open(OUR_SECRET, &member, a);
    memset(by_hand_cookie, 0, HEAD_COOKIE_LEN); /* the worker knows of none */
    by_hand_say(first);
    by_hand_say(request);
    assert_int_equal(by_hand_take(&err), TENREC_EPERM);
    assert_text_has(err.text, "asks for a group secret; none was given");
    assert_cut();
}

TEST_WITH(ucx_proof_that_is_cut_ends_the_connection, set_up, tear_down)
{
    for (size_t cut = 0; cut < 400; cut += 13) {
        size_t len;
        const unsigned char *out;

        if (cut > 0)
            by_hand_close();
        by_hand_open(OUR_SECRET, &member, a);
        out = by_hand_output(&len);
        by_hand_say_proof(out, cut < len ? cut : len - 1);
        assert_cut();
    }
}

TEST_WITH(ucx_message_before_the_last_word_of_the_proof_ends_the_connection, set_up, tear_down)
{
    tenrec_error err;
    size_t len;
    const unsigned char *out;

    by_hand_open(OUR_SECRET, &member, a);
    out = by_hand_output(&len);
    by_hand_say_proof(out, len);
    assert_status(by_hand_take(&err), &err);
    by_hand_say(hello_of_member);
    by_hand_say(request);
    assert_cut();
}

TEST_WITH(ucx_proof_of_other_bytes_ends_the_connection, set_up, tear_down)
{
    unsigned seed = 1;

    for (int i = 0; i < 40; i++) {
        unsigned char bytes[PROOF_RECORD_MAX];
        size_t len;

        by_hand_open(OUR_SECRET, &member, a);
        memcpy(bytes, by_hand_output(&len), sizeof bytes);
        if (i % 2)
            bytes[(size_t)rand_r(&seed) % len] ^= (unsigned char)(1 << i % 8);
        else
            for (size_t k = 0; k < len; k++)
                bytes[k] = (unsigned char)rand_r(&seed);
        by_hand_say_proof(bytes, (size_t)rand_r(&seed) % len);
        by_hand_say(hello_of_member);
        assert_cut();
        if (i < 39)
            by_hand_close();
    }
}

TEST_WITH(ucx_proof_of_too_many_bytes_ends_the_connection, set_up, tear_down)
{
    static const unsigned char bytes[1 << 20];
    const struct head h = { .kind = HEAD_PROOF };
    static const size_t len[] = { 0, HEAD_COOKIE_LEN - 1, 5000, sizeof bytes };

    for (size_t i = 0; i < sizeof len / sizeof len[0]; i++) {
        by_hand_open(OUR_SECRET, &member, a);
        stranger_say(&h, bytes, len[i]);
        assert_cut();
        if (i < 3)
            by_hand_close();
    }
}

static void on_log(void *arg, enum tenrec_log_level level, const char *part, const char *text)
{
    (void)arg, (void)level, (void)part, (void)text;
}

int main(int argc, char **argv)
{
    int failed;

    if (argc < 2)
        return 2;
    config_path = argv[1];
    tenrec_log_set_callback(on_log, NULL);
    by_hand_make_secrets();
    failed = testing_run(NULL, NULL);
    by_hand_remove_secrets();
    return failed;
}
