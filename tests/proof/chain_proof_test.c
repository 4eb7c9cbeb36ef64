/* SPDX-License-Identifier: Apache-2.0 */
/* chain_proof_test.c - the proof service as a backend sees it, and the refusal of backends that do
 * without. */
#include "core/backend/chain_members.h"

#include "../testing.h"
#include "security/proof/security.h"

#include <pthread.h>
#include <sys/socket.h>
#include <tenrec/backend.h>
#include <tenrec/chain.h>
#include <tenrec/config.h>
#include <tenrec/plugin.h>
#include <tenrec/proof.h>
#include <unistd.h>

static char secret_file[] = "/tmp/tenrec_chain_proof_XXXXXX";
static const char *listens_at = "";
static struct tenrec_agent *agent[2]; /* by id */

/* ---- a backend ------------------------------------------------------------------ */

static const char *small_address(struct tenrec_agent *self)
{
    (void)self;
    return listens_at;
}

static void small_send(struct tenrec_agent *self, tenrec_peer to, struct tenrec_msg *msg,
                       struct tenrec_done done)
{
    (void)self, (void)to;
    msg->release(msg);
    tenrec_done_succeed(done);
}

static const struct tenrec_agent_ops small_ops = {
    .size = sizeof small_ops,
    .address = small_address,
    .send = small_send,
};

static tenrec_status small_construct(void *opts, tenrec_error *err)
{
    (void)opts, (void)err;
    return TENREC_OK;
}

static tenrec_status small_init(const struct tenrec_init *in, struct tenrec_agent *self,
                                tenrec_error *err)
{
    (void)err;
    self->ops = &small_ops;
    agent[in->me] = self;
    return TENREC_OK;
}

static const struct tenrec_plugin bare = {
    TENREC_PLUGIN_HEADER,
    .name = "bare",
    .version = "1",
    .summary = "Proves nothing.",
};

static const struct tenrec_plugin proving = {
    TENREC_PLUGIN_HEADER, .flags = TENREC_PLUGIN_PROVES, .name = "proving",
    .version = "1",       .summary = "Proves itself.",
};

static void deliver(void *arg, tenrec_peer from, struct tenrec_msg *msg)
{
    (void)arg, (void)from;
    msg->release(msg);
}

/* ---- chains ----------------------------------------------------------------------- */

static const struct tenrec_member member[] = {
    { sizeof member[0], 0, 10, "worker0", "", 1 },
    { sizeof member[0], 1, 11, "worker1", "", 2 },
};

static tenrec_status chain_of(const char *plugin, const struct tenrec_member *me,
                              struct tenrec_chain **ret, tenrec_error *err)
{
    const struct tenrec_chain_user user = { .size = sizeof user, .deliver = deliver };
    struct tenrec_chain_options *options;
    struct tenrec_config *config;
    char yaml[96];
    tenrec_status st;

    snprintf(yaml, sizeof yaml, "backend: it\nbackends: { it: { plugin: %s } }\n", plugin);
    assert_status(tenrec_config_parse(yaml, "it.yaml", &config, err), err);
    assert_status(tenrec_chain_options_new(config, &options, err), err);
    tenrec_config_drop(config);
    st = tenrec_chain_new(options, &user, me, 2, ret, err);
    if (st == TENREC_OK) {
        assert_status(tenrec_chain_start(*ret, member, 2, err), err);
        tenrec_chain_stop(*ret);
        tenrec_chain_drop(*ret);
    }
    tenrec_chain_options_drop(options);
    return st;
}

static void with_secret(void)
{
    setenv("TENREC_SECRET_FILE", secret_file, 1);
}

static void without_secret(void)
{
    unsetenv("TENREC_SECRET_FILE");
    listens_at = "";
}

TEST_WITH(chain_is_refused_when_its_plugin_proves_nothing_beyond_loopback, with_secret,
          without_secret)
{
    struct tenrec_chain *c;
    tenrec_error err;

    listens_at = "tcp://10.0.0.1:80";
    assert_int_equal(chain_of("bare", &member[0], &c, &err), TENREC_ECONFIG);
    assert_text_has(err.text, "plugin 'bare'");
    assert_text_has(err.text, "tcp://10.0.0.1:80");
    assert_text_has(err.text, "security: { mode: none }");
    assert_status(chain_of("proving", &member[0], &c, &err), &err);
    listens_at = "tcp://127.0.0.1:80";
    assert_status(chain_of("bare", &member[0], &c, &err), &err);
}

TEST_WITH(chain_opens_beyond_loopback_when_there_is_no_secret, NULL, without_secret)
{
    struct tenrec_chain *c;
    tenrec_error err;

    listens_at = "tcp://10.0.0.1:80";
    assert_status(chain_of("bare", &member[0], &c, &err), &err);
}

/* ---- the exchange ----------------------------------------------------------------- */

