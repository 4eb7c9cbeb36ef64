/* SPDX-License-Identifier: Apache-2.0 */
#include "core/base/loop.h"

#include "core/base/clock.h"
#include "core/base/threads.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>
#include <utlist.h>
#include <uv.h>

enum { LOOP_FDS = 6 }; /* descriptors of a loop, at most */

struct task {
    struct task *next;
    loop_fn *fn;
    void *arg;
    bool done; /* guarded by the loop's lock */
};

struct loop {
    uv_loop_t uv;
    uv_async_t wake;
    uv_timer_t timer;
    pthread_t thread;
    pthread_mutex_t lock; /* guards the lists and stop */
    struct task *first, **last;
    struct loop_timer *timers;
    struct loop_timer *running; /* its fn runs now */
    pthread_cond_t ran;         /* running became NULL, or a task is done */
    bool stop;
};

static void loop_wake(struct loop *l)
{
    uv_async_send(&l->wake);
}

static struct task *task_pop(struct loop *l)
{
    struct task *t = l->first;

    if (t && !(l->first = t->next))
        l->last = &l->first;
    return t;
}

static struct loop_timer *due_timer(struct loop *l, uint64_t now)
{
    for (struct loop_timer *t = l->timers; t; t = t->next)
        if (atomic_load(&t->armed_ns) <= now)
            return t;
    return NULL;
}

/* When the uv timer must fire next. */
static uint64_t next_deadline(struct loop *l)
{
    uint64_t next = CLOCK_NEVER;

    for (struct loop_timer *t = l->timers; t; t = t->next) {
        uint64_t at = atomic_load(&t->armed_ns);
        if (at < next)
            next = at;
    }
    return next;
}

static void on_timer(uv_timer_t *timer);

/* Runs all due tasks and timers, then sets the uv timer to the next deadline. */
static void run_due(struct loop *l)
{
    struct loop_timer *timer;
    struct task *task;
    uint64_t next;

    pthread_mutex_lock(&l->lock);
    for (;;) {
        if ((task = task_pop(l))) {
            pthread_mutex_unlock(&l->lock);
            task->fn(task->arg);
            pthread_mutex_lock(&l->lock);
            task->done = true; /* its caller returns once the lock is free */
            pthread_cond_broadcast(&l->ran);
        } else if (!l->stop && (timer = due_timer(l, clock_now_ns()))) {
            atomic_store(&timer->armed_ns, CLOCK_NEVER);
            l->running = timer;
            pthread_mutex_unlock(&l->lock);
            timer->fn(timer->arg);
            pthread_mutex_lock(&l->lock);
            l->running = NULL;
            pthread_cond_broadcast(&l->ran);
        } else {
            break;
        }
    }
    next = l->stop ? CLOCK_NEVER : next_deadline(l);
    if (l->stop && !uv_is_closing((uv_handle_t *)&l->wake)) {
        uv_close((uv_handle_t *)&l->wake, NULL);
        uv_close((uv_handle_t *)&l->timer, NULL);
    }
    pthread_mutex_unlock(&l->lock);
    if (uv_is_closing((uv_handle_t *)&l->timer))
        return;
    if (next == CLOCK_NEVER) {
        uv_timer_stop(&l->timer);
    } else {
        uv_update_time(&l->uv);
        uv_timer_start(&l->timer, on_timer, (uint64_t)clock_left_ms(next), 0);
    }
}

static void on_timer(uv_timer_t *timer)
{
    run_due(timer->data);
}

static void on_wake(uv_async_t *async)
{
    run_due(async->data);
}

static void *loop_run(void *arg)
{
    struct loop *l = arg;

    uv_run(&l->uv, UV_RUN_DEFAULT);
    return NULL;
}

/* While standard files are closed, new sockets would get their numbers: libuv aborts on
 * these, and the program's next printf would write into them. */
static void occupy_standard_files(void)
{
    int fd;

    for (int i = 0; i <= STDERR_FILENO; i++)
        if (fcntl(i, F_GETFD) < 0 && (fd = open("/dev/null", O_RDWR)) > STDERR_FILENO)
            close(fd);
}

