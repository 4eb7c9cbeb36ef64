/* SPDX-License-Identifier: Apache-2.0 */
/* serve_test.c - how often a callee reads the arguments of a call, and when it refuses one.
 * Each decoded call is finished once, so finished calls are counted. */
#include "../support/cluster.h"
#include "../support/functions.h"
#include "../support/payload.h"
#include "core/base/clock.h"
#include "rpc/call/calls.h"
#include "rpc/future/pool.h"
#include "rpc/future/thread_state.h"
#include "rpc/future/worker.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <tenrec/message.h>
#include <tenrec/rref.h>

static struct cluster two;
static atomic_int decoded, pooled;
static char refusal[sizeof((tenrec_error *)0)->text];

void __real_codec_call_finish(struct codec_call *call);
void __wrap_codec_call_finish(struct codec_call *call);
void __wrap_codec_call_finish(struct codec_call *call)
{
    decoded += call->n > 0;
    __real_codec_call_finish(call);
}

tenrec_status __real_pool_run(struct pool *p, struct pool_task *t);
tenrec_status __wrap_pool_run(struct pool *p, struct pool_task *t);
tenrec_status __wrap_pool_run(struct pool *p, struct pool_task *t)
{
    pooled++;
    return __real_pool_run(p, t);
}

/* The refusal of a message that no other worker has sent. */
void __wrap_answer_error(struct tenrec_worker *w, tenrec_peer to, int64_t id,
                         const struct tenrec_route *route, bool cbor, const tenrec_error *why);
void __wrap_answer_error(struct tenrec_worker *w, tenrec_peer to, int64_t id,
                         const struct tenrec_route *route, bool cbor, const tenrec_error *why)
{
    (void)w, (void)to, (void)id, (void)route, (void)cbor;
    snprintf(refusal, sizeof refusal, "%s", why->text);
}

static atomic_bool read_by_delivery; /* arguments that are not simple */

tenrec_status __real_codec_read_any_args(const struct tenrec_msg *msg,
                                         const struct codec_head *head, struct codec_call *ret,
                                         tenrec_error *err);
tenrec_status __wrap_codec_read_any_args(const struct tenrec_msg *msg,
                                         const struct codec_head *head, struct codec_call *ret,
                                         tenrec_error *err);
tenrec_status __wrap_codec_read_any_args(const struct tenrec_msg *msg,
                                         const struct codec_head *head, struct codec_call *ret,
                                         tenrec_error *err)
{
    if (thread_state.delivers)
        atomic_store(&read_by_delivery, true);
    return __real_codec_read_any_args(msg, head, ret, err);
}

static _Atomic tenrec_status answered; /* the error of the latest answer */

tenrec_status __real_codec_write_error(const tenrec_error *why, bool as_cbor,
                                       struct tenrec_msg **ret, tenrec_error *err);
tenrec_status __wrap_codec_write_error(const tenrec_error *why, bool as_cbor,
                                       struct tenrec_msg **ret, tenrec_error *err);
tenrec_status __wrap_codec_write_error(const tenrec_error *why, bool as_cbor,
                                       struct tenrec_msg **ret, tenrec_error *err)
{
    atomic_store(&answered, why->code);
    return __real_codec_write_error(why, as_cbor, ret, err);
}

static void serve_open(void)
{
    static const char *const one_thread[] = { "worker.num_worker_threads=1", NULL };

    cluster_open(&two, 2, one_thread, functions_register);
    decoded = pooled = 0;
    atomic_store(&read_by_delivery, false);
    refusal[0] = '\0';
}

/* After the last call has been freed. */
static int serve_close(void)
{
    cluster_close(&two, TENREC_GRACEFUL);
    return decoded;
}

static void check_call(const char *function)
{
    const struct tenrec_entry entry = { "key", tenrec_value_int(7) };
    const struct tenrec_value args[] = { tenrec_value_int(21), tenrec_value_text("text"),
                                         tenrec_value_map(&entry, 1) };
    struct tenrec_value *got = NULL;
    tenrec_error err;

    serve_open();
    if (tenrec_rpc_sync(two.worker[0], "worker1", function, args, N(args), NULL, &got, &err))
        fail_msg("%s", err.text);
    tenrec_value_drop(got);
    assert_int_equal(serve_close(), 1);
}

TEST(serve_decodes_arguments_once_when_the_function_runs_on_the_pool)
{
    check_call("identity");
    assert_int_equal(pooled, 1);
}

