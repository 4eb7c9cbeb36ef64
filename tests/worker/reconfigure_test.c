/* SPDX-License-Identifier: Apache-2.0 */
/* reconfigure_test.c - settings that change while workers run. The backend is named in argv: two
 * agents `tunable`, one around the other. */
#include "../support/cluster.h"
#include "../support/functions.h"
#include "../support/tunable.h"
#include "core/backend/chain_layer.h"
#include "rpc/future/worker.h"
#include "rpc/member/membership.h"
#include "rpc/worker/reconfigure.h"
#include "security/proof/user_note.h"

#include "../testing.h"

#include <inttypes.h>
#include <pthread.h>
#include <tenrec/observe.h>

enum { CHANGES = 300 };

static struct cluster two;
static char outer[64], inner[64]; /* names of the two */

static void open_two(void)
{
    cluster_open(&two, 2, NULL, functions_register);
}

static void close_two(void)
{
    cluster_close(&two, TENREC_GRACEFUL);
}

/* "backends.NAME.options.KEY" */
static const char *key_of(const char *name, const char *key, char buf[160])
{
    snprintf(buf, 160, "backends.%s.options.%s", name, key);
    return buf;
}

/* Of worker1; -1: no such key. */
static int64_t info_of(const char *name, const char *key)
{
    struct tenrec_value *map = NULL;
    const struct tenrec_value *found;
    char text[160];
    tenrec_error err;
    int64_t n;

    assert_status(tenrec_worker_get_debug_info(two.worker[0], "worker1", NULL, &map, &err), &err);
    snprintf(text, sizeof text, "%s.%s", name, key);
    found = tenrec_value_find(map, text);
    n = found && found->type == TENREC_VALUE_INT ? found->u.integer : -1;
    tenrec_value_drop(map);
    return n;
}

static tenrec_status change(const char *to, const char *key, const char *value, tenrec_error *err)
{
    return tenrec_worker_reconfigure(two.worker[0], to, &(struct tenrec_setting){ key, value }, 1,
                                     NULL, err);
}

/* The change is refused by worker1 and by worker0 itself, with that text. */
static void refused(const char *key, const char *value, tenrec_status st, const char *part)
{
    const char *const to[] = { NULL, "worker1" };
    tenrec_error err;

    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(change(to[i], key, value, &err), st);
        assert_text_has(err.text, part);
        assert_int_equal(!!(err.flags & TENREC_ERROR_CALLEE), to[i] != NULL);
    }
}

/* ---- changes ------------------------------------------------------------------- */

TEST_WITH(reconfigure_changes_an_option_of_another_worker, open_two, close_two)
{
    tenrec_error err;
    char key[160];

    assert_int_equal(info_of(inner, "level"), 1);
    assert_status(change("worker1", key_of(inner, "level", key), "5", &err), &err);
    assert_int_equal(info_of(inner, "level"), 5);
    assert_int_equal(info_of(outer, "level"), 1);
}

TEST_WITH(reconfigure_keeps_what_earlier_changes_have_set, open_two, close_two)
{
    tenrec_error err;
    char key[160];

    assert_status(change("worker1", key_of(outer, "words", key), "[a, b, c]", &err), &err);
    assert_status(change("worker1", key_of(outer, "level", key), "2", &err), &err);
    assert_int_equal(info_of(outer, "words"), 3);
    assert_int_equal(info_of(outer, "level"), 2);
}

TEST_WITH(reconfigure_changes_several_settings_at_once, open_two, close_two)
{
    const enum tenrec_log_level before = tenrec_log_get_level();
    char key[2][160];
    const struct tenrec_setting all[] = { { key_of(inner, "level", key[0]), "3" },
                                          { "worker.rpc_timeout", "7s" },
                                          { key_of(outer, "level", key[1]), "4" },
                                          { "log_level", "error" } };
    tenrec_error err;

    assert_status(tenrec_worker_reconfigure(two.worker[0], "worker1", all, 4, NULL, &err), &err);
    assert_int_equal(tenrec_log_get_level(), TENREC_LOG_ERROR);
    tenrec_log_set_level(before);
    assert_int_equal(info_of(inner, "level"), 3);
    assert_int_equal(info_of(outer, "level"), 4);
    assert_int_equal(tenrec_worker_get_rpc_timeout(two.worker[1]), 7000);
    assert_int_equal(tenrec_worker_get_rpc_timeout(two.worker[0]), 20000);
}

