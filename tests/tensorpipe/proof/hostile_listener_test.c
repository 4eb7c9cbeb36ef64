/* SPDX-License-Identifier: Apache-2.0 */
/* hostile_listener_test.c - another process listens at the address of a member: a caller with a
 * secret says its name and the wanted worker's, and nothing else. */
#include "secrets.h"

#include "raw.h"
#include <poll.h>
#include <stdatomic.h>
#include <tenrec/chain.h>
#include <unistd.h>

#define HEAD 8
#define CHALLENGE_LEN (HEAD + 32 + 32) /* a nonce and a mac */

static struct tenrec_chain_options *options;
static struct tenrec_chain *caller;
static int port;
static atomic_bool ended;
static tenrec_error why;

static void deliver(void *arg, tenrec_peer from, struct tenrec_msg *msg)
{
    (void)arg, (void)from;
    msg->release(msg);
}

static void sent(void *arg, const tenrec_error *err)
{
    (void)arg;
    why = err ? *err : (tenrec_error){ .code = TENREC_OK };
    atomic_store(&ended, true);
}

/* The caller, and the member 1 that is to be at `port`. */
static void open_caller(uint64_t token)
{
    struct tenrec_config *config = cluster_config();
    const struct tenrec_chain_user user = { .size = sizeof user, .deliver = deliver };
    static char address[64]; /* lives as long as the chain */
    tenrec_error err;

    port = raw_listen(address);
    const struct tenrec_member member[] = {
        { sizeof member[0], 0, 10, "worker0", "", 1234 },
        { sizeof member[0], 1, 11, "worker1", address, token },
    };
    secrets_use(OUR_SECRET);
    assert_status(tenrec_chain_options_new(config, &options, &err), &err);
    tenrec_config_drop(config);
    assert_status(tenrec_chain_new(options, &user, &member[0], 2, &caller, &err), &err);
    assert_status(tenrec_chain_start(caller, member, 2, &err), &err);
}

static void open_to_member(void)
{
    open_caller(5678);
}

static void open_to_plain(void)
{
    open_caller(0);
}

static void close_caller(void)
{
    tenrec_chain_stop(caller);
    tenrec_chain_drop(caller);
    tenrec_chain_options_drop(options);
    close(port);
}

static int call(void)
{
    struct tenrec_msg *msg = tenrec_msg_new(6, 0);

    assert_non_null(msg);
    memcpy(msg->payload, "secret", 6);
    msg->type = TENREC_MSG_CALL;
    atomic_store(&ended, false);
    tenrec_chain_send(caller, 1, msg, (struct tenrec_done){ sent, NULL });
    return raw_accept(port);
}

static void assert_fails(tenrec_status code)
{
    assert_becomes(atomic_load(&ended));
    if (why.code != code)
        fail_msg("%s: %s", tenrec_status_name(why.code), why.text);
}

/* One record of the proof. Returns its length; 0 at the end. */
static size_t read_record(int fd, unsigned char record[PROOF_RECORD_MAX])
{
    const struct by_hand h = { .fd = fd };
    const size_t len = by_hand_read(&h, record);

    assert_true(len == 0 || proof_begins(record, len));
    return len;
}

/* All that the caller still says is why it refuses. */
static void assert_says_no_more(int fd)
{
    unsigned char record[PROOF_RECORD_MAX];
    size_t len;

    while ((len = read_record(fd, record)) > 0)
        assert_true(record_refuses(record, len));
    close(fd);
}

TEST_WITH(caller_says_no_more_when_the_listener_speaks_plainly, open_to_member, close_caller)
{
    unsigned char record[PROOF_RECORD_MAX];
    int fd = call();

    assert_true(read_record(fd, record) > 0);
    raw_frame(fd, raw_brochure, sizeof raw_brochure);
    assert_says_no_more(fd);
    assert_fails(TENREC_EPROTOCOL);
}

TEST_WITH(caller_says_no_more_when_the_challenge_is_a_guess, open_to_member, close_caller)
{
    unsigned char record[PROOF_RECORD_MAX];
    const unsigned char guess[CHALLENGE_LEN] = { 'T', 'N', 'R', 'P', 1, 2, CHALLENGE_LEN - HEAD,
                                                 0,   'x' };
    int fd = call();

    assert_true(read_record(fd, record) > 0);
    raw_send(fd, guess, sizeof guess);
    assert_says_no_more(fd);
    assert_fails(TENREC_EPERM);
    assert_text_has(why.text, "another group secret");
}

TEST_WITH(caller_says_no_more_when_its_own_words_come_back, open_to_member, close_caller)
{
    unsigned char record[PROOF_RECORD_MAX];
    int fd = call();
    size_t len = read_record(fd, record);

    assert_true(len > 0);
    raw_send(fd, record, len);
    assert_says_no_more(fd);
    assert_fails(TENREC_EPROTOCOL);
}

/* A whole round of the true listener's, for another connection. */
TEST_WITH(caller_says_no_more_when_the_challenge_is_another_worker_s, open_to_member, close_caller)
{
    const struct proof_terms terms = { .side = PROOF_LISTENER,
                                       .secret = secrets_get(OUR_SECRET),
                                       .purpose = "tensorpipe",
                                       .me = { 2, 12, "worker2", "" } };
    unsigned char record[PROOF_RECORD_MAX];
    struct proof *other;
    const void *out;
    size_t used, len;
    tenrec_error err;
    int fd = call();

    len = read_record(fd, record);
    assert_status(proof_open(&terms, &other, &err), &err);
    assert_status(proof_take(other, record, len, &used, &err), &err);
    out = proof_output(other, &len);
    raw_send(fd, out, len);
    assert_says_no_more(fd);
    assert_fails(TENREC_EPERM);
    assert_text_has(why.text, "another worker");
    proof_close(other);
}

/* A proof would confuse libtensorpipe: its peer gets no byte. */
TEST_WITH(caller_says_nothing_when_the_member_s_record_has_no_token, open_to_plain, close_caller)
{
    unsigned char record[PROOF_RECORD_MAX];
    int fd = call();

    assert_int_equal(read_record(fd, record), 0);
    close(fd);
    assert_fails(TENREC_EPERM);
    assert_text_has(why.text, "plain_peers");
}

static void open_to_admitted(void)
{
    setenv("TENREC_SECURITY__PLAIN_PEERS", "same_user", 1);
    open_caller(0);
    unsetenv("TENREC_SECURITY__PLAIN_PEERS");
}

TEST_WITH(caller_speaks_plainly_when_such_peers_are_let_in, open_to_admitted, close_caller)
{
    unsigned char hello[256];
    int fd = call();

    assert_true(raw_recv_frame(fd, hello, sizeof hello) > 0);
    assert_int_equal(hello[0], raw_hello[0]);
    close(fd);
    assert_becomes(atomic_load(&ended));
}

int main(void)
{
    int failed;

    setenv("TENREC_TRANSPORTS", "uv", 1);
    setenv("TENREC_CHANNELS", "basic", 1);
    cluster_use("tensorpipe");
    secrets_make();
    failed = testing_run(NULL, NULL);
    secrets_remove();
    return failed;
}
