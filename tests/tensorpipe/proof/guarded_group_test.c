/* SPDX-License-Identifier: Apache-2.0 */
/* guarded_group_test.c - rules for functions in a group with a secret: what a member, a tool and a
 * plain peer that was let in may call. */
#include "secrets.h"

#include "../../support/functions.h"
#include "rpc/call/calls.h"
#include <stdatomic.h>

static struct cluster group;
static atomic_int proof;

static tenrec_status prove(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    (void)arg, (void)err;
    atomic_store(&proof, (int)tenrec_call_proof(c));
    return TENREC_OK;
}

static void open_group(void)
{
    setenv("TENREC_SECURITY__PLAIN_PEERS", "all", 1);
    setenv("TENREC_SECURITY__ALLOW",
           "[{function: add, from: [any_member]}, {function: add_inline, from: worker0}, "
           "{function: prove, from: anyone}]",
           1);
    secrets_group(&group, OUR_SECRET, OUR_SECRET);
    unsetenv("TENREC_SECURITY__PLAIN_PEERS");
    unsetenv("TENREC_SECURITY__ALLOW");
    for (int i = 0; i < 2; i++)
        assert_int_equal(tenrec_worker_register_function(group.worker[i], "prove", prove, NULL,
                                                         TENREC_INLINE, NULL),
                         TENREC_OK);
    atomic_store(&proof, -1);
}

static void close_group(void)
{
    cluster_close(&group, TENREC_GRACEFUL);
}

static struct tenrec_worker *tool_attach(enum secret_of which)
{
    struct tenrec_config *config = cluster_config();
    struct tenrec_worker *tool;
    tenrec_error err;

    secrets_use(which);
    assert_status(tenrec_worker_new(config, &tool, &err), &err);
    tenrec_config_drop(config);
    assert_status(tenrec_worker_attach(tool, secrets_store(), CLUSTER_LONG_MS, &err), &err);
    return tool;
}

static tenrec_status call(struct tenrec_worker *w, const char *function, tenrec_error *err)
{
    return tenrec_rpc_sync(w, "worker0", function, NULL, 0, NULL, NULL, err);
}

TEST_WITH(member_calls_what_its_rule_allows, open_group, close_group)
{
    tenrec_error err;

    functions_must_call_add(group.worker[1], "worker0");
    assert_int_equal(call(group.worker[1], "add_inline", &err), TENREC_EPERM);
    assert_text_has(err.text, "does not allow worker1 to call 'add_inline'");
    assert_int_equal(call(group.worker[0], "add_inline", &err), TENREC_EINVAL); /* its arguments */
    assert_status(call(group.worker[1], "noop", &err), &err);
    assert_status(call(group.worker[1], "prove", &err), &err);
    assert_int_equal(proof, TENREC_PROVED_SECRET);
}

TEST_WITH(tool_with_the_secret_is_any_member, open_group, close_group)
{
    struct tenrec_worker *tool = tool_attach(OUR_SECRET);
    tenrec_error err;

    functions_must_call_add(tool, "worker0");
    assert_status(call(tool, "prove", &err), &err);
    assert_int_equal(proof, TENREC_PROVED_SECRET);
    assert_status(call(tool, "noop", &err), &err);
    assert_int_equal(call(tool, "add_inline", &err), TENREC_EPERM);
    assert_text_has(err.text, "does not allow a tool to call 'add_inline'");
    tenrec_worker_drop(tool);
}

/* It is let in, and may call no more than a rule for strangers says. */
TEST_WITH(plain_tool_calls_only_what_anyone_may, open_group, close_group)
{
    static const char *const refused[] = { "add", "noop", "no_such_function", "tenrec.ping" };
    struct tenrec_worker *tool = tool_attach(NO_SECRET);
    tenrec_error err;

    assert_status(call(tool, "prove", &err), &err);
    assert_int_equal(proof, TENREC_PROVED_NOTHING);
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        assert_int_equal(call(tool, refused[i], &err), TENREC_EPERM);
        assert_text_has(err.text, "not allowed");
        assert_null(strstr(err.text, "rule"));
    }
    assert_int_equal(atomic_load(&group.worker[0]->calls->counts.refused), 4);
    tenrec_worker_drop(tool);
}

int main(void)
{
    int failed;

    setenv("TENREC_TRANSPORTS", "uv", 1);
    cluster_use("tensorpipe");
    secrets_make();
    failed = testing_run(NULL, NULL);
    secrets_remove();
    return failed;
}
