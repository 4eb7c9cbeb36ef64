/* SPDX-License-Identifier: Apache-2.0 */
/* bigram.c - a parameter server and trainers fit a model to text.
 *
 *     tenrec run -n 4 --config config/default.yaml -- bigram [--steps N] [FILE ...]
 *
 * Worker 0 is the server: it holds 128 x 128 logits, a float32 tensor that
 * starts at zero, and only the server changes it. The others are trainers, each
 * with its part of the text. In every step a trainer pulls the logits, computes
 * the gradient of the loss over its part, and pushes the gradient; the server adds
 * up all gradients and makes one step of Adam (bigram_model.h). The sum is the
 * gradient of the whole text, so the number of trainers does not change the
 * result.
 *
 * At the end the server counts the whole text. The counts give the perplexity of
 * the best possible model; the program fails unless its own is within 1 %. */
#include "bigram_model.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenrec/observe.h>
#include <tenrec/tenrec.h>
#include <time.h>
#include <unistd.h>

#define STEPS 200
#define STEPS_MAX 1000000
#define LINES 10 /* of progress, without a terminal */
#define BAR 32   /* characters of the progress bar on a terminal */
#define TRAINERS_MAX 255
#define STALLED_S 60  /* the server fails after this time without a step */
#define TRIES 20      /* per call */
#define CLOSE_TO 1.01 /* limit of perplexity / optimum */

static int complain(const char *what, const tenrec_error *err)
{
    fprintf(stderr, "bigram: %s: %s (%s)\n", what, err->text, tenrec_status_name(err->code));
    return 1;
}

static double now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static struct tenrec_tensor *matrix_new(void)
{
    const int64_t shape[] = { SYMBOLS, SYMBOLS };
    struct tenrec_tensor *t;
    tenrec_error err;

    if (tenrec_tensor_new(TENREC_FLOAT32, 2, shape, &t, &err)) {
        complain("no tensor", &err);
        return NULL;
    }
    memset(tenrec_tensor_data(t), 0, CELLS * sizeof(float));
    return t;
}

/* Sums up the injected faults of all workers. */
static bool add_faults(struct tenrec_worker *w, int64_t mine, int64_t *ret)
{
    const struct tenrec_value value = tenrec_value_int(mine);
    struct tenrec_value *all;
    tenrec_error err;

    if (tenrec_worker_all_gather(w, &value, NULL, 0, TENREC_TIMEOUT_DEFAULT, &all, &err)) {
        complain("cannot gather", &err);
        return false;
    }
    *ret = 0;
    for (uint64_t i = 0; i < all->n; i++)
        *ret += all->u.map[i].value.u.integer;
    tenrec_value_drop(all);
    return true;
}

/* ---- the server: functions that trainers call ------------------------------------ */

struct server {
    pthread_mutex_t lock; /* guards all below but the elements of logits */
    pthread_cond_t moved; /* a field below has changed */
    /* The elements change only when every trainer has pushed. No trainer reads them
     * then: each has the complete answer to its pull before it pushes. */
    struct tenrec_tensor *logits;
    struct adam adam;
    double gradient[CELLS]; /* sum of this step so far */
    double loss, pairs;     /* likewise */
    double mean_loss;       /* of the previous step */
    int step, steps;
    size_t trainers;                          /* 0 until the group has met */
    struct tenrec_call *pushed[TRAINERS_MAX]; /* calls that wait for the end of this step */
    size_t n_pushed;
};

/* pull(step): returns the logits. */
static tenrec_status pull(struct tenrec_call *call, void *arg, tenrec_error *err)
{
    const struct server *s = arg;
    const struct tenrec_value logits = tenrec_value_tensor(s->logits);

    return tenrec_call_return(call, &logits, err);
}

static void take_step(struct server *s)
{
    for (size_t i = 0; i < CELLS; i++)
        s->gradient[i] /= s->pairs;
    adam_step(&s->adam, s->steps, s->gradient, tenrec_tensor_data(s->logits));
    memset(s->gradient, 0, sizeof s->gradient);
    s->mean_loss = s->loss / s->pairs;
    s->loss = s->pairs = 0;
    s->step++;
}

