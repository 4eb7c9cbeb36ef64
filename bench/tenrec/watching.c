/* SPDX-License-Identifier: Apache-2.0 */
/* watching.c - what watching calls costs: the same calls between the same two workers, which watch
 * nothing, count durations, or also record, in turns of milliseconds. */
#include "measure.h"
#include "modes.h"
#include "samples.h"
#include "side.h"

#include <stdlib.h>

enum watching { NOTHING, DURATIONS, RECORDER, WATCHINGS };
enum { TURNS = 100, SETTLE = 500, CALLS = 10000 };

static const struct tenrec_setting settings[WATCHINGS][2] = {
    { { "observe.durations", "false" }, { "observe.recorder", "false" } },
    { { "observe.durations", "true" }, { "observe.recorder", "false" } },
    { { "observe.durations", "true" }, { "observe.recorder", "true" } },
};

static void watch(struct tenrec_worker *w, int64_t what)
{
    tenrec_error err;

    if (tenrec_worker_reconfigure(w, NULL, settings[what], 2, NULL, &err))
        side_give_up(&err);
}

/* ---- the callee ---------------------------------------------------------------------- */

static tenrec_status on_watch(struct tenrec_call *call, void *worker, tenrec_error *err)
{
    const struct tenrec_value *args;
    int64_t what;
    size_t n;

    args = tenrec_call_args(call, &n);
    if (tenrec_value_unpack(args, n, err, "i", &what))
        return err->code;
    watch(worker, what);
    return tenrec_call_return(call, NULL, err);
}

static int watching_serve(void *side)
{
    struct tenrec_worker *w = side_worker(side, 1);
    struct measure_callee c;
    tenrec_error err;

    if (measure_callee_init(&c, w, 0, TENREC_INLINE, &err) ||
        tenrec_worker_register_function(w, "bench.watch", on_watch, w, 0, &err) ||
        tenrec_init_rpc(w, &err))
        side_give_up(&err);
    measure_callee_wait(&c);
    side_end_worker(w);
    measure_callee_finish(&c);
    return 0;
}

/* ---- the caller --------------------------------------------------------------------------- */

static void call_often(const struct measure *m, int n)
{
    tenrec_error err;

    for (int i = 0; i < n; i++)
        if (tenrec_rpc_sync(m->worker, m->to, "measure.nothing", NULL, 0, NULL, NULL, &err))
            side_give_up(&err);
}

/* Returns what `calls` calls took, in nanoseconds, with both sides watching. */
static uint64_t turn(const struct measure *m, enum watching what, int calls)
{
    struct tenrec_value args[] = { tenrec_value_int(what) };
    tenrec_error err;
    uint64_t since;

    watch(m->worker, what);
    if (tenrec_rpc_sync(m->worker, m->to, "bench.watch", args, 1, NULL, NULL, &err))
        side_give_up(&err);
    call_often(m, SETTLE);
    since = samples_now_ns();
    call_often(m, calls);
    return samples_now_ns() - since;
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(double *x)
{
    qsort(x, TURNS, sizeof *x, by_size);
    return (x[TURNS / 2 - 1] + x[TURNS / 2]) / 2;
}

static void tell(const char *progress, double us[WATCHINGS][TURNS])
{
    double ratio[WATCHINGS][TURNS];

    for (int i = 0; i < TURNS; i++)
        for (int what = 0; what < WATCHINGS; what++)
            ratio[what][i] = us[what][i] / us[NOTHING][i];
    printf("{\"peer\": \"tenrec\", \"via\": \"shm\", \"mode\": \"watching\", \"progress\": \"%s\", "
           "\"nothing_us\": %.4f, \"durations_us\": %.4f, \"recorder_us\": %.4f, "
           "\"durations_ratio\": %.4f, \"recorder_ratio\": %.4f}\n",
           progress, median(us[NOTHING]), median(us[DURATIONS]), median(us[RECORDER]),
           median(ratio[DURATIONS]), median(ratio[RECORDER]));
}

int watching_main(const char *progress)
{
    struct side *s = side_new("shm", progress, 2);
    const int calls = pair_quick() ? CALLS / 10 : CALLS;
    pid_t callee = pair_fork(watching_serve, s);
    struct measure m = { .worker = side_worker(s, 0), .to = "w1" };
    double us[WATCHINGS][TURNS];
    tenrec_error err;

    if (tenrec_init_rpc(m.worker, &err))
        side_give_up(&err);
    for (int i = 0; i < TURNS; i++)
        for (int k = 0; k < WATCHINGS; k++) {
            const enum watching what = (enum watching)(i % 2 ? WATCHINGS - 1 - k : k);

            us[what][i] = (double)turn(&m, what, calls) / 1e3 / calls;
        }
    if (measure_end(&m, &err))
        side_give_up(&err);
    side_end_worker(m.worker);
    if (!pair_join(callee))
        return 1;
    side_drop(s);
    tell(progress, us);
    return 0;
}