/* libuv aborts when no descriptor is left for the state that all loops share. */
static int try_descriptors(void)
{
    int fd[LOOP_FDS], n = 0, why = 0;

    while (n < LOOP_FDS && (fd[n] = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0)
        n++;
    if (n < LOOP_FDS)
        why = -errno;
    while (n > 0)
        close(fd[--n]);
    return why;
}

tenrec_status loop_open(struct loop **ret, tenrec_error *err)
{
    struct loop *l = calloc(1, sizeof *l);
    int r;

    if (!l)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for the loop");
    l->last = &l->first;
    occupy_standard_files();
    if ((r = try_descriptors()) != 0 || (r = uv_loop_init(&l->uv)) != 0)
        goto err_free;
    if ((r = uv_async_init(&l->uv, &l->wake, on_wake)) != 0)
        goto err_loop;
    uv_timer_init(&l->uv, &l->timer);
    l->wake.data = l->timer.data = l;
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->ran, NULL);
    if ((r = -threads_start(&l->thread, "tenrec-core", loop_run, l)) != 0)
        goto err_handles;
    *ret = l;
    return TENREC_OK;

err_handles:
    pthread_cond_destroy(&l->ran);
    pthread_mutex_destroy(&l->lock);
    uv_close((uv_handle_t *)&l->wake, NULL);
    uv_close((uv_handle_t *)&l->timer, NULL);
    uv_run(&l->uv, UV_RUN_DEFAULT);
err_loop:
    uv_loop_close(&l->uv);
err_free:
    free(l);
    return tenrec_fail_errno(err, TENREC_EOS, -r, "cannot start the core's loop");
}

void loop_close(struct loop *l)
{
    if (!l)
        return;
    pthread_mutex_lock(&l->lock);
    l->stop = true;
    pthread_mutex_unlock(&l->lock);
    loop_wake(l);
    pthread_join(l->thread, NULL);
    uv_loop_close(&l->uv);
    pthread_cond_destroy(&l->ran);
    pthread_mutex_destroy(&l->lock);
    free(l);
}

void loop_call(struct loop *l, loop_fn *fn, void *arg)
{
    struct task t = { .fn = fn, .arg = arg };

    pthread_mutex_lock(&l->lock);
    *l->last = &t;
    l->last = &t.next;
    loop_wake(l);
    while (!t.done)
        pthread_cond_wait(&l->ran, &l->lock);
    pthread_mutex_unlock(&l->lock);
}

bool loop_is_me(const struct loop *l)
{
    return pthread_equal(pthread_self(), l->thread);
}

tenrec_status loop_timer_new(struct loop *l, loop_fn *fn, void *arg, struct loop_timer **ret,
                             tenrec_error *err)
{
    struct loop_timer *t = calloc(1, sizeof *t);

    if (!t)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for a timer");
    t->loop = l;
    t->fn = fn;
    t->arg = arg;
    atomic_init(&t->armed_ns, CLOCK_NEVER);
    pthread_mutex_lock(&l->lock);
    LL_PREPEND(l->timers, t);
    pthread_mutex_unlock(&l->lock);
    *ret = t;
    return TENREC_OK;
}

void loop_timer_arm(struct loop_timer *t, uint64_t deadline_ns)
{
    uint64_t armed = atomic_load(&t->armed_ns);

    while (deadline_ns < armed)
        if (atomic_compare_exchange_weak(&t->armed_ns, &armed, deadline_ns)) {
            loop_wake(t->loop);
            return;
        }
}

void loop_timer_drop(struct loop_timer *t)
{
    struct loop *l;

    if (!t)
        return;
    l = t->loop;
    pthread_mutex_lock(&l->lock);
    while (l->running == t)
        pthread_cond_wait(&l->ran, &l->lock);
    LL_DELETE(l->timers, t);
    pthread_mutex_unlock(&l->lock);
    free(t);
}

struct uv_loop_s *loop_uv(struct loop *l)
{
    return &l->uv;
}
