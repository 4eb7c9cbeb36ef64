/* SPDX-License-Identifier: Apache-2.0 */
/* charge_test.c - what a caller that is no member makes a worker hold is charged to its account
 * until the memory is free, however its call ends. */
#include "../support/cluster.h"
#include "../support/functions.h"
#include "../support/payload.h"
#include "core/backend/account.h"
#include "core/backend/backend.h"
#include "core/base/clock.h"
#include "rpc/call/calls.h"
#include "rpc/future/worker.h"

#define LIMIT (1u << 20)
#define LARGE 100000u /* is read on the pool */

static const struct tenrec_account_limits limits = { .all = LIMIT, .own = LIMIT };
static struct tenrec_account *account;
static struct cluster two;
static char refusal[sizeof((tenrec_error *)0)->text];
static pthread_mutex_t refusal_lock = PTHREAD_MUTEX_INITIALIZER; /* guards it */

void __real_answer_error(struct tenrec_worker *w, tenrec_peer to, int64_t id,
                         const struct tenrec_route *route, bool cbor, const tenrec_error *why);
void __wrap_answer_error(struct tenrec_worker *w, tenrec_peer to, int64_t id,
                         const struct tenrec_route *route, bool cbor, const tenrec_error *why);
void __wrap_answer_error(struct tenrec_worker *w, tenrec_peer to, int64_t id,
                         const struct tenrec_route *route, bool cbor, const tenrec_error *why)
{
    pthread_mutex_lock(&refusal_lock);
    if (to == TENREC_ANONYMOUS)
        snprintf(refusal, sizeof refusal, "%s", why->text);
    pthread_mutex_unlock(&refusal_lock);
    __real_answer_error(w, to, id, route, cbor, why);
}

static bool refused_by(const char *text)
{
    pthread_mutex_lock(&refusal_lock);
    const bool found = strstr(refusal, text) != NULL;
    pthread_mutex_unlock(&refusal_lock);
    return found;
}

static void setup(void)
{
    static const char *const one_thread[] = { "worker.num_worker_threads=1", NULL };

    cluster_open(&two, 2, one_thread, functions_register);
    account = account_open();
    refusal[0] = '\0';
}

static void teardown(void)
{
    functions_open_gate();
    cluster_close(&two, TENREC_IMMEDIATE);
    assert_int_equal(accounts_held(), 0);
    account_close(account);
}

/* As a backend does with a message that was announced. */
static void arrives(struct tenrec_msg *msg)
{
    const uint64_t n = msg->payload_len;

    assert_int_equal(account_take(account, n, &limits, NULL), TENREC_OK);
    message_carry(msg, account, n, &limits);
    worker_deliver(two.worker[1], TENREC_ANONYMOUS, msg);
}

static struct tenrec_msg *call_of(const char *function, size_t text, int64_t ms)
{
    static char room[LARGE + 1];
    struct tenrec_value arg;

    memset(room, 'x', LARGE);
    arg = tenrec_value_of(TENREC_VALUE_TEXT, text);
    arg.u.text = room;
    return written_call(function, &arg, 1, ms);
}

static struct tenrec_msg *call_of_nils(const char *function, size_t n)
{
    struct tenrec_value *nils = calloc(n, sizeof *nils), list = tenrec_value_array(nils, n);
    struct tenrec_msg *msg;

    assert_non_null(nils);
    msg = written_call(function, &list, 1, TENREC_TIMEOUT_NONE);
    free(nils);
    return msg;
}

TEST_WITH(charge_lasts_while_a_call_runs_with_the_memory_of_its_values, setup, teardown)
{
    functions_close_gate();
    arrives(call_of_nils("wait_long", 10000));
    assert_becomes(functions_waiting() == 1);
    assert_in_range(accounts_held(), 10000 * (1 + sizeof(struct tenrec_value)), LIMIT);
    functions_open_gate();
    assert_becomes(accounts_held() == 0);
}

TEST_WITH(charge_lasts_while_a_call_is_queued, setup, teardown)
{
    struct tenrec_future *held = functions_hold(two.worker[0], "worker1");

    arrives(call_of("identity", 10, TENREC_TIMEOUT_NONE));
    arrives(call_of("identity", LARGE, TENREC_TIMEOUT_NONE));
    assert_true(accounts_held() > LARGE);
    functions_open_gate();
    assert_becomes(accounts_held() == 0);
    tenrec_future_drop(held);
}

TEST_WITH(charge_refuses_values_beyond_the_limits, setup, teardown)
{
    arrives(call_of_nils("identity_inline", 40000));
    assert_becomes(refused_by("max_stranger_bytes (1048576)"));
    assert_int_equal(accounts_held(), 0);
    refusal[0] = '\0';
    arrives(call_of_nils("identity", LARGE));
    assert_becomes(accounts_held() == 0);
    assert_becomes(refused_by("max_stranger_bytes (1048576)"));
}

TEST_WITH(charge_ends_when_there_is_no_such_function, setup, teardown)
{
    arrives(call_of_nils("none", LARGE));
    assert_int_equal(accounts_held(), 0);
    assert_becomes(refused_by("has no function 'none'"));
}

TEST_WITH(charge_ends_when_the_arguments_are_malformed, setup, teardown)
{
    struct tenrec_msg *msg = call_of("identity_inline", LARGE, TENREC_TIMEOUT_NONE);

    ((unsigned char *)msg->payload)[50000] = 0xff;
    arrives(msg);
    assert_int_equal(accounts_held(), 0);
    assert_becomes(refused_by("text is not UTF-8"));
}

TEST_WITH(charge_ends_when_a_queued_call_is_canceled, setup, teardown)
{
    struct tenrec_future *held = functions_hold(two.worker[0], "worker1");
    struct tenrec_msg *cancel = payload_message("", 0, 0);

    cancel->type = TENREC_MSG_CANCEL;
    arrives(call_of("identity", LARGE, TENREC_TIMEOUT_NONE)); /* both have the id 0 */
    worker_deliver(two.worker[1], TENREC_ANONYMOUS, cancel);
    functions_open_gate();
    assert_becomes(accounts_held() == 0);
    tenrec_future_drop(held);
}

TEST_WITH(charge_ends_when_the_deadline_of_a_queued_call_passes, setup, teardown)
{
    struct tenrec_future *held = functions_hold(two.worker[0], "worker1");
    uint64_t passed_ns;

    arrives(call_of("identity", 10, 1));
    arrives(call_of("identity", LARGE, 1));
    passed_ns = clock_deadline_ms(20);
    assert_becomes(clock_passed(passed_ns));
    functions_open_gate();
    assert_becomes(accounts_held() == 0);
    tenrec_future_drop(held);
}

TEST_WITH(charge_ends_when_the_worker_stops, setup, teardown)
{
    struct tenrec_future *held = functions_hold(two.worker[0], "worker1");

    arrives(call_of("identity", 10, TENREC_TIMEOUT_NONE));
    arrives(call_of("identity", LARGE, TENREC_TIMEOUT_NONE));
    serve_stop(two.worker[1]);
    assert_int_equal(accounts_held(), 0);
    functions_open_gate();
    tenrec_future_drop(held);
}
