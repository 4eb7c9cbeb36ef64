/* SPDX-License-Identifier: Apache-2.0 */
/* secrets_test.c - two members with different secrets, or with one secret between them: a send
 * fails, and both sides tell why.
 *
 *     secrets_test CONFIG */
#include "../testing.h"
#include "by_hand.h"

#include <pthread.h>
#include <stdlib.h>
#include <tenrec/backend.h>
#include <tenrec/chain.h>
#include <tenrec/config.h>
#include <tenrec/log.h>

struct member {
    struct tenrec_chain_options *options;
    struct tenrec_chain *chain;
    atomic_int delivered;
};

enum { NO_SECRET = -1 };

static const char *config_path;
static struct member member[2];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char warnings[4096]; /* and the losses that were reported to members */

static void note(const char *text)
{
    pthread_mutex_lock(&lock);
    if (strlen(warnings) + strlen(text) + 2 < sizeof warnings)
        strcat(strcat(warnings, text), "\n");
    pthread_mutex_unlock(&lock);
}

static void forget(void)
{
    pthread_mutex_lock(&lock);
    warnings[0] = '\0';
    pthread_mutex_unlock(&lock);
}

static void on_log(void *arg, enum tenrec_log_level level, const char *part, const char *text)
{
    (void)arg, (void)part;
    if (level <= TENREC_LOG_WARN)
        note(text);
}

static void on_lost(void *arg, tenrec_peer peer, const tenrec_error *why)
{
    (void)arg, (void)peer;
    note(why->text);
}

static bool warned_of(const char *part)
{
    bool found;

    pthread_mutex_lock(&lock);
    found = strstr(warnings, part) != NULL;
    pthread_mutex_unlock(&lock);
    return found;
}

static void on_deliver(void *arg, tenrec_peer from, struct tenrec_msg *msg)
{
    struct member *m = arg;

    (void)from;
    atomic_fetch_add(&m->delivered, 1);
    msg->release(msg);
}

static void open_member(int rank, int which, struct tenrec_member *record)
{
    struct member *m = &member[rank];
    const struct tenrec_chain_user user = {
        .size = sizeof user, .deliver = on_deliver, .peer_lost = on_lost, .arg = m
    };
    struct tenrec_config *config;
    tenrec_error err;

    if (which == NO_SECRET)
        unsetenv("TENREC_SECRET_FILE");
    else
        by_hand_use(which);
    assert_status(tenrec_config_load(config_path, &config, &err), &err);
    assert_status(tenrec_chain_options_new(config, &m->options, &err), &err);
    tenrec_config_drop(config);
    atomic_store(&m->delivered, 0);
    assert_status(tenrec_chain_new(m->options, &user, record, 2, &m->chain, &err), &err);
    record->address = tenrec_chain_address(m->chain);
}

static void open_members(int first, int second)
{
    struct tenrec_member record[] = {
        { sizeof record[0], 0, 10, "worker0", "", 1234 },
        { sizeof record[0], 1, 11, "worker1", "", 5678 },
    };
    tenrec_error err;

    forget();
    open_member(0, first, &record[0]);
    open_member(1, second, &record[1]);
    for (int i = 0; i < 2; i++)
        assert_status(tenrec_chain_start(member[i].chain, record, 2, &err), &err);
}

static void close_members(void)
{
    for (int i = 0; i < 2; i++)
        tenrec_chain_stop(member[i].chain);
    for (int i = 0; i < 2; i++) {
        tenrec_chain_drop(member[i].chain);
        tenrec_chain_options_drop(member[i].options);
    }
}

struct sent {
    atomic_bool done;
    tenrec_error err;
};

static void on_sent(void *arg, const tenrec_error *err)
{
    struct sent *s = arg;

    s->err = err ? *err : (tenrec_error){ .code = TENREC_OK };
    atomic_store(&s->done, true);
}

/* Member 0 sends to member 1. */
static tenrec_error send_one(void)
{
    static struct sent s;
    struct tenrec_msg *msg = tenrec_msg_new(4, 0);

    assert_non_null(msg);
    msg->type = TENREC_MSG_CALL;
    atomic_store(&s.done, false);
    tenrec_chain_send(member[0].chain, 1, msg, (struct tenrec_done){ on_sent, &s });
    assert_becomes(atomic_load(&s.done));
    return s.err;
}

/* `here`: the sender's error, `there`: the other member's log. */
static void assert_refused(int first, int second, const char *here, const char *there)
{
    bool warned = false; /* at the end of the first time: the log drops repetitions */
    tenrec_error err;

    open_members(first, second);
    for (int i = 0; i < 2; i++) { /* a refusal is not remembered */
        warned = warned_of(there);
        forget();
        if (first == NO_SECRET) { /* it knows of no proof that it must wait for */
            assert_becomes((send_one(), warned_of(here)));
            continue;
        }
        err = send_one();
        assert_int_equal(err.code, TENREC_EPERM);
        assert_text_has(err.text, here);
    }
    assert_becomes(warned || warned_of(there));
    assert_true(warned || warned_of("connection from 127.0.0.1:"));
    assert_int_equal(atomic_load(&member[1].delivered), 0);
    close_members();
}

TEST(ucx_members_of_one_secret_reach_each_other)
{
    tenrec_error err;

    open_members(OUR_SECRET, OUR_SECRET);
    err = send_one();
    assert_status(err.code, &err);
    assert_becomes(atomic_load(&member[1].delivered) == 1);
    assert_false(warned_of("refused"));
    close_members();
}

TEST(ucx_members_of_two_secrets_refuse_each_other)
{
    assert_refused(OUR_SECRET, OTHER_SECRET,
                   "worker \"worker1\": the other side has another group secret",
                   "refused: the other side has another group secret");
}

TEST(ucx_member_without_the_secret_is_refused)
{
    assert_refused(NO_SECRET, OUR_SECRET, "asks for a group secret; none was given",
                   "gave no proof of the group secret");
}

TEST(ucx_member_with_a_secret_refuses_one_without)
{
    assert_refused(OUR_SECRET, NO_SECRET, "has no group secret",
                   "asks for a group secret; none was given");
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
