/* SPDX-License-Identifier: Apache-2.0 */
/* set_test.c - the function tenrec.set of running workers, which prove a group secret or nothing.
 * `tenrec set` itself: tests/system/set_test.py. */
#include "../support/cluster.h"
#include "../support/functions.h"
#include "../testing.h"
#include "core/backend/chain_layer.h"
#include "rpc/future/worker.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RULES "backends.faulty_tensorpipe.options.rules"
#define FAIL "[{ do: fail, on: [CALL], to: [worker0] }]"

static struct cluster two;
static char secret_file[64];

/* With a secret, and `rule` (or NULL) in security.allow. */
static void open_two(const char *mode, const char *rule)
{
    static const char secret[] = "the secret of this group";
    char text[3][160];
    const char *const extra[] = { text[0], text[1], rule ? text[2] : NULL, NULL };
    int fd;

    snprintf(secret_file, sizeof secret_file, "/tmp/tenrec-secret-XXXXXX");
    fd = mkstemp(secret_file);
    assert_true(fd >= 0 && write(fd, secret, sizeof secret - 1) == sizeof secret - 1);
    close(fd);
    snprintf(text[0], sizeof text[0], "security.mode=%s", mode);
    snprintf(text[1], sizeof text[1], "security.secret_file=%s", secret_file);
    snprintf(text[2], sizeof text[2], "security.allow=[%s]", rule ? rule : "");
    cluster_use("faulty_tensorpipe");
    cluster_open(&two, 2, extra, functions_register);
}

static void open_proved(void)
{
    open_two("secret", NULL);
}

static void close_two(void)
{
    cluster_close(&two, TENREC_GRACEFUL);
    unlink(secret_file);
}

/* Of the other worker. */
static tenrec_status change(size_t from, const char *key, const char *value, tenrec_error *err)
{
    const struct tenrec_value args[] = { tenrec_value_text(key), tenrec_value_text(value) };

    return tenrec_rpc_sync(two.worker[from], from ? "worker0" : "worker1", "tenrec.set", args, 2,
                           NULL, NULL, err);
}

static void refused(const char *key, const char *value, tenrec_status st, const char *part)
{
    tenrec_error err;

    assert_int_equal(change(0, key, value, &err), st);
    assert_text_has(err.text, part);
}

TEST_WITH(set_changes_the_level_and_the_timeout_of_a_running_worker, open_proved, close_two)
{
    const enum tenrec_log_level before = tenrec_log_set_level(TENREC_LOG_WARN);
    const int64_t before_ms = tenrec_worker_get_rpc_timeout(two.worker[0]);
    tenrec_error err;

    assert_status(change(0, "worker.rpc_timeout", "7s", &err), &err);
    assert_int_equal(tenrec_worker_get_rpc_timeout(two.worker[1]), 7000);
    assert_int_equal(tenrec_worker_get_rpc_timeout(two.worker[0]), before_ms);
    assert_status(change(0, "worker.rpc_timeout", "none", &err), &err);
    assert_int_equal(tenrec_worker_get_rpc_timeout(two.worker[1]), TENREC_TIMEOUT_NONE);
    assert_status(change(0, "log_level", "error", &err), &err);
    assert_int_equal(tenrec_log_set_level(before), TENREC_LOG_ERROR);
}

TEST_WITH(set_changes_the_faults_of_a_running_worker, open_proved, close_two)
{
    tenrec_error err;

    assert_status(change(0, RULES, FAIL, &err), &err);
    assert_int_equal(change(1, "log_level", "info", &err), TENREC_EINJECTED);
    assert_status(change(0, RULES, "[]", &err), &err);
    functions_must_call_add(two.worker[1], "worker0");
}

TEST_WITH(set_refuses_wrong_settings_and_changes_nothing, open_proved, close_two)
{
    const int64_t before_ms = tenrec_worker_get_rpc_timeout(two.worker[1]);

    refused("log_level", "loud", TENREC_ECONFIG, "log_level: expected error, warn");
    refused("worker.rpc_timeout", "soon", TENREC_EINVAL, "worker.rpc_timeout: ");
    refused("worker.rpc_timeout", "0s", TENREC_EINVAL, "must be positive");
    refused("worker.name", "other", TENREC_EUNSUPPORTED, "'worker.name' cannot change while");
    refused("security.mtls.cert", "/tmp/x", TENREC_EUNSUPPORTED, "cannot change while");
    refused("backends.tensorpip.options.lanes", "2", TENREC_ENOTFOUND, "mean 'tensorpipe'?");
    refused("backends.tensorpipe.options.lanes", "2", TENREC_EUNSUPPORTED, "'tensorpipe' cannot");
    refused("backends.faulty_tensorpipe.options.rule", "[]", TENREC_ECONFIG, "mean 'rules'?");
    refused(RULES, "[{ do: drip }]", TENREC_ECONFIG, "drip");
    refused(RULES, "[{ do: fail, to: [nobody] }]", TENREC_ECONFIG, "nobody");
    assert_int_equal(tenrec_worker_get_rpc_timeout(two.worker[1]), before_ms);
    functions_must_call_add(two.worker[1], "worker0");
}

TEST_WITH(set_refuses_a_change_beside_another_one, open_proved, close_two)
{
    struct chain *chain = two.worker[1]->chain;
    tenrec_error err;

    pthread_mutex_lock(&chain->group);
    refused(RULES, "[]", TENREC_EBUSY, "try again");
    pthread_mutex_unlock(&chain->group);
    pthread_mutex_lock(&chain->life);
    refused(RULES, "[]", TENREC_EBUSY, "try again");
    pthread_mutex_unlock(&chain->life);
    assert_status(change(0, RULES, "[]", &err), &err);
}

TEST(set_refuses_callers_that_have_proved_nothing)
{
    open_two("none", NULL);
    refused("log_level", "error", TENREC_EPERM, "have proved the group secret");
    close_two();
    open_two("none", "{ function: tenrec.set, from: worker0 }");
    refused("log_level", "error", TENREC_EPERM, "have proved the group secret");
    close_two();
}

TEST(set_obeys_the_rules_for_callers)
{
    tenrec_error err;

    open_two("secret", "{ function: tenrec.set, from: worker0 }");
    assert_status(change(0, "worker.rpc_timeout", "9s", &err), &err);
    assert_int_equal(change(1, "worker.rpc_timeout", "9s", &err), TENREC_EPERM);
    assert_text_has(err.text, "tenrec.set");
    close_two();
}