TEST_WITH(reconfigure_changes_the_worker_itself, open_two, close_two)
{
    tenrec_error err;

    assert_status(change(NULL, "worker.rpc_timeout", "none", &err), &err);
    assert_int_equal(tenrec_worker_get_rpc_timeout(two.worker[0]), TENREC_TIMEOUT_NONE);
}

/* Calls go on while options change. */
static void *call_always(void *arg)
{
    for (int i = 0; i < CHANGES; i++)
        functions_must_call_add(arg, "worker1");
    return NULL;
}

TEST_WITH(reconfigure_disturbs_no_call, open_two, close_two)
{
    pthread_t thread;
    tenrec_error err;
    char key[160], level[8];

    assert_int_equal(pthread_create(&thread, NULL, call_always, two.worker[0]), 0);
    for (int i = 0; i < CHANGES; i++) {
        snprintf(level, sizeof level, "%d", i % 7);
        assert_status(change(i % 2 ? NULL : "worker1", key_of(inner, "level", key), level, &err),
                      &err);
    }
    pthread_join(thread, NULL);
    assert_int_equal(info_of(inner, "committed"), CHANGES / 2);
}

/* ---- refusals ------------------------------------------------------------------ */

TEST_WITH(reconfigure_changes_nothing_if_one_value_is_wrong, open_two, close_two)
{
    char key[2][160];
    struct tenrec_setting all[] = { { "worker.rpc_timeout", "7s" },
                                    { key_of(inner, "level", key[0]), "3" },
                                    { key_of(outer, "level", key[1]), "8" } };
    tenrec_error err;

    assert_int_equal(tenrec_worker_reconfigure(two.worker[0], "worker1", all, 3, NULL, &err),
                     TENREC_ENOMEM);
    assert_text_has(err.text, "no memory for level 8");
    assert_text_has(err.text, outer);
    assert_int_equal(info_of(inner, "level"), 1);
    assert_int_equal(info_of(inner, "prepared"), 1);
    assert_int_equal(info_of(inner, "discarded"), 1);
    assert_int_equal(info_of(outer, "committed"), 0);
    assert_int_equal(tenrec_worker_get_rpc_timeout(two.worker[1]), 20000);
    all[2].value = "2";
    assert_status(tenrec_worker_reconfigure(two.worker[0], "worker1", all, 3, NULL, &err), &err);
}

TEST_WITH(reconfigure_checks_values_as_a_file_is_checked, open_two, close_two)
{
    char key[160];

    refused(key_of(inner, "level", key), "10", TENREC_ECONFIG, "option 'level'");
    refused(key_of(inner, "level", key), "many", TENREC_ECONFIG, "setting: backend '");
    refused(key_of(inner, "level", key), "7", TENREC_ECONFIG, "level 7 is refused");
    refused(key_of(inner, "levl", key), "1", TENREC_ECONFIG, "did you mean 'level'?");
    refused(key_of("inne", "level", key), "1", TENREC_ENOTFOUND, "this worker uses no backend");
    refused("worker.rpc_timeout", "soon", TENREC_ECONFIG, "worker.rpc_timeout");
    refused("worker.rpc_timout", "1s", TENREC_ECONFIG, "did you mean 'rpc_timeout'?");
    refused("log_level", "loud", TENREC_ECONFIG, "log_level: expected error, warn");
    refused("backend", "inproc", TENREC_ECONFIG, "has no setting 'backend'");
}

