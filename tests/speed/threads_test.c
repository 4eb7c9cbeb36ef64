/* SPDX-License-Identifier: Apache-2.0 */
/* threads_test.c TRANSPORT - a synchronous call is answered without passing from
 * thread to thread, and workers at rest do nothing. */
#include "two.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CALLS 200 /* one stretch of them */
#define FEW (CALLS / 20)
#define STRETCHES 50      /* other programs use the processors, too: one good stretch is enough */
#define WINDOW_MS 1000    /* that nothing happens in is what is looked at */
#define WINDOWS 5         /* one good window is enough, too */
#define FROZEN_MS 1000    /* a process is stopped for */
#define FROZEN_ATTEMPTS 5 /* that may fail */

static const char *transport;

static void run(const char *progress, two_work_fn *work)
{
    const struct two t = { .transport = transport, .progress = progress, .work = work };
    tenrec_error err;

    if (two_run(&t, &err))
        fail_msg("%s", err.text);
}

static tenrec_status call_often(struct tenrec_worker *w, tenrec_error *err)
{
    tenrec_status st = TENREC_OK;

    for (int i = 0; !st && i < CALLS; i++)
        st = two_call(w, err);
    return st;
}

/* ---- the way of a call ------------------------------------------------------------------ */

static long switches_of_this_thread(void)
{
    struct rusage r;

    getrusage(RUSAGE_THREAD, &r);
    return r.ru_nvcsw;
}

static long switches_of_others(void)
{
    return (long)two_own_usage().switches - switches_of_this_thread();
}

typedef tenrec_status stretch_fn(struct tenrec_worker *w, tenrec_error *err);

/* Fewest of what `count` counts in a stretch of calls. */
static tenrec_status fewest(struct tenrec_worker *w, stretch_fn *stretch, long (*count)(void),
                            long *ret, tenrec_error *err)
{
    tenrec_status st = stretch(w, err);

    *ret = LONG_MAX;
    for (int i = 0; !st && i<STRETCHES && * ret> FEW; i++) {
        long before = count(), n;

        st = stretch(w, err);
        n = count() - before;
        *ret = n < *ret ? n : *ret;
    }
    return st;
}

static tenrec_status busy_work(struct tenrec_worker *w, void *arg, tenrec_error *err)
{
    long n;
    tenrec_status st = fewest(w, call_often, switches_of_this_thread, &n, err);

    (void)arg;
    if (!st && n > FEW)
        return tenrec_fail(err, TENREC_EREMOTE, "the caller went to sleep %ld times in %d calls", n,
                           CALLS);
    return st;
}

TEST(threads_busy_caller_does_not_sleep)
{
    run("busy", busy_work);
}

/* Else the loop would read, and wake the caller. arg: a stretch of calls. */
static tenrec_status reading_work(struct tenrec_worker *w, void *arg, tenrec_error *err)
{
    stretch_fn **stretch = arg;
    long n;
    tenrec_status st = fewest(w, *stretch, switches_of_others, &n, err);

    if (!st && n > FEW)
        return tenrec_fail(err, TENREC_EREMOTE,
                           "other threads of the caller woke up %ld times in %d calls", n, CALLS);
    return st;
}

static void run_reader(const char *progress, stretch_fn *stretch)
{
    const struct two t = {
        .transport = transport, .progress = progress, .work = reading_work, .arg = &stretch
    };
    tenrec_error err;

    if (two_run(&t, &err))
        fail_msg("%s", err.text);
}

TEST(threads_caller_reads_its_own_answer)
{
    run_reader("busy", call_often);
    run_reader("adaptive", call_often);
    run_reader("sleep", call_often);
}

static tenrec_status wait_often(struct tenrec_worker *w, tenrec_error *err)
{
    const struct tenrec_call_options o = { .size = sizeof o, .flags = TENREC_WAIT_NEXT };
    tenrec_status st = TENREC_OK;

    for (int i = 0; !st && i < CALLS; i++) {
        struct tenrec_future *f = NULL;

        st = tenrec_rpc_async(w, "worker1", "call", NULL, 0, &o, &f, err);
        if (!st)
            st = tenrec_future_wait(f, TENREC_TIMEOUT_DEFAULT, err);
        tenrec_future_drop(f);
    }
    return st;
}

