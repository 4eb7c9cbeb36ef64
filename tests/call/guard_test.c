/* SPDX-License-Identifier: Apache-2.0 */
/* guard_test.c - callers that a worker refuses by the rules of `security: allow:`, before it
 * decodes their arguments. */
#include "../support/cluster.h"
#include "../support/debug_info.h"
#include "../support/functions.h"
#include "../support/payload.h"
#include "rpc/call/calls.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <tenrec/rref.h>
#include <unistd.h>

static struct cluster two;
static atomic_int decoded, proof;
static char refusal[sizeof((tenrec_error *)0)->text];

void __real_codec_call_finish(struct codec_call *call);
void __wrap_codec_call_finish(struct codec_call *call);
void __wrap_codec_call_finish(struct codec_call *call)
{
    decoded += call->n > 0;
    __real_codec_call_finish(call);
}

/* The refusal of a message that no worker has sent. */
void __real_answer_error(struct tenrec_worker *w, tenrec_peer to, int64_t id,
                         const struct tenrec_route *route, bool cbor, const tenrec_error *why);
void __wrap_answer_error(struct tenrec_worker *w, tenrec_peer to, int64_t id,
                         const struct tenrec_route *route, bool cbor, const tenrec_error *why);
void __wrap_answer_error(struct tenrec_worker *w, tenrec_peer to, int64_t id,
                         const struct tenrec_route *route, bool cbor, const tenrec_error *why)
{
    if (to == TENREC_ANONYMOUS)
        snprintf(refusal, sizeof refusal, "%s", why->text);
    else
        __real_answer_error(w, to, id, route, cbor, why);
}

/* Keeps the proof of its caller. */
static tenrec_status prove(struct tenrec_call *c, void *arg, tenrec_error *err)
{
    (void)arg, (void)err;
    atomic_store(&proof, (int)tenrec_call_proof(c));
    return TENREC_OK;
}

static void register_all(struct tenrec_worker *w, size_t rank)
{
    functions_register(w, rank);
    assert_int_equal(tenrec_worker_register_function(w, "prove", prove, NULL, TENREC_INLINE, NULL),
                     TENREC_OK);
}

static void guard_open(const char *allow)
{
    char text[256];
    const char *const extra[] = { text, NULL };

    snprintf(text, sizeof text, "security.allow=%s", allow);
    cluster_open(&two, 2, allow ? extra : NULL, register_all);
    decoded = 0;
    atomic_store(&proof, -1);
    refusal[0] = '\0';
}

/* `add*` is for worker1 alone, `prove` for all, `tenrec.*` for members. */
static void open_with_rules(void)
{
    guard_open("[{function: add, from: anyone}, {function: 'add*', from: worker1}, "
               "{function: 'id*', from: 'other*'}, {function: count, from: worker1}, "
               "{function: prove, from: anyone}, {function: '*', from: any_member}]");
}

static void close_two(void)
{
    cluster_close(&two, TENREC_GRACEFUL);
}

static uint64_t refused(void)
{
    return atomic_load(&two.worker[1]->calls->counts.refused);
}

static tenrec_status call(size_t from, const char *function, uint32_t flags, tenrec_error *err)
{
    const struct tenrec_call_options o = { .size = sizeof o,
                                           .flags = flags,
                                           .timeout_ms = TENREC_TIMEOUT_DEFAULT };
    const struct tenrec_value args[] = { tenrec_value_int(1), tenrec_value_int(2) };

    return tenrec_rpc_sync(two.worker[from], "worker1", function, args, N(args), &o, NULL, err);
}

TEST_WITH(member_is_refused_when_the_rule_names_another, open_with_rules, close_two)
{
    tenrec_error err;

    assert_int_equal(call(0, "add_inline", 0, &err), TENREC_EPERM);
    assert_text_has(err.text, "does not allow worker0 to call 'add_inline'");
    assert_text_has(err.text, "the rule at ");
    assert_int_equal(call(0, "identity", 0, &err), TENREC_EPERM);
    assert_int_equal(decoded, 0);
    assert_int_equal(refused(), 2);
    assert_status(call(1, "add_inline", 0, &err), &err);
    assert_status(call(0, "add", 0, &err), &err);
    assert_int_equal(refused(), 2);
}

TEST_WITH(refusals_are_counted_in_the_debug_info, open_with_rules, close_two)
{
    tenrec_error err;

    assert_int_equal(call(0, "identity", 0, &err), TENREC_EPERM);
    assert_int_equal(debug_info_number(two.worker[1], "calls.refused"), 1);
}

TEST_WITH(one_way_call_is_dropped_when_the_rule_names_another, open_with_rules, close_two)
{
    const int before = functions_counted();
    tenrec_error err;

    assert_status(call(0, "count", TENREC_ONE_WAY, &err), &err);
    assert_becomes(refused() == 1);
    assert_int_equal(functions_counted(), before);
    assert_int_equal(decoded, 0);
}

