/* SPDX-License-Identifier: Apache-2.0 */
/* hello.c - every worker calls `add` on worker 0: tenrec run -n 3 -- hello */
#include <stdio.h>
#include <tenrec/tenrec.h>

static tenrec_status add(struct tenrec_call *call, void *arg, tenrec_error *err)
{
    struct tenrec_value sum;
    int64_t a, b;

    (void)arg;
    if (tenrec_call_get_args(call, err, "ii", &a, &b))
        return err->code;
    sum = tenrec_value_int(a + b);
    return tenrec_call_return(call, &sum, err);
}

int main(void)
{
    struct tenrec_worker *w = NULL;
    tenrec_error err;
    int64_t sum;
    bool failed = tenrec_worker_new(NULL, &w, &err) ||
                  tenrec_worker_register_function(w, "add", add, NULL, TENREC_POOL, &err) ||
                  tenrec_init_rpc(w, &err) ||
                  tenrec_call(w, "worker0", "add", &err, "ii>i", 40, 2, &sum);

    if (!failed)
        printf("worker0 says %d\n", (int)sum);
    failed = failed || tenrec_shutdown(w, TENREC_GRACEFUL, TENREC_TIMEOUT_DEFAULT, &err);
    if (failed)
        tenrec_error_print(&err, "hello");
    tenrec_worker_drop(w);
    return failed;
}
