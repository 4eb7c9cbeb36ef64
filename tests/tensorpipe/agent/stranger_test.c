/* SPDX-License-Identifier: Apache-2.0 */
/* stranger_test.c - a process that reaches the port of an agent, but has read neither the
 * store nor the wire: its claims, guesses and faults. */
#include "raw.h"

#include "node.h"
#include "transport/tcp/transport_uv.h"
#include "wire/handshake/brochure.h"
#include "wire/handshake/identity.h"
#include <unistd.h>

static struct node n[2];

static void setup(void)
{
    group_open(n, 2, "sleep");
}

static void teardown(void)
{
    group_close(n, 2);
}

static void assert_answers(struct raw_pipe *p)
{
    unsigned char buf[512], back[64];
    int64_t id;
    long len;

    raw_send(p->fd[0], buf, raw_message(buf, TENREC_MSG_CALL, 7, "hi", 2));
    assert_int_equal(raw_recv_message(p, &id, back, sizeof back, &len), TENREC_MSG_RET);
    assert_int_equal(id, 7);
}

static void assert_refused(uint64_t id)
{
    int fd = raw_connect(n[1].address);

    raw_hello_requested(fd, id);
    assert_true(raw_closed(fd));
    close(fd);
}

/* A process of the same host sees what ids its own pipes get, before and after the victim's. */
TEST_WITH(stranger_that_guesses_an_id_gets_no_connection, setup, teardown)
{
    struct raw_pipe before, victim, after;

    raw_pipe_ask(&before, n[1].address, NULL);
    raw_pipe_ask(&victim, n[1].address, NULL);
    raw_pipe_ask(&after, n[1].address, NULL);
    for (uint64_t id = 0; id < 16; id++)
        assert_refused(id);
    for (uint64_t step = 1; step < 8; step++) {
        assert_refused(before.id[2] + step);
        assert_refused(after.id[1] - step);
    }
    raw_pipe_join(&victim, n[1].address, 1);
    raw_pipe_join(&victim, n[1].address, 2);
    assert_answers(&victim);
    raw_pipe_close(&victim);
    close(before.fd[0]);
    close(after.fd[0]);
}

/* ---- claims --------------------------------------------------------------------- */

static struct proof_life life_of(const struct node *node)
{
    return (struct proof_life){ node->member.id, node->member.incarnation, node->member.token };
}

/* The hello of a caller that claims to be `as`, to n[1]. */
static void claim(char text[IDENTITY_MAX], const struct node *as, uint64_t proof)
{
    const struct identity identity = { IDENTITY_VERSION, as->member.id, as->member.incarnation,
                                       IDENTITY_OWN_MESSAGES, proof };

    identity_write(text, &identity);
}

static uint64_t right_proof(void)
{
    const struct proof_life by = life_of(&n[0]), to = life_of(&n[1]);

    return proof_make(&by, &to, PROOF_OF_CALLER);
}

static uint64_t proof_in(const char *text)
{
    struct identity listener;

    assert_int_equal(identity_read(nop_text(text), &listener, NULL), TENREC_OK);
    return listener.proof;
}

/* All that n[1] had to do because of a pipe that ended is done when it answers again. */
static void await_broken(uint64_t pipes)
{
    assert_becomes(node_counter(&n[1], "pipes_broken") == pipes);
    assert_ping(&n[0], 1);
}

TEST_WITH(stranger_that_claims_rank_and_life_of_a_member_is_a_stranger, setup, teardown)
{
    const uint64_t guesses[] = { 0, 1, UINT64_MAX, right_proof() ^ 1 };
    char text[IDENTITY_MAX];
    struct raw_pipe p;
    uint64_t broken = 0;

    assert_ping(&n[0], 1);
    for (size_t i = 0; i < sizeof guesses / sizeof guesses[0]; i++) {
        claim(text, &n[0], guesses[i]);
        raw_pipe_open_as(&p, n[1].address, text);
        assert_answers(&p);
        assert_int_equal(n[1].last_from, TENREC_ANONYMOUS);
        /* What the listener tells besides is no secret. */
        assert_true(proof_in(p.identity) == 0);
        raw_pipe_close(&p);
        await_broken(++broken);
    }
    assert_int_equal(n[1].callers_lost, 0);
}

TEST_WITH(caller_that_knows_both_tokens_is_the_member, setup, teardown)
{
    const struct proof_life by = life_of(&n[1]), to = life_of(&n[0]);
    char text[IDENTITY_MAX];
    struct raw_pipe p;

    claim(text, &n[0], right_proof());
    raw_pipe_open_as(&p, n[1].address, text);
    assert_answers(&p);
    assert_int_equal(n[1].last_from, 0);
    assert_true(proof_in(p.identity) == proof_make(&by, &to, PROOF_OF_LISTENER));
    raw_pipe_close(&p);
    assert_becomes(n[1].callers_lost == 1);
}