/* The owner keeps the reason in place of the value. */
TEST_WITH(creation_fails_when_the_rule_names_another, open_with_rules, close_two)
{
    const struct tenrec_value arg = tenrec_value_int(1);
    struct tenrec_rref *r;
    tenrec_error err;

    assert_status(tenrec_remote(two.worker[0], "worker1", "identity", &arg, 1, NULL, &r, &err),
                  &err);
    assert_int_equal(tenrec_rref_to_here(r, NULL, NULL, &err), TENREC_EPERM);
    assert_text_has(err.text, "to call 'identity'");
    tenrec_rref_drop(r);
}

/* ---- callers that are no members ---- */

static void deliver(const char *function, int32_t type, uint32_t flags)
{
    const struct tenrec_value args[] = { tenrec_value_int(1), tenrec_value_int(2) };
    struct tenrec_msg *msg = written_call(function, args, N(args), 1000);

    msg->type = type;
    msg->flags = flags;
    refusal[0] = '\0';
    worker_deliver(two.worker[1], TENREC_ANONYMOUS, msg);
}

static void assert_not_allowed(const char *function, uint32_t flags)
{
    deliver(function, TENREC_MSG_CALL, flags);
    assert_string_equal(refusal, "not allowed");
}

TEST_WITH(stranger_learns_no_rule_and_no_name, open_with_rules, close_two)
{
    assert_not_allowed("add_inline", 0);
    assert_not_allowed("identity", 0);
    assert_not_allowed("no_such_function", 0);
    assert_not_allowed("tenrec.ping", 0);
    assert_int_equal(refused(), 4);
    assert_int_equal(decoded, 0);
    deliver("prove", TENREC_MSG_ONE_WAY_CALL, 0);
    assert_int_equal(proof, TENREC_PROVED_NOTHING);
    assert_int_equal(refused(), 4);
}

TEST_WITH(tool_counts_as_a_member_without_a_name, open_with_rules, close_two)
{
    deliver("add_inline", TENREC_MSG_CALL, TENREC_MSG_PROVED);
    assert_text_has(refusal, "does not allow a tool to call 'add_inline'");
    deliver("prove", TENREC_MSG_ONE_WAY_CALL, TENREC_MSG_PROVED);
    assert_int_equal(proof, TENREC_PROVED_SECRET);
    deliver("noop_inline", TENREC_MSG_ONE_WAY_CALL, TENREC_MSG_PROVED);
    assert_int_equal(refused(), 1);
}

TEST(member_is_proved_by_its_record_when_the_backend_proves_nothing)
{
    tenrec_error err;

    guard_open(NULL);
    assert_status(call(0, "prove", 0, &err), &err);
    assert_int_equal(proof, TENREC_PROVED_RECORD);
    close_two();
}

TEST(stranger_calls_everything_when_there_are_no_rules_and_the_mode_is_none)
{
    guard_open(NULL);
    deliver("prove", TENREC_MSG_ONE_WAY_CALL, 0);
    assert_int_equal(proof, TENREC_PROVED_NOTHING);
    deliver("no_such_function", TENREC_MSG_CALL, 0);
    assert_text_has(refusal, "has no function");
    assert_int_equal(refused(), 0);
    close_two();
}

TEST(message_of_a_stranger_is_refused_when_the_mode_is_not_none)
{
    static const int32_t types[] = { TENREC_MSG_CALL,
                                     TENREC_MSG_RREF_FETCH_CALL,
                                     TENREC_MSG_RREF_USER_DELETE,
                                     TENREC_MSG_RREF_FORK_REQUEST,
                                     TENREC_MSG_RREF_CHILD_ACCEPT,
                                     TENREC_MSG_GATHER,
                                     TENREC_MSG_VIEW,
                                     TENREC_MSG_SCRIPT_CALL };
    char path[] = "/tmp/guard.XXXXXX";
    const int fd = mkstemp(path);

    assert_int_equal(write(fd, "0123456789abcdef", 16), 16);
    close(fd);
    setenv("TENREC_SECRET_FILE", path, 1);
    guard_open(NULL);
    for (size_t i = 0; i < N(types); i++) {
        deliver("prove", types[i], 0);
        assert_string_equal(refusal, "not allowed");
    }
    assert_int_equal(refused(), N(types));
    assert_int_equal(proof, -1);
    deliver("no_call", TENREC_MSG_VIEW, TENREC_MSG_PROVED); /* a member to be */
    assert_int_equal(refused(), N(types));
    unsetenv("TENREC_SECRET_FILE");
    unlink(path);
    close_two();
}
