/* SPDX-License-Identifier: Apache-2.0 */
/* parameter_server.c - parameters behind remote references, and a trainer that dies.
 *
 *     tenrec run -n 4 --keep-going --config config/faulty_rref.yaml -- \
 *         parameter_server [--updates N] [--kill RANK]
 *
 * Worker 0 owns a table: the weights of a linear model, a C object that never
 * leaves it. Worker 1 gets a reference to the table (tenrec_remote) and passes it to
 * the other trainers. All pull and push by calls on the reference, and pass the
 * server a reference to their own sample counter. Trainers do not wait for each
 * other. With --kill one trainer kills itself early: the others do its
 * share, and the server releases its references. */
#include "parameter_table.h"
#include <tenrec/observe.h>

#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SAMPLES 32 /* per update */
#define UPDATES 1200
#define LINES 6 /* of progress */
#define WAIT_MS 20000
#define CLOSE_TO 0.01 /* limit of the root mean square error of the weights */

static int complain(const char *what, const tenrec_error *err)
{
    fprintf(stderr, "parameter_server: %s: %s (%s)\n", what, err->text,
            tenrec_status_name(err->code));
    return 1;
}

/* The true weights, which the model has to find. */
static float truth(int i)
{
    return (float)sin(1.7 * i + 0.3);
}

/* ---- the server --------------------------------------------------------------------- */

/* A number of the debug info of worker `to` (NULL: `w` itself); -1: none. */
static int64_t info_number(struct tenrec_worker *w, const char *to, const char *key)
{
    struct tenrec_value *info = NULL;
    const struct tenrec_value *v;
    int64_t n = -1;

    if (tenrec_worker_inspect(w, to, TENREC_INSPECT_DEBUG_INFO, NULL, &info, NULL))
        return n;
    v = tenrec_value_find(info, key);
    if (v)
        n = v->u.integer;
    tenrec_value_drop(info);
    return n;
}

static void on_released(struct tenrec_worker *w, tenrec_peer lost, size_t n_forks, size_t n_freed,
                        void *arg)
{
    struct table *t = arg;

    (void)n_freed;
    if (lost < 1 || lost >= TRAINERS_MAX)
        return;
    pthread_mutex_lock(&t->lock);
    t->trainer[lost].lost = true;
    printf("worker%d is lost after %d updates: its references to the table (%zu) are gone, %" PRId64
           " "
           "of the others are left\n",
           (int)lost, t->updates, n_forks, info_number(w, NULL, "rref.num_forks"));
    fflush(stdout);
    pthread_cond_broadcast(&t->moved);
    pthread_mutex_unlock(&t->lock);
}

/* Asks worker `id` for the number of its samples; -1 when the worker is lost. */
static int64_t samples_of(struct table *t, tenrec_peer id)
{
    struct tenrec_call_options options = { .size = sizeof options, .timeout_ms = WAIT_MS };
    struct tenrec_value *v = NULL;
    struct tenrec_rref *seen;
    int64_t n = -1;
    tenrec_error err;

    pthread_mutex_lock(&t->lock);
    seen = t->trainer[id].lost ? NULL : t->trainer[id].seen;
    seen = seen ? tenrec_rref_share(seen) : NULL;
    pthread_mutex_unlock(&t->lock);
    if (seen && !tenrec_rref_rpc_sync(seen, "count", NULL, 0, &options, &v, &err))
        n = v->u.integer;
    tenrec_value_drop(v);
    tenrec_rref_drop(seen);
    return n;
}

static void show(struct table *t, int updates, double loss, size_t world)
{
    printf("update %4d, loss %.5f, samples seen:", updates, loss);
    for (size_t i = 1; i < world; i++) {
        const int64_t n = samples_of(t, (tenrec_peer)i);

        if (n < 0)
            printf(" -");
        else
            printf(" %" PRId64, n);
    }
    printf("\n");
    fflush(stdout);
}

/* With the lock. */
static bool all_are_done(const struct table *t, size_t world)
{
    for (size_t i = 1; i < world; i++)
        if (!t->trainer[i].done && !t->trainer[i].lost)
            return false;
    return true;
}

/* Shows the progress until all trainers are done or lost. Returns false after
 * WAIT_MS without an update. */