TEST_WITH(member_with_two_pipes_is_lost_with_the_last, setup, teardown)
{
    char text[IDENTITY_MAX];
    struct raw_pipe first, second;

    claim(text, &n[0], right_proof());
    raw_pipe_open_as(&first, n[1].address, text);
    raw_pipe_open_as(&second, n[1].address, text);
    assert_answers(&first);
    assert_answers(&second);
    raw_pipe_close(&first);
    assert_becomes(node_counter(&n[1], "pipes_broken") == 1);
    assert_answers(&second);
    assert_int_equal(n[1].callers_lost, 0);
    raw_pipe_close(&second);
    assert_becomes(n[1].callers_lost == 1);
}

/* ---- members that are not known yet ---------------------------------------------- */

static void setup_of_one(void)
{
    for (int i = 0; i < 2; i++) {
        node_init(&n[i], i);
        n[i].dynamic = true;
        node_open(&n[i]);
    }
    nodes_start(&n[1], 1);
}

static void teardown_of_one(void)
{
    node_shutdown(&n[1]);
    node_close(&n[1]);
    node_close(&n[0]);
}

/* It says nothing, neither before nor after. */
TEST_WITH(member_that_called_before_it_was_known_is_lost_with_its_pipe, setup_of_one,
          teardown_of_one)
{
    char text[IDENTITY_MAX];
    struct raw_pipe p, other;

    claim(text, &n[0], right_proof());
    raw_pipe_open_as(&p, n[1].address, text);
    /* What its loop had to do before is done when it answers another caller. */
    raw_pipe_open(&other, n[1].address);
    assert_answers(&other);
    n[1].agent.ops->member_joined(&n[1].agent, &n[0].member);
    assert_answers(&other);
    raw_pipe_close(&p);
    assert_becomes(n[1].callers_lost == 1);
    raw_pipe_close(&other);
}

/* A proof is for one member: shown to another it is worth nothing. */
TEST_WITH(proof_is_of_no_use_to_the_process_that_received_the_proof, setup, teardown)
{
    const struct proof_life by = life_of(&n[0]), to = { 2, 1002, 0x600d };
    char text[IDENTITY_MAX];
    struct raw_pipe p;

    claim(text, &n[0], proof_make(&by, &to, PROOF_OF_CALLER));
    raw_pipe_open_as(&p, n[1].address, text);
    assert_answers(&p);
    assert_int_equal(n[1].last_from, TENREC_ANONYMOUS);
    raw_pipe_close(&p);
}

/* The answer of a listener at `address` to the hello and Brochure on `fd`. */
static void answer_as(int fd, const char *address, const char *identity)
{
    const struct wire_channel_device any = { { nop_text("cpu"), 0 }, "any" };
    const struct wire_channel channel = { "basic", &any, 1, 1, NULL };
    const struct wire_transport uv = { "uv", "uv:*", address + strlen(TRANSPORT_UV_SCHEME) };
    const struct wire_offer offer = { &uv, &channel, 1, 1, identity };
    const uint64_t channel_id = 2;
    const struct wire_ids ids = { .reply = 1, .channels = &channel_id };
    struct wire_selection selection;
    unsigned char buf[2048];
    struct brochure brochure;
    tenrec_error err;
    long len;

    assert_true(raw_recv_frame(fd, buf, sizeof buf) > 0);
    len = raw_recv_frame(fd, buf, sizeof buf);
    assert_true(len > 0);
    if (brochure_read(buf, (size_t)len, &brochure, &err) ||
        brochure_select(&brochure, &offer, &selection, &err))
        fail_msg("%s", err.text);
    raw_frame(fd, buf, answer_write(buf, sizeof buf, &offer, &selection, &ids, true));
}

TEST_WITH(process_at_the_address_of_a_dead_member_gets_no_call, setup, teardown)
{
    static struct node dead; /* its texts live until the shutdown */
    char right_life[IDENTITY_MAX];
    const char *const told[] = { NULL, right_life };
    struct call c = { .wake_fd = -1 };
    int listener, fd;

    for (size_t i = 0; i < sizeof told / sizeof told[0]; i++) {
        node_init(&dead, 2);
        claim(right_life, &dead, 0);
        listener = raw_listen(dead.address);
        n[1].agent.ops->member_joined(&n[1].agent, &dead.member);
        c = (struct call){ .wake_fd = -1 };
        call_start(&n[1], &c, 2, request("a secret"));
        fd = raw_accept(listener);
        answer_as(fd, dead.address, told[i]);
        assert_call_fails(&c, TENREC_ECONNECT);
        assert_non_null(strstr(c.err.text, "does not know the token"));
        call_finish(&c);
        close(fd);
        close(listener);
        node_close(&dead);
    }
}
