/* SPDX-License-Identifier: Apache-2.0 */
/* hello.c - every worker calls `add` on worker 0: tenrec run -n 3 -- hello */
#include <stdio.h>
#include <tenrec/tenrec.h>

static tenrec_status add(struct tenrec_call *call, void *arg, tenrec_error *err)
{
    int64_t a, b;
    tenrec_status st = tenrec_call_get_args(call, err, "ii", &a, &b);
    struct tenrec_value sum;

    (void)arg;
    if (st != TENREC_OK)
        return st;
    sum = tenrec_value_int(a + b);
    return tenrec_call_return(call, &sum, err);
}

int main(void)
{
    struct tenrec_value args[] = { tenrec_value_int(40), tenrec_value_int(2) }, *sum = NULL;
    struct tenrec_worker *w = NULL;
    tenrec_error err;
    bool ok =
        tenrec_worker_new(NULL, &w, &err) == TENREC_OK &&
        tenrec_worker_register_function(w, "add", add, NULL, TENREC_POOL, &err) == TENREC_OK &&
        tenrec_init_rpc(w, &err) == TENREC_OK &&
        tenrec_rpc_sync(w, "worker0", "add", args, 2, NULL, &sum, &err) == TENREC_OK &&
        tenrec_shutdown(w, TENREC_GRACEFUL, TENREC_TIMEOUT_DEFAULT, &err) == TENREC_OK;

    if (ok)
        printf("worker0 says %lld\n", (long long)sum->u.integer);
    else
        fprintf(stderr, "hello: %s\n", err.text);
    tenrec_value_drop(sum);
    tenrec_worker_drop(w);
    return !ok;
}