static bool watch(struct table *t, size_t world)
{
    const int every = t->wanted > LINES ? t->wanted / LINES : 1;
    int next = every, error = 0;

    pthread_mutex_lock(&t->lock);
    while (!error && !(all_are_done(t, world) && next > t->wanted)) {
        struct timespec until;

        if (t->updates >= next) {
            const double loss = t->loss;

            pthread_mutex_unlock(&t->lock);
            show(t, next, loss, world);
            pthread_mutex_lock(&t->lock);
            next += every;
            continue;
        }
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += WAIT_MS / 1000;
        error = pthread_cond_timedwait(&t->moved, &t->lock, &until);
    }
    pthread_mutex_unlock(&t->lock);
    if (error)
        fprintf(stderr, "parameter_server: no update for %d s\n", WAIT_MS / 1000);
    return !error;
}

/* Sums up the failures that the backend has injected, of all workers but the lost. */
static int64_t faults(struct tenrec_worker *w, const struct table *t, size_t world)
{
    struct tenrec_worker_info all[TRAINERS_MAX];
    tenrec_error err;
    int64_t sum = 0;

    if (tenrec_worker_get_infos(w, all, TRAINERS_MAX, &world, &err))
        return 0;
    for (size_t i = 0; i < world; i++) {
        int64_t n = t->trainer[i].lost
                        ? -1
                        : info_number(w, i ? all[i].name : NULL, "faulty.injected_failures");

        sum += n > 0 ? n : 0;
    }
    return sum;
}

/* Releases the references to the trainers' values, and answers the trainers. */
static void let_go(struct table *t, size_t world)
{
    for (size_t i = 1; i < world; i++) {
        tenrec_rref_drop(t->trainer[i].seen);
        if (t->trainer[i].done)
            tenrec_call_finish(t->trainer[i].done, NULL);
    }
}

static int judge(struct tenrec_worker *w, const struct table *t, size_t world, int64_t n_faults)
{
    const float *weights = tenrec_tensor_data(t->weights);
    size_t lost = 0;
    double sum = 0;

    for (int i = 0; i < WEIGHTS; i++)
        sum += (weights[i] - truth(i)) * (weights[i] - truth(i));
    sum = sqrt(sum / WEIGHTS);
    for (size_t i = 1; i < world; i++)
        lost += t->trainer[i].lost;
    if (n_faults)
        printf("parameter_server: %" PRId64 " control messages were made to fail, and sent again\n",
               n_faults);
    printf("parameter_server: error %.5f after %d updates, %zu trainers, %zu lost, %" PRId64
           " references left\n",
           sum, t->updates, world - 1, lost, info_number(w, NULL, "rref.num_forks"));
    fflush(stdout);
    if (sum <= CLOSE_TO)
        return 0;
    fprintf(stderr, "parameter_server: the weights have not converged\n");
    return 1;
}

static int serve(struct tenrec_worker *w, struct table *t, size_t world)
{
    tenrec_error err;
    int64_t n_faults;

    printf("parameter_server: %d weights, %zu trainers, %d updates\n", WEIGHTS, world - 1,
           t->wanted);
    fflush(stdout);
    if (!watch(t, world))
        return 1;
    n_faults = faults(w, t, world);
    let_go(t, world);
    if (tenrec_rref_release_all(w, WAIT_MS, &err))
        return complain("references are left", &err);
    return judge(w, t, world, n_faults);
}

/* ---- a trainer ------------------------------------------------------------------------ */

struct worker {
    _Atomic int64_t samples;
    pthread_mutex_t lock; /* guards table */
    pthread_cond_t moved;
    struct tenrec_rref *table; /* given by worker 1 */
};

/* count(seen): returns the trainer's number of samples. */
static tenrec_status count(struct tenrec_call *call, void *arg, tenrec_error *err)
{
    const struct worker *me = arg;
    const struct tenrec_value n = tenrec_value_int(atomic_load(&me->samples));

    return tenrec_call_return(call, &n, err);
}

/* take(table): receives the table's reference from worker 1. */
static tenrec_status take(struct tenrec_call *call, void *arg, tenrec_error *err)
{
    struct worker *me = arg;
    struct tenrec_rref *table;

    if (tenrec_call_get_args(call, err, "r", &table))
        return err->code;
    pthread_mutex_lock(&me->lock);
    tenrec_rref_drop(me->table);
    me->table = tenrec_rref_share(table);
    pthread_cond_broadcast(&me->moved);
    pthread_mutex_unlock(&me->lock);
    return TENREC_OK;
}