TEST(serve_decodes_arguments_once_when_the_function_runs_inline)
{
    check_call("identity_inline");
    assert_int_equal(pooled, 0);
}

TEST(serve_decodes_arguments_once_when_the_function_answers_later)
{
    const struct tenrec_value arg = tenrec_value_int(21);
    static const char *const names[] = { "later", "later_inline" };

    for (size_t i = 0; i < N(names); i++) {
        struct tenrec_value *got = NULL;

        serve_open();
        assert_int_equal(
            tenrec_rpc_sync(two.worker[0], "worker1", names[i], &arg, 1, NULL, &got, NULL),
            TENREC_OK);
        assert_int_equal(got->u.integer, 42);
        tenrec_value_drop(got);
        assert_int_equal(serve_close(), 1);
    }
}

TEST(serve_decodes_arguments_once_when_the_result_stays)
{
    const struct tenrec_value arg = tenrec_value_text("text");
    struct tenrec_rref *r = NULL;
    struct tenrec_value *got = NULL;

    serve_open();
    assert_int_equal(
        tenrec_remote(two.worker[0], "worker1", "identity_inline", &arg, 1, NULL, &r, NULL),
        TENREC_OK);
    assert_int_equal(tenrec_rref_to_here(r, NULL, &got, NULL), TENREC_OK);
    assert_string_equal(got->u.array[0].u.text, "text");
    tenrec_value_drop(got);
    tenrec_rref_drop(r);
    assert_int_equal(serve_close(), 1);
}

/* The caller's own timer may be late: it must not learn that it has canceled the call. */
TEST(serve_answers_that_a_deadline_passed_while_the_call_was_queued)
{
    const struct tenrec_value arg = tenrec_value_int(1);
    struct tenrec_future *held;
    uint64_t passed_ns;

    serve_open();
    held = functions_hold(two.worker[0], "worker1");
    atomic_store(&answered, TENREC_OK);
    worker_deliver(two.worker[1], 0, written_call("identity", &arg, 1, 1));
    passed_ns = clock_deadline_ms(1);
    assert_becomes(clock_passed(passed_ns));
    functions_open_gate();
    assert_becomes(atomic_load(&answered) != TENREC_OK);
    assert_int_equal(atomic_load(&answered), TENREC_ETIMEDOUT);
    tenrec_future_drop(held);
    serve_close();
}

/* By the thread that delivers, with the byte that is wrong. */
TEST(serve_refuses_a_malformed_call_before_a_thread_is_used)
{
    static const struct bad table[] = {
        BAD("\x80\x04\x4e\x2e", "does not begin with d9 d9 f7"),
        BAD(HEAD "\x83\x61"
                 "f\x80\xf6",
            "call at byte 3 has 3 items"),
        BAD(HEAD "\x84\x61\xff\x80\xf6\xa0", "text is not UTF-8 at byte 5"),
        BAD(HEAD "\x84\x63"
                 "add\x82\x01\x61\xff\xf6\xa0",
            "text is not UTF-8 at byte 11"),
        BAD(HEAD "\x84\x63"
                 "add\x82\x01\x02\xf6\xa0\x00",
            "1 bytes too many at byte 13"),
        BAD(HEAD "\x84\x6a"
                 "add_inline\x81\x61\xff\xf6\xa0",
            "text is not UTF-8 at byte 17"),
        BAD(HEAD "\x84\x64"
                 "none\x81\x61\xff\xf6\xa0",
            "has no function 'none'"), /* arguments of unknown functions are not read */
        BAD(HEAD "\x84\x62"
                 "ad\x81\x01\xf6\xa0",
            "has no function 'ad'"),
    };

    serve_open();
    for (size_t i = 0; i < N(table); i++) {
        struct tenrec_msg *msg = payload_message(table[i].bytes, table[i].n, 0);

        msg->type = TENREC_MSG_CALL;
        refusal[0] = '\0';
        worker_deliver(two.worker[1], 0, msg);
        if (!strstr(refusal, table[i].text))
            fail_msg("row %zu: '%s' does not say '%s'", i, refusal, table[i].text);
    }
    assert_int_equal(pooled, 0);
    serve_close();
}

/* ---- large arguments: read on the pool ------------------------------------------- */

static char large[100000];

static struct tenrec_value large_text(void)
{
    memset(large, 'x', sizeof large - 1);
    return tenrec_value_text(large);
}

