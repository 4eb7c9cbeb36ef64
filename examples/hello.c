/* hello.c - worker 0 asks worker 1 to add: tenrec run -n 2 -- hello */
#include <inttypes.h>
#include <stdio.h>
#include <tenrec/tenrec.h>

static tenrec_status add(struct tenrec_call *call, void *arg, tenrec_error *err)
{
    size_t n;
    int64_t a, b;
    const struct tenrec_value *args = tenrec_call_args(call, &n);

    (void)arg;
    if (tenrec_values_get(args, n, err, "ii", &a, &b))
        return TENREC_EINVAL;
    return tenrec_call_return(
        call, &(struct tenrec_value){ .type = TENREC_VALUE_INT, .u.integer = a + b }, err);
}

int main(void)
{
    const struct tenrec_value args[] = { tenrec_int(2), tenrec_int(3) };
    struct tenrec_worker_info me;
    struct tenrec_value *sum = NULL;
    struct tenrec_worker *w = NULL;
    tenrec_error err;
    bool ok;

    ok = !tenrec_worker_new(NULL, &w, &err) &&
         !tenrec_register_function(w, "add", add, NULL, TENREC_INLINE, &err) &&
         !tenrec_init_rpc(w, &err) && !tenrec_get_worker_info(w, NULL, &me, &err);
    if (ok && me.id == 0 && (ok = !tenrec_rpc_sync(w, "worker1", "add", args, 2, NULL, &sum, &err)))
        printf("2 + 3 = %" PRId64 "\n", sum->u.integer);
    ok = ok && !tenrec_shutdown(w, TENREC_GRACEFUL, TENREC_TIMEOUT_DEFAULT, &err);
    if (!ok)
        fprintf(stderr, "hello: %s\n", err.text);
    tenrec_value_drop(sum);
    tenrec_worker_drop(w);
    return ok ? 0 : 1;
}