static tenrec_status open_and_give(struct tenrec_worker *w, struct tenrec_rref **ret,
                                   tenrec_error *err)
{
    struct tenrec_worker_info all[TRAINERS_MAX];
    struct tenrec_future *taken[TRAINERS_MAX];
    struct tenrec_rref *table;
    struct tenrec_value ref;
    size_t n = 0, n_taken = 0;
    tenrec_status status = tenrec_worker_get_infos(w, all, TRAINERS_MAX, &n, err);

    if (status)
        return status;
    status = tenrec_remote(w, all[0].name, "open", NULL, 0, NULL, &table, err);
    if (status)
        return status;
    ref = tenrec_value_rref(table);
    for (size_t i = 2; i < n && !status; i++) {
        status = tenrec_rpc_async(w, all[i].name, "take", &ref, 1, NULL, &taken[n_taken], err);
        n_taken += !status;
    }
    if (!status)
        status = tenrec_future_wait_all(taken, n_taken, TENREC_TIMEOUT_DEFAULT, err);
    for (size_t i = 0; i < n_taken; i++)
        tenrec_future_drop(taken[i]);
    if (status)
        tenrec_rref_drop(table);
    else
        *ret = table;
    return status;
}

static tenrec_status await_table(struct worker *me, struct tenrec_rref **ret, tenrec_error *err)
{
    struct timespec until;
    int error = 0;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += WAIT_MS / 1000;
    pthread_mutex_lock(&me->lock);
    while (!me->table && !error)
        error = pthread_cond_timedwait(&me->moved, &me->lock, &until);
    *ret = me->table;
    me->table = NULL;
    pthread_mutex_unlock(&me->lock);
    if (!*ret)
        return tenrec_fail(err, TENREC_ETIMEDOUT, "worker 1 gave no table within %d s",
                           WAIT_MS / 1000);
    return TENREC_OK;
}

static double uniform(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(*state >> 11) / 9007199254740992.0 * 2 - 1;
}

/* The mean loss of fresh samples, and its gradient. */
static double look_at_samples(uint64_t *state, const float *weights, float *gradient)
{
    double loss = 0, x[WEIGHTS];

    memset(gradient, 0, WEIGHTS * sizeof *gradient);
    for (int k = 0; k < SAMPLES; k++) {
        double wrong = 0;

        for (int i = 0; i < WEIGHTS; i++) {
            x[i] = uniform(state) * 1.7;
            wrong += x[i] * (weights[i] - truth(i));
        }
        loss += wrong * wrong / SAMPLES;
        for (int i = 0; i < WEIGHTS; i++)
            gradient[i] += (float)(2 * wrong * x[i] / SAMPLES);
    }
    return loss;
}

static tenrec_status train_step(struct tenrec_rref *table, uint64_t *state, bool *ret_more,
                                tenrec_error *err)
{
    struct tenrec_value *pulled = NULL, *pushed = NULL, args[2];
    struct tenrec_tensor *weights, *gradient = weights_new(err);
    tenrec_status status;

    if (!gradient)
        return TENREC_ENOMEM;
    status = tenrec_rref_rpc_sync(table, "pull", NULL, 0, NULL, &pulled, err);
    if (!status)
        status = tenrec_value_unpack(pulled, 1, err, "t", &weights);
    if (!status) {
        args[1] = tenrec_value_double(
            look_at_samples(state, tenrec_tensor_data(weights), tenrec_tensor_data(gradient)));
        args[0] = tenrec_value_tensor(gradient);
        status = tenrec_rref_rpc_sync(table, "push", args, 2, NULL, &pushed, err);
    }
    if (!status)
        status = tenrec_value_unpack(pushed, 1, err, "b", ret_more);
    tenrec_value_drop(pulled);
    tenrec_value_drop(pushed);
    tenrec_tensor_drop(gradient);
    return status;
}

