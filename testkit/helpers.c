/* SPDX-License-Identifier: Apache-2.0 */
/* helpers.c - the helpers of torch's own tests, with limits. */
#include <stdio.h>
#include <string.h>
#include <tenrec/observe.h>
#include <tenrec/profiler.h>
#include <tenrec/store.h>
#include <tenrec/testkit.h>

#include "testkit/leaks.h"
#include "testkit/scale.h"

enum { PROBE_MS = 5000, CALL_MS = 1000 /* a worker that answers later counts as dead */ };

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

void tenrec_test_set_single_threaded(struct tenrec_test_options *options)
{
    options->num_worker_threads = 1;
}

static tenrec_status name_of(struct tenrec_worker *w, int32_t rank, char ret[TENREC_NAME_MAX + 1],
                             tenrec_error *err)
{
    struct tenrec_worker_info info;
    tenrec_status st = tenrec_worker_get_info_by_id(w, rank, &info, err);

    if (st == TENREC_OK)
        snprintf(ret, TENREC_NAME_MAX + 1, "%s", info.name);
    return st;
}

/* Returns true if `st` is the result of a call to a dead worker. A timeout counts only if the call
 * had its full time. */
static bool is_gone(tenrec_status st, bool had_time)
{
    return st == TENREC_EPEER_LOST || st == TENREC_ECONNECT || (st == TENREC_ETIMEDOUT && had_time);
}

tenrec_status tenrec_test_wait_until_node_failure(struct tenrec_worker *w, int32_t rank,
                                                  tenrec_status code, int64_t ms,
                                                  tenrec_error *ret_why, tenrec_error *err)
{
    const int64_t full = tenrec_test_stretch_ms(CALL_MS);
    struct tenrec_call_options o = { .size = sizeof o, .timeout_ms = full };
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
        if (code == TENREC_OK ? is_gone(st, o.timeout_ms == full) : st == code) {
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

tenrec_status tenrec_test_wait_until_pending_futures_and_users_flushed(struct tenrec_worker *w,
                                                                       int64_t ms,
                                                                       tenrec_error *err)
{
    static const char *const keys[] = { "rref.num_pending_futures", "rref.num_pending_users" };
    int64_t deadline = scale_deadline(ms), n[2];

    do {
        leaks_numbers(w, keys, 2, n);
        if (n[0] == 0 && n[1] == 0)
            return TENREC_OK;
        if (n[0] < 0 || n[1] < 0)
            return tenrec_fail(err, TENREC_ESHUTDOWN, "the worker is not running");
    } while (scale_moment(deadline));
    return tenrec_fail(err, TENREC_ETIMEDOUT,
                       "%lld control messages and %lld references are pending after %lld ms",
                       (long long)n[0], (long long)n[1], (long long)ms);
}

/* tenrec_test_get_num_owners_and_forks with a limit for the call. */
static tenrec_status owners_and_forks(struct tenrec_worker *w, int32_t rank, int64_t limit_ms,
                                      int64_t *ret_owners, int64_t *ret_forks, tenrec_error *err)
{
    struct tenrec_call_options o = { .size = sizeof o, .timeout_ms = limit_ms };
    struct tenrec_value *info = NULL;
    char name[TENREC_NAME_MAX + 1];
    tenrec_status st = name_of(w, rank, name, err);

    if (st == TENREC_OK)
        st = tenrec_worker_inspect(w, name, TENREC_INSPECT_DEBUG_INFO, &o, &info, err);
    if (st != TENREC_OK)
        return st;
    *ret_owners = leaks_number(info, "rref.num_owner_rrefs");
    *ret_forks = leaks_number(info, "rref.num_forks");
    tenrec_value_drop(info);
    return TENREC_OK;
}

tenrec_status tenrec_test_get_num_owners_and_forks(struct tenrec_worker *w, int32_t rank,
                                                   int64_t *ret_owners, int64_t *ret_forks,
                                                   tenrec_error *err)
{
    *ret_owners = *ret_forks = 0;
    return owners_and_forks(w, rank, tenrec_test_stretch_ms(PROBE_MS), ret_owners, ret_forks, err);
}

tenrec_status tenrec_test_wait_until_owners_and_forks_on_rank(struct tenrec_worker *w,
                                                              int64_t owners, int64_t forks,
                                                              int32_t rank, int64_t ms,
                                                              tenrec_error *err)
{
    int64_t deadline = scale_deadline(ms), has_owners = -1, has_forks = -1;
    tenrec_status st;

    do {
        st = owners_and_forks(w, rank, scale_left(deadline), &has_owners, &has_forks, err);
        if (st != TENREC_OK && (st != TENREC_ETIMEDOUT || has_owners < 0))
            return st;
        if (st == TENREC_OK && has_owners == owners && has_forks == forks)
            return TENREC_OK;
    } while (scale_moment(deadline));
    return tenrec_fail(err, TENREC_ETIMEDOUT,
                       "worker %d has %lld owners and %lld forks after %lld ms, expected %lld and "
                       "%lld",
                       rank, (long long)has_owners, (long long)has_forks, (long long)ms,
                       (long long)owners, (long long)forks);
}

tenrec_status tenrec_test_initialize_pg(const char *init_method, int32_t rank, int32_t world_size,
                                        struct tenrec_process_group **ret, tenrec_error *err)
{
    struct tenrec_store *store = NULL;
    tenrec_status st =
        tenrec_store_open(init_method, tenrec_test_stretch_ms(PROBE_MS), &store, err);

    *ret = NULL;
    if (st != TENREC_OK)
        return st;
    st = tenrec_process_group_new(store, rank, world_size, "test", ret, err);
    tenrec_store_close(store);
    return st;
}

tenrec_status tenrec_test_get_function_event(const struct tenrec_profiler *p, const char *part,
                                             const struct tenrec_event **ret, tenrec_error *err)
{
    const struct tenrec_event *event = tenrec_profiler_get_function_event(p, part),
                              *first = tenrec_profiler_event(p, 0);

    *ret = NULL;
    if (!event)
        return tenrec_fail(err, TENREC_ENOTFOUND, "none of %zu events has \"%s\" in its name%s%s",
                           tenrec_profiler_count(p), part, first ? "; the first is " : "",
                           first ? first->name : "");
    *ret = event;
    return TENREC_OK;
}