/* Adds one push; the last makes the step. Returns the number of calls that waited for
 * the step, and stores them in `answer`. */
static size_t add_push(struct server *s, struct tenrec_call *call, double pairs, double loss,
                       const float *gradient, struct tenrec_call *answer[TRAINERS_MAX])
{
    size_t n = 0;

    for (size_t i = 0; i < CELLS; i++)
        s->gradient[i] += (double)gradient[i];
    s->loss += loss;
    s->pairs += pairs;
    s->pushed[s->n_pushed++] = call;
    if (s->n_pushed == s->trainers) {
        take_step(s);
        n = s->n_pushed;
        for (size_t i = 0; i < n; i++)
            answer[i] = s->pushed[i];
        s->n_pushed = 0;
        pthread_cond_broadcast(&s->moved);
    }
    return n;
}

/* push(step, pairs, loss, gradient): returns after the step that all have pushed for. */
static tenrec_status push(struct tenrec_call *call, void *arg, tenrec_error *err)
{
    struct server *s = arg;
    struct tenrec_call *answer[TRAINERS_MAX];
    struct tenrec_tensor *gradient;
    int64_t step, pairs;
    size_t n_answer = 0;
    double loss;
    bool expected;

    if (tenrec_call_get_args(call, err, "iidTf", &step, &pairs, &loss, &gradient))
        return err->code;
    if (tenrec_tensor_count(gradient) != CELLS)
        return tenrec_fail(err, TENREC_EINVAL, "a gradient of %llu elements, expected %d",
                           (unsigned long long)tenrec_tensor_count(gradient), (int)CELLS);
    pthread_mutex_lock(&s->lock);
    /* A quick trainer may call before this worker has seen the whole group. */
    while (s->trainers == 0)
        pthread_cond_wait(&s->moved, &s->lock);
    expected = step == s->step && s->step < s->steps;
    if (expected)
        n_answer = add_push(s, call, (double)pairs, loss, tenrec_tensor_data(gradient), answer);
    pthread_mutex_unlock(&s->lock);
    for (size_t i = 0; i < n_answer; i++)
        tenrec_call_finish(answer[i], NULL);
    if (!expected)
        return tenrec_fail(err, TENREC_EINVAL, "push for step %" PRId64 ", expected another one",
                           step);
    return TENREC_OK;
}

/* ---- the server: progress and result ------------------------------------------------- */

static void show_bar(int step, int steps, double loss)
{
    char bar[BAR + 1];

    memset(bar, '.', BAR);
    memset(bar, '#', (size_t)((int64_t)step * BAR / steps));
    bar[BAR] = '\0';
    printf("\r%s step %d of %d, loss %.4f", bar, step, steps, loss);
    if (step == steps)
        putchar('\n');
}

static void show_progress(int step, int steps, double loss)
{
    const int every = steps > LINES ? steps / LINES : 1;

    if (isatty(STDOUT_FILENO))
        show_bar(step, steps, loss);
    else if (step == 1 || step == steps || step % every == 0)
        printf("step %d of %d, loss %.4f, perplexity %.3f\n", step, steps, loss, exp(loss));
    fflush(stdout);
}

/* Shows each step until the last. Returns false when no step was made for STALLED_S. */
static bool watch(struct server *s)
{
    int shown = 0, error = 0;

    pthread_mutex_lock(&s->lock);
    while (error == 0 && shown < s->steps) {
        struct timespec until;

        if (shown < s->step) {
            const double loss = s->mean_loss;

            shown = s->step;
            pthread_mutex_unlock(&s->lock);
            show_progress(shown, s->steps, loss);
            pthread_mutex_lock(&s->lock);
            continue;
        }
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += STALLED_S;
        error = pthread_cond_timedwait(&s->moved, &s->lock, &until);
    }
    pthread_mutex_unlock(&s->lock);
    if (error)
        fprintf(stderr, "bigram: no step was made for %d s\n", STALLED_S);
    return error == 0;
}