struct two {
    struct tenrec_chain_options *options;
    struct tenrec_chain *chain[2];
    const struct tenrec_proof_service *s;
    struct tenrec_proof *dialler, *listener;
};

static struct two two;

static void two_open(void)
{
    const struct tenrec_chain_user user = { .size = sizeof user, .deliver = deliver };
    struct tenrec_config *config;
    tenrec_error err;

    with_secret();
    assert_status(tenrec_config_parse("backend: it\nbackends: { it: { plugin: proving } }\n",
                                      "it.yaml", &config, &err),
                  &err);
    assert_status(tenrec_chain_options_new(config, &two.options, &err), &err);
    tenrec_config_drop(config);
    for (int i = 0; i < 2; i++) {
        assert_status(tenrec_chain_new(two.options, &user, &member[i], 2, &two.chain[i], &err),
                      &err);
        assert_status(tenrec_chain_start(two.chain[i], member, 2, &err), &err);
    }
    two.s = tenrec_proof_service(agent[0]->host);
    assert_non_null(two.s);
    assert_int_equal(two.s->mode(agent[0]), TENREC_SECURITY_SECRET);
    assert_status(two.s->dial(agent[0], 1, NULL, "label", 5, &two.dialler, &err), &err);
    assert_status(two.s->listen(agent[1], NULL, &two.listener, &err), &err);
}

static void two_close(void)
{
    two.s->close(agent[0], two.dialler);
    two.s->close(agent[1], two.listener);
    for (int i = 0; i < 2; i++) {
        tenrec_chain_stop(two.chain[i]);
        tenrec_chain_drop(two.chain[i]);
    }
    tenrec_chain_options_drop(two.options);
    without_secret();
}

/* Returns the bytes that went from one to the other. */
static size_t carry(struct tenrec_agent *a, struct tenrec_proof *from, struct tenrec_agent *b,
                    struct tenrec_proof *to)
{
    size_t len, used;
    const void *out = two.s->output(a, from, &len);
    tenrec_error err;

    if (len)
        assert_status(two.s->take(b, to, out, len, &used, &err), &err);
    return len;
}

TEST_WITH(proof_names_the_other_side_when_it_is_complete, two_open, two_close)
{
    struct tenrec_proved peer = { .size = sizeof peer };

    assert_false(two.s->proved(agent[0], two.dialler, &peer));
    while (carry(agent[0], two.dialler, agent[1], two.listener) +
           carry(agent[1], two.listener, agent[0], two.dialler))
        continue;
    assert_true(two.s->proved(agent[0], two.dialler, &peer));
    assert_int_equal(peer.id, 1);
    assert_int_equal(peer.incarnation, 11);
    assert_string_equal(peer.name, "worker1");
    assert_true(two.s->proved(agent[1], two.listener, &peer));
    assert_int_equal(peer.id, 0);
    assert_int_equal(peer.incarnation, 10);
    assert_int_equal(peer.label_len, 5);
    assert_memory_equal(peer.label, "label", 5);
}

/* As docs/plugin-guide.md has it. */
static tenrec_status prove(struct tenrec_agent *self, struct tenrec_proof *p, int fd,
                           struct tenrec_proved *ret, tenrec_error *err)
{
    const struct tenrec_proof_service *service = tenrec_proof_service(self->host);
    tenrec_status st = TENREC_OK;
    unsigned char in[256];
    const void *out;
    size_t len;

    for (;;) {
        out = service->output(self, p, &len);
        if (len && send(fd, out, len, MSG_NOSIGNAL) != (ssize_t)len)
            return tenrec_fail(err, TENREC_ECONNECT, "cannot send the proof");
        if (st != TENREC_OK || service->proved(self, p, ret))
            return st;
        /* What follows the proof stays in the socket. */
        ssize_t n = recv(fd, in, sizeof in, MSG_PEEK);
        if (n <= 0)
            return tenrec_fail(err, TENREC_ECONNECT, "closed during the proof");
        st = service->take(self, p, in, (size_t)n, &len, err);
        recv(fd, in, len, 0);
    }
}

struct listener {
    int fd;
    tenrec_status status;
    struct tenrec_proved dialler;
};

static void *listener_run(void *arg)
{
    struct listener *l = arg;
    tenrec_error err;

    l->status = prove(agent[1], two.listener, l->fd, &l->dialler, &err);
    return NULL;
}

