/* SPDX-License-Identifier: Apache-2.0 */
/* actors.c - actors that play, and a learner that makes their policy better:
 *
 *     tenrec run -n 4 -- actors [VERSIONS]
 *
 * Worker 0 learns, the others balance a pole on a cart. An actor pushes what it played to the
 * learner, and is answered with the policy when the learner takes it. Until then it plays on, but
 * pushes no more: no queue grows, however slow the learner is. A batch is played with the policy
 * of two batches before, however fast the actor is: all runs are equal. */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <tenrec/profiler.h>
#include <tenrec/tenrec.h>
#include <time.h>

enum { STATE = 4, STEP = 6 /* a state, the action in it, and what it led to */ };
enum { VERSIONS = 60, EPISODES = 20, LENGTH = 200, ACTORS_MAX = 16, WAIT_MS = 20000 };

static const double rate = 0.08, discount = 0.95;

/* ---- the cart and the pole ------------------------------------------------------------------ */

static double uniform(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (double)(*seed >> 11) / (double)(UINT64_C(1) << 53);
}

/* One step of the cart: s is its position, its speed, the pole's angle and its speed. Returns false
 * when the pole has fallen or the cart has left the track. */
static bool cart_push(double s[STATE], bool right)
{
    const double force = right ? 10 : -10, sine = sin(s[2]), cosine = cos(s[2]);
    const double pull = (force + 0.05 * s[3] * s[3] * sine) / 1.1;
    const double turn =
        (9.8 * sine - cosine * pull) / (0.5 * (4 / 3.0 - 0.1 * cosine * cosine / 1.1));
    const double move = pull - 0.05 * turn * cosine / 1.1;

    s[0] += 0.02 * s[1];
    s[1] += 0.02 * move;
    s[2] += 0.02 * s[3];
    s[3] += 0.02 * turn;
    return fabs(s[0]) < 2.4 && fabs(s[2]) < 0.21;
}

/* The probability that the policy pushes to the right. */
static double to_the_right(const double *policy, const double *state)
{
    double sum = 0;

    for (int i = 0; i < STATE; i++)
        sum += policy[i] * state[i];
    return 1 / (1 + exp(-sum));
}

/* Plays an episode into `steps`; returns its number of steps. */
static int play(const double *policy, uint64_t *seed, double (*steps)[STEP])
{
    double state[STATE], later = 0;
    int n = 0;

    for (int i = 0; i < STATE; i++)
        state[i] = uniform(seed) * 0.1 - 0.05;
    do {
        memcpy(steps[n], state, sizeof state);
        steps[n][STATE] = uniform(seed) < to_the_right(policy, state);
    } while (cart_push(state, steps[n++][STATE] > 0) && n < LENGTH);
    for (int i = n - 1; i >= 0; i--)
        steps[i][STATE + 1] = later = 1 + discount * later;
    return n;
}

/* ---- the learner ---------------------------------------------------------------------------- */

struct learner {
    pthread_mutex_t lock;
    pthread_cond_t moved;
    struct tenrec_call *push[ACTORS_MAX]; /* the batch of each actor that is not taken yet, by id */
};

static int64_t steps_of(const struct tenrec_tensor *batch)
{
    return tenrec_tensor_desc(batch)->shape[0];
}

/* push(batch): answered with the policy when the learner takes the batch. An actor has one at a
 * time: this bounds the learner's memory, also where an actor does not keep to it. */
static tenrec_status push(struct tenrec_call *call, void *arg, tenrec_error *err)
{
    const tenrec_peer id = tenrec_call_from(call).id;
    struct tenrec_tensor *batch;
    struct learner *l = arg;
    bool full;

    if (tenrec_call_get_args(call, err, "Td[*,6]", &batch))
        return err->code;
    if (id < 1 || id >= ACTORS_MAX || steps_of(batch) < 1)
        return tenrec_fail(err, TENREC_EINVAL, "worker %d pushed no steps of an actor", (int)id);
    pthread_mutex_lock(&l->lock);
    full = l->push[id];
    l->push[id] = full ? l->push[id] : call;
    pthread_cond_broadcast(&l->moved);
    pthread_mutex_unlock(&l->lock);
    return full ? tenrec_fail(err, TENREC_EAGAIN, "the batch before is not taken yet") : TENREC_OK;
}

