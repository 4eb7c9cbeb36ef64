/* SPDX-License-Identifier: Apache-2.0 */
/* batch.c - inference in batches: tenrec run -n 4 -- batch
 *
 * Worker 0 has a model, a linear layer here. It receives requests from a mailbox and waits a little
 * for more of them: a model takes a batch in about the time of one request. */
#include <stdio.h>
#include <tenrec/tenrec.h>

enum { FEATURES = 4, BATCH = 8, FIRST_MS = 20000, NEXT_MS = 2, REQUESTS = 40 };

static void model(float (*const x)[FEATURES], float *y, int n)
{
    for (int i = 0; i < n; i++)
        y[i] = 4 * x[i][0] + 3 * x[i][1] + 2 * x[i][2] + x[i][3];
}

/* Receives up to BATCH requests. A request that is no row of features is answered with the reason.
 */
static tenrec_status receive(struct tenrec_worker *w, struct tenrec_call *call[BATCH],
                             float x[BATCH][FEATURES], int *ret_n, tenrec_error *err)
{
    struct tenrec_tensor *row;
    tenrec_status status = TENREC_OK;

    for (*ret_n = 0; *ret_n < BATCH && !status;) {
        status = tenrec_worker_receive(w, "infer", *ret_n ? NEXT_MS : FIRST_MS, &call[*ret_n], err);
        if (!status && tenrec_call_get_args(call[*ret_n], err, "Tf[4]", &row))
            tenrec_call_finish(call[*ret_n], err);
        else if (!status)
            memcpy(x[(*ret_n)++], tenrec_tensor_data(row), sizeof x[0]);
    }
    return status == TENREC_ETIMEDOUT && *ret_n > 0 ? TENREC_OK : status;
}

static tenrec_status serve(struct tenrec_worker *w, int requests, tenrec_error *err)
{
    float x[BATCH][FEATURES], y[BATCH];
    struct tenrec_call *call[BATCH];
    int served = 0, batches = 0, n;

    for (; served < requests; served += n, batches++) {
        if (receive(w, call, x, &n, err))
            return err->code;
        model(x, y, n);
        for (int i = 0; i < n; i++) {
            const struct tenrec_value v = tenrec_value_double((double)y[i]);
            const tenrec_status status = tenrec_call_return(call[i], &v, err);

            tenrec_call_finish(call[i], status ? err : NULL);
        }
    }
    printf("%d requests in %s batches\n", served, batches < served ? "fewer" : "as many");
    return TENREC_OK;
}

/* All requests at once: the calls wait in the mailbox. */
static tenrec_status ask(struct tenrec_worker *w, tenrec_error *err)
{
    struct tenrec_future *answer[REQUESTS] = { NULL };
    tenrec_status status = TENREC_OK;
    double sum = 0;

    for (int i = 0; i < REQUESTS && !status; i++) {
        struct tenrec_value arg = tenrec_value_tensor(NULL);

        status = tenrec_tensor_new(TENREC_FLOAT32, 1, (int64_t[]){ FEATURES }, &arg.u.tensor, err);
        for (int k = 0; k < FEATURES && !status; k++)
            ((float *)tenrec_tensor_data(arg.u.tensor))[k] = (float)i;
        if (!status)
            status = tenrec_rpc_async(w, "worker0", "infer", &arg, 1, NULL, &answer[i], err);
        tenrec_tensor_drop(arg.u.tensor);
    }
    for (int i = 0; i < REQUESTS; i++) {
        status = status ? status : tenrec_future_wait(answer[i], TENREC_TIMEOUT_DEFAULT, err);
        sum += status ? 0 : tenrec_future_value(answer[i])->u.number;
        tenrec_future_drop(answer[i]);
    }
    if (!status)
        printf("the mean answer is %.1f\n", sum / REQUESTS);
    return status;
}

int main(void)
{
    struct tenrec_worker *w = NULL;
    tenrec_error err;
    bool failed = tenrec_worker_new(NULL, &w, &err) ||
                  tenrec_worker_register_function(w, "infer", NULL, NULL, TENREC_MAILBOX, &err) ||
                  tenrec_init_rpc(w, &err);

    failed = failed ||
             (tenrec_worker_rank(w) ? ask(w, &err)
                                    : serve(w, (int)(tenrec_worker_size(w) - 1) * REQUESTS, &err));
    failed = failed || tenrec_shutdown(w, TENREC_GRACEFUL, TENREC_TIMEOUT_DEFAULT, &err);
    if (failed)
        tenrec_error_print(&err, "batch");
    tenrec_worker_drop(w);
    return failed;
}
