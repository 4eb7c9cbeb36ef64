/* SPDX-License-Identifier: Apache-2.0 */
/* smooth.c - a worker in C that smooths tensors for a PyTorch program, and calls
 * torch on tensors of its own. See examples/mixed/run. */
#include <stdio.h>
#include <tenrec/tenrec.h>

#define N 8

static tenrec_status need_floats(const struct tenrec_tensor *t, tenrec_error *err)
{
    const struct tenrec_tensor_desc *d = tenrec_tensor_desc(t);

    if (d->dtype.code == TENREC_DTYPE_FLOAT && d->dtype.bits == 32 && d->ndim == 1)
        return TENREC_OK;
    return tenrec_fail(err, TENREC_EINVAL, "expected a row of float32, got %u dimensions of %s",
                       d->ndim, tenrec_dtype_name(d->dtype));
}

/* smooth(x): returns the mean of each element and its neighbours. */
static tenrec_status smooth(struct tenrec_call *call, void *arg, tenrec_error *err)
{
    struct tenrec_tensor *given, *x, *y = NULL;
    const struct tenrec_value *args;
    struct tenrec_value result;
    tenrec_status st;
    size_t n_args;

    (void)arg;
    args = tenrec_call_args(call, &n_args);
    st = tenrec_value_unpack(args, n_args, err, "t", &given);
    if (st != TENREC_OK || (st = need_floats(given, err)) != TENREC_OK)
        return st;
    st = tenrec_tensor_contiguous(given, &x, err);
    if (st != TENREC_OK)
        return st;
    st = tenrec_tensor_new(TENREC_FLOAT32, 1, tenrec_tensor_desc(x)->shape, &y, err);
    if (st == TENREC_OK) {
        const float *from = tenrec_tensor_data(x);
        float *to = tenrec_tensor_data(y);
        size_t n = tenrec_tensor_count(x);

        for (size_t i = 0; i < n; i++) {
            size_t first = i > 0 ? i - 1 : i, last = i + 1 < n ? i + 1 : i;
            float sum = 0;

            for (size_t j = first; j <= last; j++)
                sum += from[j];
            to[i] = sum / (float)(last - first + 1);
        }
        result = tenrec_value_tensor(y);
        st = tenrec_call_return(call, &result, err);
    }
    tenrec_tensor_drop(y);
    tenrec_tensor_drop(x);
    return st;
}

/* Asks torch for the norm of 0, 1, 4, 9 ... */
static tenrec_status ask_torch(struct tenrec_worker *w, tenrec_error *err)
{
    const int64_t shape[] = { N };
    struct tenrec_tensor *squares;
    struct tenrec_value arg, *said = NULL;
    tenrec_status st = tenrec_tensor_new(TENREC_FLOAT32, 1, shape, &squares, err);

    if (st != TENREC_OK)
        return st;
    for (int i = 0; i < N; i++)
        ((float *)tenrec_tensor_data(squares))[i] = (float)(i * i);
    arg = tenrec_value_tensor(squares);
    st = tenrec_rpc_sync(w, "trainer", "norm", &arg, 1, NULL, &said, err);
    if (st == TENREC_OK)
        printf("smooth: torch says that the norm is %.3f\n", said->u.number);
    tenrec_value_drop(said);
    tenrec_tensor_drop(squares);
    return st;
}

int main(void)
{
    struct tenrec_config *config = NULL;
    struct tenrec_worker *w = NULL;
    tenrec_error err;
    bool ok = tenrec_config_load(NULL, &config, &err) == TENREC_OK &&
              tenrec_config_set(config, "worker.name", "smoother", &err) == TENREC_OK &&
              tenrec_worker_new(config, &w, &err) == TENREC_OK &&
              tenrec_worker_register_function(w, "smooth", smooth, NULL, TENREC_POOL, &err) ==
                  TENREC_OK &&
              tenrec_init_rpc(w, &err) == TENREC_OK && ask_torch(w, &err) == TENREC_OK &&
              tenrec_shutdown(w, TENREC_GRACEFUL, TENREC_TIMEOUT_DEFAULT, &err) == TENREC_OK;

    if (!ok)
        fprintf(stderr, "smooth: %s\n", err.text);
    tenrec_worker_drop(w);
    tenrec_config_drop(config);
    return !ok;
}
