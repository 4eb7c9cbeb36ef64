/* SPDX-License-Identifier: Apache-2.0 */
/* service_test.c - a test of a service: clients add to a counter over a network that
 * loses the first messages, until the server dies. */
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <tenrec/tenrec.h>
#include <tenrec/testkit.h>

enum { CLIENTS = 2, CALLS = 10, TRIES = 3, TOTAL = CLIENTS * CALLS * (CALLS + 1) / 2 };

/* ---- the service and its client, in a real program a library ------------------ */
static atomic_int total; /* of the server */

static tenrec_status serve_add(struct tenrec_call *call, void *arg, tenrec_error *err)
{
    int64_t more;

    (void)arg;
    if (tenrec_call_get_args(call, err, "i", &more))
        return err->code;
    atomic_fetch_add(&total, (int)more);
    return TENREC_OK;
}

static tenrec_status client_add(struct tenrec_worker *w, int64_t more, tenrec_error *err)
{
    tenrec_status status = TENREC_EAGAIN;

    for (int tries = 0; tries < TRIES && status; tries++)
        status = tenrec_call(w, "worker0", "add", err, "i", more);
    return status;
}

/* ---- the test ------------------------------------------------------------------- */
static tenrec_status setup(struct tenrec_worker *w, int32_t rank, void *arg, tenrec_error *err)
{
    (void)rank, (void)arg;
    return tenrec_worker_register_function(w, "add", serve_add, NULL, TENREC_INLINE, err);
}

static tenrec_status body(const struct tenrec_test *t, tenrec_error *err)
{
    tenrec_status status = TENREC_OK;

    if (t->rank == 0) {
        while (atomic_load(&total) < TOTAL) /* the test kit ends a test that hangs */
            poll(NULL, 0, 1);
        if (atomic_load(&total) != TOTAL)
            return tenrec_fail(err, TENREC_EINVAL, "the total is %d", atomic_load(&total));
        tenrec_test_die(t);
        return TENREC_OK;
    }
    for (int64_t i = 1; i <= CALLS && !status; i++)
        status = client_add(t->worker, i, err);
    /* The last one counts before it is answered: the server may be dead by then. */
    if (!status || status == TENREC_EPEER_LOST)
        status = tenrec_test_wait_until_node_failure(t->worker, 0, TENREC_OK, 10000, NULL, err);
    return status;
}

int main(void)
{
    static const char *const lost[] = { "CALL", NULL };
    const struct tenrec_test_options o = { .size = sizeof o,
                                           .mode = TENREC_TEST_PROCESSES,
                                           .world_size = 1 + CLIENTS,
                                           .backend = "faulty",
                                           .messages_to_fail = lost,
                                           .num_fail_sends = TRIES - 1,
                                           .setup = setup,
                                           .body = body };
    tenrec_error err;

    if (tenrec_test_dist_init(&o, &err))
        return tenrec_error_print(&err, "service_test");
    printf("service_test: the total was %d, and the server was missed when it died\n", TOTAL);
    return 0;
}