TEST_WITH(reconfigure_refuses_what_cannot_change, open_two, close_two)
{
    char key[160];

    refused(key_of(inner, "fixed", key), "2", TENREC_EUNSUPPORTED,
            "option 'fixed' cannot change while the worker runs");
    refused("worker.name", "other", TENREC_EUNSUPPORTED, "worker.name cannot change");
    refused("security.mtls.cert", "/tmp/x", TENREC_EUNSUPPORTED, "replaced by their files");
}

TEST_WITH(reconfigure_refuses_settings_that_are_none, open_two, close_two)
{
    const struct tenrec_setting twice[] = { { "log_level", "info" }, { "log_level", "warn" } };
    tenrec_error err;

    assert_int_equal(tenrec_worker_reconfigure(two.worker[0], NULL, twice, 2, NULL, &err),
                     TENREC_EINVAL);
    assert_text_has(err.text, "'log_level' is given twice");
    assert_int_equal(tenrec_worker_reconfigure(two.worker[0], NULL, twice, 0, NULL, &err),
                     TENREC_EINVAL);
    assert_int_equal(change("worker1", "log_level", "a\nb", &err), TENREC_EINVAL);
    assert_int_equal(change("worker1", "log=level", "a", &err), TENREC_EINVAL);
}

TEST_WITH(reconfigure_refuses_a_change_beside_another_one, open_two, close_two)
{
    struct chain *chain = two.worker[0]->chain;
    tenrec_error err;
    char key[160];

    pthread_mutex_lock(&chain->group);
    assert_int_equal(change(NULL, key_of(inner, "level", key), "2", &err), TENREC_EBUSY);
    pthread_mutex_unlock(&chain->group);
    pthread_mutex_lock(&chain->life);
    assert_int_equal(change(NULL, key_of(inner, "level", key), "2", &err), TENREC_EBUSY);
    pthread_mutex_unlock(&chain->life);
    assert_status(change(NULL, key_of(inner, "level", key), "2", &err), &err);
}

TEST(reconfigure_needs_a_worker_that_runs)
{
    struct tenrec_config *config = cluster_config();
    struct tenrec_worker *w;
    tenrec_error err;

    assert_status(tenrec_worker_new(config, &w, &err), &err);
    tenrec_config_drop(config);
    assert_int_equal(tenrec_worker_reconfigure(
                         w, NULL, &(struct tenrec_setting){ "log_level", "info" }, 1, NULL, &err),
                     TENREC_ESHUTDOWN);
    tenrec_worker_drop(w);
}

/* ---- callers ------------------------------------------------------------------- */

/* Asks worker1 as a process without the note does. */
static tenrec_status ask(size_t from, const char *token, const struct tenrec_value *map,
                         tenrec_error *err)
{
    const struct tenrec_value args[] = { tenrec_value_text(token), *map };

    return tenrec_rpc_sync(two.worker[from], "worker1", RECONFIGURE_FUNCTION, args, 2, NULL, NULL,
                           err);
}

static tenrec_status ask_level(size_t from, const char *token, tenrec_error *err)
{
    char key[160];
    const struct tenrec_entry entry = { key_of(inner, "level", key), tenrec_value_text("6") };
    const struct tenrec_value map = tenrec_value_map(&entry, 1);

    return ask(from, token, &map, err);
}

static const char no_note[] = "0123456789abcdef0123456789abcdef";

static void open_with_rule(const char *rule)
{
    char text[256];
    const char *const extra[] = { text, NULL };

    snprintf(text, sizeof text, "security.allow=[%s]", rule);
    cluster_open(&two, 2, extra, functions_register);
}

TEST_WITH(reconfigure_obeys_no_caller_without_a_note_or_a_rule, open_two, close_two)
{
    tenrec_error err;

    assert_int_equal(ask_level(0, no_note, &err), TENREC_EPERM);
    assert_text_has(err.text, "security.allow");
    assert_int_equal(ask_level(0, "../../etc/passwd", &err), TENREC_EPERM);
    assert_int_equal(ask_level(0, "", &err), TENREC_EPERM);
    assert_int_equal(info_of(inner, "level"), 1);
}

