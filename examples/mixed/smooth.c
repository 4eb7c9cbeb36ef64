/* SPDX-License-Identifier: Apache-2.0 */
/* smooth.c - a worker in C that smooths tensors for a PyTorch program, and calls
 * torch on tensors of its own. See examples/mixed/run. */
#include <stdio.h>
#include <tenrec/tenrec.h>

#define N 8

/* smooth(x): returns the mean of each element and its neighbours. */
static tenrec_status smooth(struct tenrec_call *call, void *arg, tenrec_error *err)
{
    struct tenrec_value result;
    struct tenrec_tensor *x, *y;
    tenrec_status status;

    (void)arg;
    if (tenrec_call_get_args(call, err, "Tf[*]", &x) ||
        tenrec_tensor_new(TENREC_FLOAT32, 1, tenrec_tensor_desc(x)->shape, &y, err))
        return err->code;
    const float *from = tenrec_tensor_data(x);
    float *to = tenrec_tensor_data(y);
    const size_t n = tenrec_tensor_count(x);

    for (size_t i = 0; i < n; i++) {
        const size_t first = i > 0 ? i - 1 : i, last = i + 1 < n ? i + 1 : i;
        float sum = 0;

        for (size_t j = first; j <= last; j++)
            sum += from[j];
        to[i] = sum / (float)(last - first + 1);
    }
    result = tenrec_value_tensor(y);
    status = tenrec_call_return(call, &result, err);
    tenrec_tensor_drop(y);
    return status;
}

/* Asks torch for the norm of 0, 1, 4, 9 ... */
static tenrec_status ask_torch(struct tenrec_worker *w, tenrec_error *err)
{
    struct tenrec_tensor *squares;
    tenrec_status status;
    double norm;

    if (tenrec_tensor_new(TENREC_FLOAT32, 1, (int64_t[]){ N }, &squares, err))
        return err->code;
    for (int i = 0; i < N; i++)
        ((float *)tenrec_tensor_data(squares))[i] = (float)(i * i);
    status = tenrec_call(w, "trainer", "norm", err, "t>d", squares, &norm);
    if (!status)
        printf("smooth: torch says that the norm is %.3f\n", norm);
    tenrec_tensor_drop(squares);
    return status;
}

int main(void)
{
    struct tenrec_config *config = NULL;
    struct tenrec_worker *w = NULL;
    tenrec_error err;
    const bool failed =
        tenrec_config_load(NULL, &config, &err) ||
        tenrec_config_set(config, "worker.name", "smoother", &err) ||
        tenrec_worker_new(config, &w, &err) ||
        tenrec_worker_register_function(w, "smooth", smooth, NULL, TENREC_POOL, &err) ||
        tenrec_init_rpc(w, &err) || ask_torch(w, &err) ||
        tenrec_shutdown(w, TENREC_GRACEFUL, TENREC_TIMEOUT_DEFAULT, &err);

    if (failed)
        tenrec_error_print(&err, "smooth");
    tenrec_worker_drop(w);
    tenrec_config_drop(config);
    return failed;
}
