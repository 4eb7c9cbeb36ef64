/* SPDX-License-Identifier: Apache-2.0 */
#include "pair.h"

#include <poll.h>

struct cluster two;

void open_two(void)
{
    static const char *const extra[] = { "worker.num_worker_threads=2", NULL };

    cluster_open(&two, 2, extra, functions_register);
}

void close_two(void)
{
    functions_open_gate();
    cluster_close(&two, TENREC_GRACEFUL);
}

struct tenrec_value *call(const char *to, const char *fn, const struct tenrec_value *args, size_t n)
{
    struct tenrec_value *got = NULL;
    tenrec_error err;

    if (tenrec_rpc_sync(two.worker[0], to, fn, args, n, NULL, &got, &err) != TENREC_OK)
        fail_msg("%s on %s: %s: %s", fn, to, tenrec_status_name(err.code), err.text);
    return got;
}

tenrec_status call_fails(const char *to, const char *fn, const struct tenrec_value *args, size_t n,
                         int64_t timeout_ms, tenrec_error *err)
{
    struct tenrec_call_options o = { .size = sizeof o, .timeout_ms = timeout_ms };

    return tenrec_rpc_sync(two.worker[0], to, fn, args, n, &o, NULL, err);
}