TEST_WITH(proof_leaves_the_bytes_behind_it_in_the_socket, two_open, two_close)
{
    struct tenrec_proved peer = { .size = sizeof peer };
    struct listener l = { .dialler = { .size = sizeof l.dialler } };
    pthread_t thread;
    char frame[5];
    tenrec_error err;
    int fd[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
    l.fd = fd[1];
    assert_int_equal(pthread_create(&thread, NULL, listener_run, &l), 0);
    assert_status(prove(agent[0], two.dialler, fd[0], &peer, &err), &err);
    assert_int_equal(send(fd[0], "frame", 5, 0), 5);
    pthread_join(thread, NULL);
    assert_int_equal(l.status, TENREC_OK);
    assert_int_equal(l.dialler.id, 0);
    assert_int_equal(recv(fd[1], frame, 5, 0), 5);
    assert_memory_equal(frame, "frame", 5);
    close(fd[0]);
    close(fd[1]);
}

TEST_WITH(proof_is_refused_with_a_reason_when_the_first_bytes_are_plain, two_open, two_close)
{
    size_t used, len;
    tenrec_error err;
    const void *out;

    assert_int_equal(two.s->take(agent[1], two.listener, "plain", 5, &used, &err), TENREC_EPERM);
    assert_text_has(err.text, "plain_peers");
    out = two.s->output(agent[1], two.listener, &len);
    assert_true(len > TENREC_PROOF_MAGIC_LEN && tenrec_proof_begins(out));
    two.s->output(agent[1], two.listener, &len);
    assert_int_equal(len, 0);
}

TEST_WITH(dial_fails_when_there_is_no_such_member, two_open, two_close)
{
    struct tenrec_proof *p = NULL;
    tenrec_error err;

    assert_int_equal(two.s->dial(agent[0], 2, NULL, NULL, 0, &p, &err), TENREC_EPEER_UNKNOWN);
    assert_null(p);
}

/* ---- members ---------------------------------------------------------------------- */

static tenrec_status check(struct chain_members *m, tenrec_peer id, uint64_t incarnation)
{
    tenrec_error err;

    return chain_members_check(m, id, incarnation, "worker1", &err);
}

TEST(members_of_a_static_group_are_those_of_its_list)
{
    struct chain_members m;
    tenrec_error err;

    chain_members_init(&m, false);
    chain_members_start(&m, member, 2);
    assert_int_equal(check(&m, 1, 11), TENREC_OK);
    assert_int_equal(chain_members_check(&m, 1, 11, "worker0", &err), TENREC_EPERM);
    assert_text_has(err.text, "has another name");
    assert_int_equal(chain_members_check(&m, 1, 11, "", &err), TENREC_EPERM);
    assert_int_equal(check(&m, 1, 12), TENREC_EPERM);
    assert_int_equal(check(&m, 2, 12), TENREC_EPERM);
    assert_int_equal(check(&m, TENREC_ANONYMOUS, 0), TENREC_OK);
    assert_status(chain_members_remove(&m, 1, &err), &err);
    assert_int_equal(check(&m, 1, 11), TENREC_EPERM);
    chain_members_finish(&m);
}

TEST(members_are_found_in_a_list_of_any_order_and_after_changes)
{
    const struct tenrec_member list[] = { member[1], member[0] };
    struct tenrec_member next = member[0];
    struct chain_members m;
    struct chain_member found;
    tenrec_error err;

    chain_members_init(&m, true);
    chain_members_start(&m, list, 2);
    assert_true(chain_members_find(&m, 0, &found));
    assert_string_equal(found.name, "worker0");
    assert_true(chain_members_find(&m, 1, &found));
    assert_string_equal(found.name, "worker1");
    next.name = "later";
    assert_status(chain_members_add(&m, &next, &err), &err);
    assert_true(chain_members_find(&m, 0, &found));
    assert_string_equal(found.name, "later");
    assert_status(chain_members_remove(&m, 0, &err), &err);
    assert_false(chain_members_find(&m, 0, &found));
    assert_true(chain_members_find(&m, 1, &found));
    next.id = -1;
    assert_int_equal(chain_members_add(&m, &next, &err), TENREC_EINVAL);
    chain_members_finish(&m);
}

TEST(members_of_a_dynamic_group_may_come_before_their_records)
{
    struct chain_members m;
    struct chain_member found;
    tenrec_error err;

    chain_members_init(&m, true);
    assert_status(chain_members_add(&m, &member[1], &err), &err);
    assert_int_equal(check(&m, 2, 12), TENREC_OK);
    assert_true(chain_members_find(&m, 1, &found));
    assert_string_equal(found.name, "worker1");
    assert_false(chain_members_find(&m, 0, &found));
    assert_false(chain_members_find(&m, -1, &found));
    chain_members_finish(&m);
}

int main(void)
{
    struct secret *secret;
    tenrec_error err;
    int failed, fd = mkstemp(secret_file);

    close(fd);
    unlink(secret_file);
    if (secret_draw(&secret, &err) || secret_write_file(secret, secret_file, &err) ||
        tenrec_register_backend(&bare, small_construct, small_init, &err) ||
        tenrec_register_backend(&proving, small_construct, small_init, &err)) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    failed = testing_run(NULL, NULL);
    unlink(secret_file);
    secret_drop(secret);
    return failed;
}