TEST(reconfigure_obeys_members_that_a_rule_names)
{
    tenrec_error err;

    open_with_rule("{ function: tenrec.set, from: worker0 }");
    assert_status(ask_level(0, no_note, &err), &err);
    assert_int_equal(info_of(inner, "level"), 6);
    assert_int_equal(ask_level(1, no_note, &err), TENREC_EPERM);
    close_two();
}

/* A rule for all functions was not written with this one in mind. */
TEST(reconfigure_is_meant_by_no_pattern)
{
    tenrec_error err;

    open_with_rule("{ function: '*', from: any_member }");
    assert_int_equal(ask_level(0, no_note, &err), TENREC_EPERM);
    close_two();
    open_with_rule("{ function: 'tenrec.*', from: nobody }, { function: '*', from: any_member }");
    assert_status(change("worker1", "worker.rpc_timeout", "9s", &err), &err);
    close_two();
}

/* Leaves a note for that receiver, and gives its name to worker1. A refused note stays. */
static void obeys_note(const char *name, const char *group, uint64_t life, const char *address,
                       tenrec_status wanted)
{
    char note[USER_NOTE_NAME], text[512], key[160];
    tenrec_error err;

    snprintf(text, sizeof text, "%s %s %" PRIx64 " %s\n%s=3\n", name, group, life, address,
             key_of(inner, "level", key));
    assert_status(user_note_leave(text, note, &err), &err);
    assert_int_equal(ask_level(0, note, &err), wanted);
    if (wanted == TENREC_EPERM)
        assert_text_has(err.text, "for another worker");
    assert_int_equal(ask_level(0, note, &err), TENREC_EPERM);
    assert_text_has(err.text, wanted == TENREC_OK ? "security.allow" : "for another worker");
    user_note_withdraw(note);
}

TEST_WITH(reconfigure_obeys_a_note_for_this_life_of_this_worker_of_this_group, open_two, close_two)
{
    struct tenrec_worker *w = two.worker[1];
    const char *group = membership_group(w->membership), *address = chain_address(w->chain);
    const uint64_t life = membership_incarnation(w->membership);
    const int64_t before = info_of(inner, "level");

    obeys_note("worker0", group, life, address, TENREC_EPERM);
    obeys_note("worker1", "another", life, address, TENREC_EPERM);
    obeys_note("worker1", group, life + 1, address, TENREC_EPERM);
    obeys_note("worker1", group, life, "uv://127.0.0.1:1", TENREC_EPERM);
    assert_int_equal(info_of(inner, "level"), before);
    obeys_note("worker1", group, life, address, TENREC_OK);
    assert_int_equal(info_of(inner, "level"), 3);
}

TEST(reconfigure_refuses_arguments_that_are_no_settings)
{
    const struct tenrec_entry number = { "log_level", tenrec_value_int(1) };
    const struct tenrec_value map = tenrec_value_map(&number, 1), text = tenrec_value_text("x");
    struct tenrec_entry many[65];
    struct tenrec_value large;
    tenrec_error err;

    for (size_t i = 0; i < 65; i++)
        many[i] = (struct tenrec_entry){ "log_level", tenrec_value_text("info") };
    large = tenrec_value_map(many, 65);
    open_with_rule("{ function: tenrec.set, from: worker0 }");
    assert_int_equal(ask(0, no_note, &map, &err), TENREC_EINVAL);
    assert_text_has(err.text, "'log_level' is an integer");
    assert_int_equal(ask(0, no_note, &text, &err), TENREC_EINVAL);
    assert_int_equal(ask(0, no_note, &large, &err), TENREC_EINVAL);
    close_two();
}

int main(int argc, char **argv)
{
    const char *wire = argc > 1 ? argv[1] : "inproc";
    static char name[64];

    snprintf(inner, sizeof inner, "tunable_%s", wire);
    snprintf(outer, sizeof outer, "two_tunable_%s", wire);
    snprintf(name, sizeof name, "two_tunable_%s", wire);
    tunable_register();
    cluster_use(name);
    return testing_run(NULL, NULL);
}