/* A call of 100 KB that waits for the thread of the pool, which holds the gate. */
static struct tenrec_msg *large_call(int64_t ms)
{
    const struct tenrec_value arg = large_text();

    return written_call("identity", &arg, 1, ms);
}

TEST(serve_reads_large_arguments_once_and_not_within_the_delivery)
{
    const struct tenrec_value arg = large_text();
    struct tenrec_value *got = NULL;

    serve_open();
    assert_int_equal(
        tenrec_rpc_sync(two.worker[0], "worker1", "identity", &arg, 1, NULL, &got, NULL),
        TENREC_OK);
    assert_string_equal(got->u.array[0].u.text, large);
    tenrec_value_drop(got);
    assert_false(atomic_load(&read_by_delivery));
    assert_int_equal(serve_close(), 1);
}

TEST(serve_reads_large_arguments_with_references_when_the_result_stays)
{
    const struct tenrec_value one = tenrec_value_int(1);
    struct tenrec_value args[2], *got = NULL;
    struct tenrec_rref *r = NULL, *own = NULL;

    serve_open();
    assert_int_equal(tenrec_rref_new(two.worker[0], &one, &own, NULL), TENREC_OK);
    args[0] = large_text();
    args[1] = tenrec_value_rref(own);
    assert_int_equal(tenrec_remote(two.worker[0], "worker1", "identity", args, 2, NULL, &r, NULL),
                     TENREC_OK);
    assert_int_equal(tenrec_rref_to_here(r, NULL, &got, NULL), TENREC_OK);
    assert_string_equal(got->u.array[0].u.text, large);
    assert_int_equal(got->u.array[1].type, TENREC_VALUE_RREF);
    tenrec_value_drop(got);
    tenrec_rref_drop(own);
    tenrec_rref_drop(r);
    assert_false(atomic_load(&read_by_delivery));
    serve_close();
}

TEST(serve_refuses_large_arguments_that_are_malformed)
{
    struct tenrec_msg *msg = large_call(TENREC_TIMEOUT_NONE);

    serve_open();
    ((unsigned char *)msg->payload)[50000] = 0xff;
    worker_deliver(two.worker[1], 0, msg);
    serve_close();
    assert_non_null(strstr(refusal, "text is not UTF-8 at byte 50000"));
    assert_int_equal(pooled, 1);
    assert_int_equal(decoded, 0);
}

TEST(serve_does_not_read_large_arguments_of_a_call_that_was_canceled_while_queued)
{
    struct tenrec_msg *msg = large_call(TENREC_TIMEOUT_NONE);
    struct tenrec_msg *cancel = payload_message("", 0, 0);
    struct tenrec_future *held;

    serve_open();
    held = functions_hold(two.worker[0], "worker1");
    cancel->type = TENREC_MSG_CANCEL;
    cancel->id = msg->id = 4711;
    worker_deliver(two.worker[1], 0, msg);
    worker_deliver(two.worker[1], 0, cancel);
    functions_open_gate();
    tenrec_future_drop(held);
    serve_close();
    assert_non_null(strstr(refusal, "'identity' was not started: its caller had given up"));
    assert_int_equal(decoded, 0);
}

/* From the arrival of the call, not from when its arguments were read. */
TEST(serve_answers_that_a_deadline_passed_while_a_large_call_was_queued)
{
    struct tenrec_future *held;
    uint64_t passed_ns;

    serve_open();
    held = functions_hold(two.worker[0], "worker1");
    atomic_store(&answered, TENREC_OK);
    worker_deliver(two.worker[1], 0, large_call(1));
    passed_ns = clock_deadline_ms(1);
    assert_becomes(clock_passed(passed_ns));
    functions_open_gate();
    assert_becomes(atomic_load(&answered) != TENREC_OK);
    assert_int_equal(atomic_load(&answered), TENREC_ETIMEDOUT);
    tenrec_future_drop(held);
    serve_close();
}

TEST(serve_drops_a_large_call_that_is_queued_when_the_worker_stops)
{
    struct tenrec_future *held;

    serve_open();
    held = functions_hold(two.worker[0], "worker1");
    worker_deliver(two.worker[1], 0, large_call(TENREC_TIMEOUT_NONE));
    serve_stop(two.worker[1]);
    functions_open_gate();
    tenrec_future_drop(held);
    cluster_close(&two, 0);
    assert_non_null(strstr(refusal, "the worker shuts down: 'identity' was not started"));
}