/* Takes the batch of an actor, and answers with the policy. */
static tenrec_status take(struct learner *l, int id, struct tenrec_tensor *policy,
                          struct tenrec_tensor **ret, tenrec_error *err)
{
    const struct tenrec_value v = tenrec_value_tensor(policy);
    struct tenrec_call *call;
    struct timespec until;
    int error = 0;
    size_t n;
    tenrec_status status;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += WAIT_MS / 1000;
    pthread_mutex_lock(&l->lock);
    while (!l->push[id] && !error)
        error = pthread_cond_timedwait(&l->moved, &l->lock, &until);
    call = l->push[id];
    l->push[id] = NULL;
    pthread_mutex_unlock(&l->lock);
    if (!call)
        return tenrec_fail(err, TENREC_ETIMEDOUT, "actor %d pushed nothing for %d s", id,
                           WAIT_MS / 1000);
    status = tenrec_call_return(call, &v, err);
    if (!status)
        *ret = tenrec_tensor_share(tenrec_call_args(call, &n)->u.tensor);
    tenrec_call_finish(call, status ? err : NULL);
    return status;
}

/* REINFORCE: makes an action likelier if it led to more than the mean of all, and the opposite if
 * to less. The actors come in order, so that sums are equal in all runs. Returns the mean length
 * of an episode, its reward. */
static double improve(const double *before, double *after, struct tenrec_tensor *const *batch,
                      int n)
{
    double sum = 0, length = 1e-9, gradient[STATE] = { 0 };
    int64_t steps = 0;

    for (int i = 0; i < n; steps += steps_of(batch[i++]))
        for (int64_t k = 0; k < steps_of(batch[i]); k++)
            sum += ((double(*)[STEP])tenrec_tensor_data(batch[i]))[k][STATE + 1];
    for (int i = 0; i < n; i++)
        for (int64_t k = 0; k < steps_of(batch[i]); k++) {
            const double *s = ((double(*)[STEP])tenrec_tensor_data(batch[i]))[k];
            const double better = s[STATE + 1] - sum / (double)steps;

            for (int d = 0; d < STATE; d++)
                gradient[d] += better * (s[STATE] - to_the_right(before, s)) * s[d];
        }
    for (int d = 0; d < STATE; d++)
        length += gradient[d] * gradient[d];
    for (int d = 0; d < STATE; d++)
        after[d] = before[d] + rate * gradient[d] / sqrt(length);
    return (double)steps / n / EPISODES;
}

static tenrec_status policy_new(struct tenrec_tensor **ret, tenrec_error *err)
{
    const int64_t n = STATE;

    if (tenrec_tensor_new(TENREC_FLOAT64, 1, &n, ret, err))
        return err->code;
    memset(tenrec_tensor_data(*ret), 0, STATE * sizeof(double));
    return TENREC_OK;
}

static tenrec_status learn(struct tenrec_worker *w, struct learner *l, int actors, int versions,
                           tenrec_error *err)
{
    struct tenrec_tensor *batch[ACTORS_MAX], *policy = NULL, *after;
    tenrec_status status = policy_new(&policy, err);

    for (int version = 1; version <= versions && !status; version++) {
        int taken = 0;

        for (; taken < actors && !status; taken += !status)
            status = take(l, taken + 1, policy, &batch[taken], err);
        if (!status)
            status = policy_new(&after, err);
        if (!status) {
            struct tenrec_profiler_mark *m = tenrec_profiler_mark_begin(w, "learn");
            const double reward =
                improve(tenrec_tensor_data(policy), tenrec_tensor_data(after), batch, actors);

            tenrec_profiler_mark_end(m); /* seen in a trace */
            tenrec_tensor_drop(policy);  /* replaced, never changed: answers may still read it */
            policy = after;
            if (version == 1 || version % 10 == 0)
                printf("learner: version %d, mean reward %.1f\n", version, reward);
        }
        while (taken > 0)
            tenrec_tensor_drop(batch[--taken]);
    }
    tenrec_tensor_drop(policy);
    return status;
}