/* Compares with the optimum from the counts, and prints the last line. */
static int judge(struct tenrec_worker *w, const struct server *s, const struct text *t,
                 int64_t faults, double seconds)
{
    struct tenrec_value *info = NULL;
    const struct tenrec_value *backend;
    double *count = calloc(CELLS, sizeof *count), p, q, pairs;

    if (!count) {
        fprintf(stderr, "bigram: out of memory\n");
        return 1;
    }
    pairs = (double)text_count(t, 0, 1, count);
    p = exp(bigram_loss(count, tenrec_tensor_data(s->logits), NULL) / pairs);
    q = bigram_optimum(count);
    free(count);
    tenrec_worker_inspect(w, NULL, TENREC_INSPECT_DEBUG_INFO, NULL, &info, NULL);
    backend = tenrec_value_find(info, "worker.backend");
    if (faults)
        printf("bigram: %" PRId64 " faults injected, each send was tried again\n", faults);
    printf("bigram: perplexity %.4f (optimum %.4f), %zu workers, backend %s, %d steps, %.1f s\n", p,
           q, s->trainers + 1, backend ? backend->u.text : "?", s->step, seconds);
    fflush(stdout);
    tenrec_value_drop(info);
    if (p <= q * CLOSE_TO)
        return 0;
    fprintf(stderr, "bigram: perplexity is not within 1 %% of the optimum\n");
    return 1;
}

static int serve(struct tenrec_worker *w, struct server *s, const struct text *t, size_t trainers)
{
    const double begin = now_s();
    int64_t faults;

    printf("bigram: %zu characters, %zu trainers, logits %d x %d\n", t->n, trainers, SYMBOLS,
           SYMBOLS);
    pthread_mutex_lock(&s->lock);
    s->trainers = trainers;
    pthread_cond_broadcast(&s->moved);
    pthread_mutex_unlock(&s->lock);
    if (!watch(s) || !add_faults(w, 0, &faults))
        return 1;
    return judge(w, s, t, faults, now_s() - begin);
}

/* ---- a trainer --------------------------------------------------------------------- */

struct trainer {
    struct tenrec_worker *w;
    const char *server;
    int64_t faults; /* injected into this trainer's sends */
};

/* Calls a function of the server; retries after a failed send. The call has not been
 * made then, so no push counts twice. */
static tenrec_status ask(struct trainer *t, const char *function, const struct tenrec_value *args,
                         size_t n, struct tenrec_tensor *into, tenrec_error *err)
{
    const struct tenrec_call_options options = { .size = sizeof options, .into = into };
    struct timespec pause = { 0, 1000000 };
    tenrec_status status = TENREC_OK;

    for (int i = 0; i < TRIES; i++) {
        status = tenrec_rpc_sync(t->w, t->server, function, args, n, &options, NULL, err);
        if (status == TENREC_EAGAIN) {
            nanosleep(&pause, NULL); /* the queue is full */
            pause.tv_nsec = pause.tv_nsec < 100000000 ? pause.tv_nsec * 2 : pause.tv_nsec;
        } else if (status == TENREC_EINJECTED) {
            t->faults++;
        } else {
            return status;
        }
    }
    return status;
}

static tenrec_status train_step(struct trainer *t, int step, size_t pairs, const double *count,
                                struct tenrec_tensor *logits, tenrec_error *err)
{
    struct tenrec_value args[4] = { tenrec_value_int(step), tenrec_value_int((int64_t)pairs) };
    /* A new tensor for each step: the previous one may still be sent. */
    struct tenrec_tensor *gradient = matrix_new();
    tenrec_status status;

    if (!gradient)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for a gradient");
    status = ask(t, "pull", args, 1, logits, err);
    if (!status) {
        args[2] = tenrec_value_double(
            bigram_loss(count, tenrec_tensor_data(logits), tenrec_tensor_data(gradient)));
        args[3] = tenrec_value_tensor(gradient);
        status = ask(t, "push", args, 4, NULL, err);
    }
    tenrec_tensor_drop(gradient);
    return status;
}