static tenrec_status train(struct tenrec_worker *w, struct worker *me, tenrec_peer id, int dies_at,
                           tenrec_error *err)
{
    struct tenrec_rref *table = NULL, *seen = NULL;
    struct tenrec_value name = tenrec_value_text("samples"), ref;
    uint64_t state = (uint64_t)id * 7919;
    tenrec_status status = id == 1 ? open_and_give(w, &table, err) : await_table(me, &table, err);
    bool more = true;

    if (!status)
        status = tenrec_rref_new(w, &name, &seen, err);
    if (!status) {
        ref = tenrec_value_rref(seen);
        status = tenrec_rref_rpc_sync(table, "join", &ref, 1, NULL, NULL, err);
    }
    /* The trainer dies in the middle of its own share, however fast the others are. */
    for (int step = 0; !status && (more || step <= dies_at); step++) {
        if (step == dies_at)
            raise(SIGKILL);
        status = train_step(table, &state, &more, err);
        atomic_fetch_add(&me->samples, SAMPLES);
    }
    if (!status)
        status = tenrec_rref_rpc_sync(table, "done", NULL, 0, NULL, NULL, err);
    tenrec_rref_drop(table);
    tenrec_rref_drop(seen);
    /* The server waits for the deletes of this trainer's references. */
    return status ? status : tenrec_rref_release_all(w, WAIT_MS, err);
}

/* ---- both -------------------------------------------------------------------------------- */

static int work(struct tenrec_worker *w, struct worker *self, struct table *t, int kill_rank)
{
    struct tenrec_worker_info me;
    tenrec_error err;
    size_t n;
    int status = 0;

    if (table_register(w, t, &err) ||
        tenrec_worker_register_function(w, "count", count, self, TENREC_INLINE, &err) ||
        tenrec_worker_register_function(w, "take", take, self, TENREC_INLINE, &err))
        return complain("cannot register", &err);
    tenrec_worker_set_rrefs_released_callback(w, on_released, t);
    if (tenrec_init_rpc(w, &err) || tenrec_get_worker_info(w, NULL, &me, &err) ||
        tenrec_worker_get_infos(w, NULL, 0, &n, &err))
        return complain("cannot join", &err);
    if (n < 2 || n > TRAINERS_MAX) {
        fprintf(stderr, "parameter_server: %zu workers, expected 2 to %d\n", n, TRAINERS_MAX);
        return 2;
    }
    if (me.id == 0)
        status = serve(w, t, n);
    else if (train(w, self, me.id, me.id == kill_rank ? t->wanted / (int)n / 8 : -1, &err))
        status = complain("training stopped", &err);
    /* Not gracefully: a graceful shutdown would wait for the dead trainer. */
    if (status == 0 && tenrec_shutdown(w, TENREC_IMMEDIATE, WAIT_MS, &err))
        status = complain("shutdown", &err);
    return status;
}

/* Returns false if the arguments are wrong. */
static bool read_arguments(int argc, char **argv, int *ret_updates, int *ret_kill)
{
    for (int i = 1; i < argc; i += 2) {
        int *to = !strcmp(argv[i], "--updates") ? ret_updates
                  : !strcmp(argv[i], "--kill")  ? ret_kill
                                                : NULL;
        char *end;
        long n;

        if (!to || i + 1 == argc)
            return false;
        n = strtol(argv[i + 1], &end, 10);
        if (*end != '\0' || end == argv[i + 1] || n < 1 || n > 1000000)
            return false;
        *to = (int)n;
    }
    return true;
}

int main(int argc, char **argv)
{
    struct worker self = { .lock = PTHREAD_MUTEX_INITIALIZER, .moved = PTHREAD_COND_INITIALIZER };
    struct tenrec_worker *w = NULL;
    struct table t;
    int updates = UPDATES, kill_rank = -1, status = 1;
    tenrec_error err;

    if (!read_arguments(argc, argv, &updates, &kill_rank)) {
        fprintf(stderr, "usage: tenrec run -n WORKERS --keep-going -- parameter_server "
                        "[--updates N] [--kill RANK]\n");
        return 2;
    }
    if (table_init(&t, updates, &err))
        return complain("no table", &err);
    if (tenrec_worker_new(NULL, &w, &err))
        complain("no worker", &err);
    else
        status = work(w, &self, &t, kill_rank);
    tenrec_worker_drop(w);
    table_finish(&t);
    return status;
}