/* ---- an actor ------------------------------------------------------------------------------- */

static tenrec_status play_batch(const struct tenrec_tensor *policy, uint64_t *seed,
                                struct tenrec_tensor **ret, tenrec_error *err)
{
    double steps[EPISODES * LENGTH][STEP];
    int64_t shape[] = { 0, STEP };

    for (int i = 0; i < EPISODES; i++)
        shape[0] += play(tenrec_tensor_data(policy), seed, steps + shape[0]);
    if (tenrec_tensor_new(TENREC_FLOAT64, 2, shape, ret, err))
        return err->code;
    memcpy(tenrec_tensor_data(*ret), steps, tenrec_tensor_bytes(*ret));
    return TENREC_OK;
}

/* Plays with policy[n % 2], while the answer to the push before is on its way into the other. */
static tenrec_status act(struct tenrec_worker *w, int id, int versions, tenrec_error *err)
{
    struct tenrec_call_options options = { .size = sizeof options, .timeout_ms = WAIT_MS };
    struct tenrec_tensor *policy[2] = { NULL, NULL };
    struct tenrec_future *pushed = NULL;
    uint64_t seed = (uint64_t)id;
    tenrec_status status = policy_new(&policy[0], err);
    int waits = 0;

    if (!status)
        status = policy_new(&policy[1], err);
    for (int n = 0; n < versions && !status; n++) {
        struct tenrec_profiler_mark *m = tenrec_profiler_mark_begin(w, "play");
        struct tenrec_tensor *batch = NULL;

        status = play_batch(policy[n % 2], &seed, &batch, err);
        tenrec_profiler_mark_end(m);
        if (!status && pushed) {
            waits += !tenrec_future_done(pushed);
            status = tenrec_future_wait(pushed, WAIT_MS, err);
            tenrec_future_drop(pushed);
            pushed = NULL;
        }
        if (!status) {
            const struct tenrec_value v = tenrec_value_tensor(batch);

            options.into = policy[n % 2];
            status = tenrec_rpc_async(w, "worker0", "push", &v, 1, &options, &pushed, err);
        }
        tenrec_tensor_drop(batch);
    }
    if (!status)
        status = tenrec_future_wait(pushed, WAIT_MS, err);
    tenrec_future_drop(pushed);
    tenrec_tensor_drop(policy[0]);
    tenrec_tensor_drop(policy[1]);
    if (!status)
        printf("actor %d: %d batches, waited for the learner %d times\n", id, versions, waits);
    return status;
}

static tenrec_status work(struct tenrec_worker *w, struct learner *l, int versions,
                          tenrec_error *err)
{
    tenrec_peer rank;
    size_t n;

    if (tenrec_worker_register_function(w, "push", push, l, TENREC_LATER, err) ||
        tenrec_init_rpc(w, err))
        return err->code;
    rank = tenrec_worker_rank(w);
    n = tenrec_worker_size(w);
    if (n < 2 || n > ACTORS_MAX || versions < 1)
        return tenrec_fail(err, TENREC_EINVAL,
                           "%zu workers, %d versions, expected 2 to %d, 1 or more", n, versions,
                           ACTORS_MAX);
    if (rank == 0 ? learn(w, l, (int)n - 1, versions, err) : act(w, rank, versions, err))
        return err->code;
    return tenrec_shutdown(w, TENREC_GRACEFUL, WAIT_MS, err);
}

int main(int argc, char **argv)
{
    struct learner l = { .lock = PTHREAD_MUTEX_INITIALIZER, .moved = PTHREAD_COND_INITIALIZER };
    const int versions = argc > 1 ? (int)strtol(argv[1], NULL, 10) : VERSIONS;
    struct tenrec_worker *w = NULL;
    tenrec_error err;
    const bool failed = tenrec_worker_new(NULL, &w, &err) || work(w, &l, versions, &err);

    if (failed)
        tenrec_error_print(&err, "actors");
    tenrec_worker_drop(w);
    return failed;
}
