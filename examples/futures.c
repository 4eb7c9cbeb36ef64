/* SPDX-License-Identifier: Apache-2.0 */
/* futures.c - the first of several answers: tenrec run -n 4 -- futures
 *
 * Worker 0 asks all others the same, takes the first answer, and cancels the other calls: their
 * functions see that and stop. Worker 1 is quick, the others would never end. */
#include <poll.h>
#include <stdio.h>
#include <tenrec/tenrec.h>

enum { OTHERS_MAX = 15, WAIT_MS = 20000 };

/* search(): returns the rank of the worker, or ends early. */
static tenrec_status search(struct tenrec_call *call, void *arg, tenrec_error *err)
{
    const tenrec_peer rank = tenrec_worker_rank(tenrec_call_worker(call));
    const struct tenrec_value found = tenrec_value_int(rank);

    (void)arg;
    while (rank != 1 && !tenrec_call_canceled(call))
        poll(NULL, 0, 1); /* some work */
    return rank == 1 ? tenrec_call_return(call, &found, err)
                     : tenrec_fail(err, TENREC_ECANCELED, "the caller takes another answer");
}

static tenrec_status ask_all(struct tenrec_worker *w, size_t n, struct tenrec_future **answer,
                             tenrec_error *err)
{
    struct tenrec_call_options options = { .size = sizeof options, .timeout_ms = WAIT_MS };
    struct tenrec_worker_info worker[OTHERS_MAX + 1];
    tenrec_status status = tenrec_worker_get_infos(w, worker, n + 1, &n, err);

    for (size_t i = 1; i < n && !status; i++)
        status =
            tenrec_rpc_async(w, worker[i].name, "search", NULL, 0, &options, &answer[i - 1], err);
    return status;
}

static tenrec_status take_first(struct tenrec_worker *w, size_t n, tenrec_error *err)
{
    struct tenrec_future *answer[OTHERS_MAX] = { NULL };
    tenrec_status status = ask_all(w, n, answer, err);
    size_t first = 0, late = 0;

    if (!status)
        status = tenrec_future_wait_any(answer, n, WAIT_MS, &first, err);
    if (!status)
        status = tenrec_future_wait(answer[first], WAIT_MS, err); /* it may have failed */
    for (size_t i = 0; i < n; i++) {
        if (answer[i]) {
            late += !tenrec_future_done(answer[i]);
            tenrec_future_cancel(answer[i]); /* nothing, if it is done */
        }
    }
    if (!status)
        printf("worker%d was first, %zu calls were canceled\n",
               (int)tenrec_future_value(answer[first])->u.integer, late);
    for (size_t i = 0; i < n; i++)
        tenrec_future_drop(answer[i]);
    return status;
}

static tenrec_status work(struct tenrec_worker *w, tenrec_error *err)
{
    size_t n;

    if (tenrec_worker_register_function(w, "search", search, NULL, TENREC_POOL, err) ||
        tenrec_init_rpc(w, err))
        return err->code;
    n = tenrec_worker_size(w);
    if (n < 2 || n > OTHERS_MAX + 1)
        return tenrec_fail(err, TENREC_EINVAL, "%zu workers, expected 2 to %d", n, OTHERS_MAX + 1);
    if (tenrec_worker_rank(w) == 0 && take_first(w, n - 1, err))
        return err->code;
    return tenrec_shutdown(w, TENREC_GRACEFUL, WAIT_MS, err);
}

int main(void)
{
    struct tenrec_worker *w = NULL;
    tenrec_error err;
    const bool failed = tenrec_worker_new(NULL, &w, &err) || work(w, &err);

    if (failed)
        tenrec_error_print(&err, "futures");
    tenrec_worker_drop(w);
    return failed;
}