static int train(struct tenrec_worker *w, const struct text *text, size_t part, size_t parts,
                 int steps)
{
    struct tenrec_tensor *logits = matrix_new();
    double *count = calloc(CELLS, sizeof *count);
    struct trainer t = { .w = w };
    struct tenrec_worker_info server;
    tenrec_status status;
    tenrec_error err;
    int64_t faults;
    size_t pairs;

    if (!logits || !count) {
        fprintf(stderr, "bigram: out of memory\n");
        tenrec_tensor_drop(logits);
        free(count);
        return 1;
    }
    /* A full gradient depends only on the counts of the text's pairs. */
    pairs = text_count(text, part, parts, count);
    status = tenrec_worker_get_info_by_id(w, 0, &server, &err);
    t.server = server.name;
    for (int step = 0; step < steps && !status; step++)
        status = train_step(&t, step, pairs, count, logits, &err);
    tenrec_tensor_drop(logits);
    free(count);
    if (status)
        return complain("training stopped", &err);
    return add_faults(w, t.faults, &faults) ? 0 : 1;
}

/* ---- both ------------------------------------------------------------------------------ */

static int usage(void)
{
    fprintf(stderr, "usage: tenrec run -n WORKERS -- bigram [--steps N] [FILE ...]\n");
    return 2;
}

/* Returns the index of the first file, or -1. */
static int read_arguments(int argc, char **argv, int *ret_steps)
{
    int i = 1;

    for (; i < argc && argv[i][0] == '-'; i++) {
        char *end;
        long n;

        if (strcmp(argv[i], "--") == 0)
            return i + 1;
        if (strcmp(argv[i], "--steps") != 0 || i + 1 == argc)
            return -1;
        n = strtol(argv[++i], &end, 10);
        if (*end != '\0' || end == argv[i] || n < 1 || n > STEPS_MAX)
            return -1;
        *ret_steps = (int)n;
    }
    return i;
}

static int work(struct tenrec_worker *w, struct server *s, const struct text *text)
{
    tenrec_error err;
    tenrec_peer rank;
    size_t n;
    int status;

    /* Every worker registers the functions, but only those of worker 0 are called:
     * the rank is known only after init. */
    if (tenrec_worker_register_function(w, "pull", pull, s, TENREC_INLINE, &err) ||
        tenrec_worker_register_function(w, "push", push, s, TENREC_LATER, &err) ||
        tenrec_init_rpc(w, &err))
        return complain("cannot join", &err);
    rank = tenrec_worker_rank(w);
    n = tenrec_worker_size(w);
    if (n < 2 || n > TRAINERS_MAX + 1) {
        fprintf(stderr, "bigram: %zu workers, expected 2 to %d\n", n, TRAINERS_MAX + 1);
        return 2;
    }
    if (rank == 0)
        status = serve(w, s, text, n - 1);
    else
        status = train(w, text, (size_t)rank - 1, n - 1, s->steps);
    if (status == 0 && tenrec_shutdown(w, TENREC_GRACEFUL, TENREC_TIMEOUT_DEFAULT, &err))
        status = complain("shutdown", &err);
    return status;
}

int main(int argc, char **argv)
{
    struct server *s = calloc(1, sizeof *s);
    int steps = STEPS, first = read_arguments(argc, argv, &steps), status = 1;
    struct tenrec_worker *w = NULL;
    struct text text;
    tenrec_error err;

    if (first < 0) {
        free(s);
        return usage();
    }
    if (!s || text_read(&text, argv + first, (size_t)(argc - first))) {
        free(s);
        return 1;
    }
    s->steps = steps;
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->moved, NULL);
    s->logits = matrix_new();
    if (s->logits && tenrec_worker_new(NULL, &w, &err))
        complain("no worker", &err);
    if (w)
        status = work(w, s, &text);
    tenrec_worker_drop(w);
    tenrec_tensor_drop(s->logits);
    pthread_cond_destroy(&s->moved);
    pthread_mutex_destroy(&s->lock);
    free(s);
    text_free(&text);
    return status;
}