TEST(threads_caller_reads_the_answer_of_a_future_that_it_waits_for_next)
{
    run_reader("adaptive", wait_often);
    run_reader("sleep", wait_often);
}

static tenrec_status answering_work(struct tenrec_worker *w, void *arg, tenrec_error *err)
{
    struct two_answers a;
    tenrec_status st = call_often(w, err);

    (void)arg;
    if (!st)
        st = two_answered(w, &a, err);
    if (!st && (a.threads != 1 || a.on_pool))
        return tenrec_fail(err, TENREC_EREMOTE, "%d threads answered, %d of them of the pool",
                           (int)a.threads, (int)a.on_pool);
    return st;
}

/* The thread of the callee's backend. */
TEST(threads_inline_functions_run_on_the_delivering_thread)
{
    run("adaptive", answering_work);
    run("sleep", answering_work);
}

/* Each call wakes the thread of the pool that reads messages, and no other thread. */
static tenrec_status pooled_stretch(struct tenrec_worker *w, int64_t *ret, tenrec_error *err)
{
    struct two_usage before, after;
    tenrec_status st = two_callee_usage(w, &before, err);

    for (int i = 0; !st && i < CALLS; i++)
        st = tenrec_rpc_sync(w, "worker1", "pooled", NULL, 0, NULL, NULL, err);
    if (!st)
        st = two_callee_usage(w, &after, err);
    if (!st)
        *ret = after.switches - before.switches;
    return st;
}

static tenrec_status pooled_work(struct tenrec_worker *w, void *arg, tenrec_error *err)
{
    const int64_t most = CALLS + CALLS / 4;
    int64_t n = INT64_MAX;
    tenrec_status st = TENREC_OK;

    (void)arg;
    for (int i = 0; !st && i < STRETCHES && n > most; i++)
        st = pooled_stretch(w, &n, err);
    if (!st && n > most)
        return tenrec_fail(err, TENREC_EREMOTE,
                           "threads of the callee woke up %d times in %d calls", (int)n, CALLS);
    return st;
}

TEST(threads_pool_functions_run_on_the_thread_that_reads)
{
    run("sleep", pooled_work);
}

/* ---- at rest ---------------------------------------------------------------------------- */

static void let_pass(int ms)
{
    poll(NULL, 0, ms);
}

static tenrec_status expect_rest(const char *who, const struct two_usage *before,
                                 const struct two_usage *after, int64_t own, tenrec_error *err)
{
    int64_t cpu = after->cpu_us - before->cpu_us, switches = after->switches - before->switches;

    if (after->threads > 3)
        return tenrec_fail(err, TENREC_EREMOTE, "%s has %d threads at rest", who,
                           (int)after->threads);
    if (cpu > WINDOW_MS * 1000 / 100)
        return tenrec_fail(err, TENREC_EREMOTE, "%s used %d us of CPU in %d ms of rest", who,
                           (int)cpu, WINDOW_MS);
    if (switches > own + 5)
        return tenrec_fail(err, TENREC_EREMOTE, "threads of %s woke up %d times in %d ms of rest",
                           who, (int)(switches - own), WINDOW_MS);
    return TENREC_OK;
}

/* The two calls that ask are part of what is seen: a handful of switches. */
static tenrec_status rest(struct tenrec_worker *w, tenrec_error *err)
{
    struct two_usage before[2], after[2];
    tenrec_status st = call_often(w, err);

    let_pass(300); /* connections go back to the loop */
    if (!st)
        st = two_callee_usage(w, &before[1], err);
    let_pass(300);
    before[0] = two_own_usage();
    let_pass(WINDOW_MS);
    after[0] = two_own_usage();
    if (!st)
        st = two_callee_usage(w, &after[1], err);
    if (!st)
        st = expect_rest("the caller", &before[0], &after[0], 1, err);
    return st ? st : expect_rest("the callee", &before[1], &after[1], 10, err);
}

