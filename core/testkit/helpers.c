/* helpers.c - what torch's own tests use, with limits. */
#include <stdio.h>
#include <string.h>
#include <tenrec/testkit.h>

#include "testkit/scale.h"

enum { PROBE_MS = 5000 };

const char *tenrec_test_worker_name(int32_t rank, char ret[TENREC_NAME_MAX + 1])
{
    snprintf(ret, TENREC_NAME_MAX + 1, "worker%d", rank);
    return ret;
}

void tenrec_test_setup_fault_injection(struct tenrec_test_options *options,
                                       const char *const *messages_to_fail,
                                       const char *const *messages_to_delay)
{
    if (messages_to_fail)
        options->messages_to_fail = messages_to_fail;
    if (messages_to_delay)
        options->messages_to_delay = messages_to_delay;
}

void tenrec_test_single_threaded(struct tenrec_test_options *options)
{
    options->num_worker_threads = 1;
}

static tenrec_status name_of(struct tenrec_worker *w, int32_t rank, char ret[TENREC_NAME_MAX + 1],
                             tenrec_error *err)
{
    struct tenrec_worker_info info;
    tenrec_status st = tenrec_get_worker_info_by_id(w, rank, &info, err);

    if (st == TENREC_OK)
        snprintf(ret, TENREC_NAME_MAX + 1, "%s", info.name);
    return st;
}

tenrec_status tenrec_test_wait_until_node_failure(struct tenrec_worker *w, int32_t rank,
                                                  tenrec_status code, int64_t ms,
                                                  tenrec_error *ret_why, tenrec_error *err)
{
    struct tenrec_call_options o = { .size = sizeof o, .timeout_ms = tenrec_test_ms(PROBE_MS) };
    int64_t deadline = scale_deadline(ms);
    char name[TENREC_NAME_MAX + 1];
    tenrec_error why;
    tenrec_status st = name_of(w, rank, name, err);

    if (st != TENREC_OK)
        return st;
    for (;;) {
        int64_t left = scale_left(deadline);
        if (left < o.timeout_ms)
            o.timeout_ms = left;
        st = tenrec_rpc_sync(w, name, TENREC_TEST_NOOP, NULL, 0, &o, NULL, &why);
        if (st != TENREC_OK && (code == TENREC_OK || st == code)) {
            if (ret_why)
                *ret_why = why;
            return TENREC_OK;
        }
        if (!scale_moment(deadline))
            return tenrec_fail(err, TENREC_ETIMEDOUT,
                               "'%s' has not failed%s%s within %lld ms; the last call: %s", name,
                               code == TENREC_OK ? "" : " with ",
                               code == TENREC_OK ? "" : tenrec_status_name(code), (long long)ms,
                               st == TENREC_OK ? "it answered" : why.text);
    }
}

tenrec_status tenrec_test_initialize_pg(const char *init_method, int32_t rank, int32_t world_size,
                                        struct tenrec_process_group **ret, tenrec_error *err)
{
    struct tenrec_store *store = NULL;
    tenrec_status st = tenrec_store_open(init_method, tenrec_test_ms(PROBE_MS), &store, err);

    if (st != TENREC_OK)
        return st;
    st = tenrec_process_group_new(store, rank, world_size, "test", ret, err);
    tenrec_store_drop(store);
    return st;
}