static tenrec_status rest_work(struct tenrec_worker *w, void *arg, tenrec_error *err)
{
    tenrec_status st = rest(w, err);

    (void)arg;
    for (int i = 1; i < WINDOWS && st == TENREC_EREMOTE; i++)
        st = rest(w, err);
    return st;
}

TEST(threads_at_rest_are_few_and_asleep)
{
    run("adaptive", rest_work);
    run("sleep", rest_work);
}

/* ---- a message that stalls -------------------------------------------------------------- */

/* A process that stops the caller for a while, and then the callee no longer. */
static pid_t swap_later(pid_t caller, pid_t callee)
{
    pid_t other = fork();

    if (other)
        return other;
    let_pass(FROZEN_MS);
    kill(caller, SIGSTOP);
    kill(callee, SIGCONT);
    let_pass(FROZEN_MS);
    kill(caller, SIGCONT);
    _exit(0);
}

/* Sends a tensor that no ring or socket holds: first the callee does not read, then the caller
 * writes no more. */
static tenrec_status send_slowly(struct tenrec_worker *w, struct tenrec_tensor *t, pid_t callee,
                                 tenrec_error *err)
{
    const struct tenrec_value arg = tenrec_value_tensor(t);
    struct tenrec_future *f = NULL;
    pid_t other = swap_later(getpid(), callee);
    tenrec_status st;

    if (other < 0)
        return tenrec_fail_errno(err, TENREC_EOS, errno, "fork");
    kill(callee, SIGSTOP);
    st = tenrec_rpc_async(w, "worker1", "call", &arg, 1, NULL, &f, err);
    if (!st)
        st = tenrec_future_wait(f, TENREC_TIMEOUT_DEFAULT, err);
    tenrec_future_drop(f);
    waitpid(other, NULL, 0);
    return st;
}

static tenrec_status expect_sleep(const char *side, const struct two_usage *before,
                                  const struct two_usage *after, tenrec_error *err)
{
    int64_t cpu = after->cpu_us - before->cpu_us;

    if (cpu > FROZEN_MS * 1000 / 5)
        return tenrec_fail(err, TENREC_EREMOTE,
                           "the %s used %d us of CPU, the other being stopped for %d ms", side,
                           (int)cpu, FROZEN_MS);
    return TENREC_OK;
}

static tenrec_status frozen_work(struct tenrec_worker *w, void *arg, tenrec_error *err)
{
    const int64_t shape = 16 << 20;
    struct two_usage before[2], after[2];
    struct tenrec_tensor *t = NULL;
    tenrec_status st = tenrec_tensor_new(TENREC_UINT8, 1, &shape, &t, err);
    const struct tenrec_value tensor = tenrec_value_tensor(t);

    (void)arg;
    /* Opens the connections for tensors. */
    if (!st)
        st = tenrec_rpc_sync(w, "worker1", "call", &tensor, 1, NULL, NULL, err);
    before[0] = two_own_usage();
    if (!st)
        st = two_callee_usage(w, &before[1], err);
    if (!st)
        st = send_slowly(w, t, before[1].pid, err);
    after[0] = two_own_usage();
    if (!st)
        st = two_callee_usage(w, &after[1], err);
    tenrec_tensor_drop(t);
    if (!st)
        st = expect_sleep("caller", &before[0], &after[0], err);
    return st ? st : expect_sleep("callee", &before[1], &after[1], err);
}

/* Over the message's own connection: no receiver reads the tensor alone. */
TEST(threads_busy_workers_sleep_while_a_message_stands_still)
{
    const struct two t = {
        .transport = transport, .progress = "busy", .channels = "basic", .work = frozen_work
    };
    tenrec_error err;

    /* On a machine with other work the caller may be stopped before it has begun to write, or
     * between two messages: then the callee spins, as it should. */
    for (int i = 0; two_run(&t, &err); i++)
        if (i == FROZEN_ATTEMPTS)
            fail_msg("%s", err.text);
}

int main(int argc, char **argv)
{
    transport = argc > 1 ? argv[1] : "uv";
    return testing_run(NULL, NULL);
}
