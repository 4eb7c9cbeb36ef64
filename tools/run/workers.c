/* SPDX-License-Identifier: Apache-2.0 */
#include "run/workers.h"

#include "core/base/clock.h"
#include "group/store/host_copy.h"
#include "group/store/store.h"
#include "run/workers_run.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenrec/store.h>
#include <unistd.h>

/* Limit for draining the pipes after the last worker has ended: a process that it
 * left behind may hold them open. */
#define LAST_WORDS_MS 2000

int run_watch_own(const struct run *r, struct pollfd *p)
{
    p[0] = (struct pollfd){ r->signal_fd, POLLIN, 0 };
    if (!r->secret.giver)
        return 1;
    p[1] = (struct pollfd){ secret_giver_fd(r->secret.giver), POLLIN, 0 };
    return 2;
}

void run_serve_own(struct run *r)
{
    run_read_signals(r);
    if (r->secret.giver)
        secret_giver_serve(r->secret.giver);
}

/* Lists the open descriptors for poll, the run's own first. Returns how many they are: poll refuses
 * more entries than a process may have descriptors, closed ones too. */
static int workers_watch(const struct run *r, struct pollfd *p)
{
    int n = run_watch_own(r, p);

    for (int i = 0; i < r->started; i++)
        for (int k = 1; k <= 2; k++)
            if (r->worker[i].fd[k] >= 0)
                p[n++] = (struct pollfd){ r->worker[i].fd[k], POLLIN, 0 };
    return n;
}

/* Reads from those that poll names; a read closes no descriptor but its own. */
static void workers_read(struct run *r, const struct pollfd *p)
{
    for (int i = 0; i < r->started; i++)
        for (int k = 1; k <= 2; k++)
            if (r->worker[i].fd[k] >= 0 && (p++)->revents)
                worker_read_stream(&r->worker[i], k);
}

/* ---- start --------------------------------------------------------------------*/

static bool start_one(struct run *r, int rank, tenrec_error *err)
{
    const struct workers_plan *plan = r->plan;
    struct worker *w = &r->worker[rank];
    const struct worker_id id = { rank, w->slot.life };
    struct worker_env *env = worker_env_new(plan, &id, &r->store);
    struct spawn what = { .argv = plan->argv };
    struct spawned got;
    char prefix[16] = "";
    tenrec_status st;

    if (plan->elastic.max)
        snprintf(prefix, sizeof prefix, "[%d.%d] ", rank, w->slot.life);
    else if (plan->prefix)
        snprintf(prefix, sizeof prefix, "[%d] ", rank);
    what.terminal = rank == 0 && r->screen.terminal[1];
    what.narrower = (int)strlen(prefix);
    if (env)
        what.env = worker_env_all(env);
    /* Of a life that fails to start, too: the gap before the next one grows. */
    w->slot.started_ns = clock_now_ns();
    st = env ? spawn(&what, &got, err)
             : tenrec_fail(err, TENREC_ENOMEM, "no memory for an environment");
    worker_env_drop(env);
    if (st)
        return false;
    w->pid = got.pid;
    w->running = true;
    r->running++;
    for (int k = 1; k <= 2; k++) {
        w->fd[k] = got.fd[k];
        stream_init(&w->stream[k], &r->screen, k, prefix, k == 1 && what.terminal);
    }
    return true;
}

static void start_next(struct run *r)
{
    tenrec_error err;

    r->worker[r->started].fd[1] = r->worker[r->started].fd[2] = -1;
    if (start_one(r, r->started, &err)) {
        r->started++;
        return;
    }
    r->failed = true;
    r->status = err.code == TENREC_ENOTFOUND ? 127 : 126;
    run_end_all(r, SIGTERM);
    run_say(r, "%s", err.text);
}

static void start_all(struct run *r)
{
    while (r->started < r->plan->n && !r->failed)
        start_next(r);
}

/* Starts the slots that are due, and those that SIGUSR1 has added. */
static void start_due(struct run *r)
{
    tenrec_error err;

    for (int i = 0; i < r->started; i++) {
        struct worker *w = &r->worker[i];

        if (!w->slot.again_ns || clock_now_ns() < w->slot.again_ns)
            continue;
        worker_hear_out(w);
        elastic_again(&r->elastic, &w->slot);
        if (!start_one(r, i, &err)) {
            run_say(r, "%s", err.text);
            run_slot_ended(r, i, 126 << 8);
        }
    }
    for (; r->more && !r->signals && !r->failed; r->more--) {
        if (r->started < r->plan->elastic.max)
            start_next(r);
        else
            run_say(r, "SIGUSR1: all %d slots of --elastic exist already", r->started);
    }
}

static uint64_t next_start(const struct run *r)
{
    uint64_t next = CLOCK_NEVER;

    for (int i = 0; i < r->started; i++)
        if (r->worker[i].slot.again_ns && r->worker[i].slot.again_ns < next)
            next = r->worker[i].slot.again_ns;
    return next;
}

/* Prints a summary if a worker has failed. */
static void tell_end(struct run *r)
{
    int restarts = 0;

    for (int i = 0; i < r->started; i++)
        restarts += r->worker[i].slot.life;
    if (restarts || r->elastic.lost)
        run_say(r, "%d of %d slots succeeded; %d restart%s", r->elastic.done, r->started, restarts,
                restarts == 1 ? "" : "s");
}

/* ---- the run --------------------------------------------------------------------*/

static void watch_until_the_end(struct run *r, struct pollfd *p)
{
    uint64_t last = CLOCK_NEVER, until;

    for (;;) {
        const bool over = !r->running && !r->elastic.waiting;
        const int own = run_watch_own(r, p), n = workers_watch(r, p);

        if (over && last == CLOCK_NEVER)
            last = clock_deadline_ms(LAST_WORDS_MS);
        if (over && (n == own || clock_passed(last)))
            return;
        until = next_start(r) < last ? next_start(r) : last;
        until = r->kill_at < until ? r->kill_at : until;
        if (poll(p, (nfds_t)n, clock_left_ms(until)) < 0 && errno != EINTR)
            return;
        workers_read(r, p + own);
        run_serve_own(r);
        run_kill_late(r);
        start_due(r);
    }
}

/* Serves the store of the workers, unless they join an existing one. */
static tenrec_status open_store(struct run *r, struct tenrec_store_server **ret, tenrec_error *err)
{
    const struct workers_plan *plan = r->plan;
    struct worker_store *store = &r->store;
    tenrec_status st;

    if (plan->elastic.join)
        return TENREC_OK;
    st = store_server_open(NULL, store->host, plan->serve_port, r->secret.security, ret,
                           &store->port, err);
    if (st != TENREC_OK)
        tenrec_error_prefix(err, "cannot serve the store of the group");
    else if (plan->verbose)
        run_say(r, strchr(store->host, ':') ? "store tcp://[%s]:%u" : "store tcp://%s:%u",
                store->host, (unsigned)store->port);
    return st;
}

/* The store, and the secret that its clients need. */
static tenrec_status open_run_store(struct run *r, struct tenrec_store_server **ret,
                                    tenrec_error *err)
{
    struct worker_store *store = &r->store;
    tenrec_status st = run_secret_open(r->plan, &r->secret, err);

    store->host = r->plan->serve_at ? r->plan->serve_at : "127.0.0.1";
    worker_env_run_id(r->plan, store->run_id);
    if (st == TENREC_OK)
        st = open_store(r, ret, err);
    if (st == TENREC_OK)
        st = run_secret_give(&r->secret, store->host, store->port, err);
    /* Workers without it read the store. */
    if (st == TENREC_OK && (r->plan->elastic.max > 1 || r->plan->n > 1))
        host_copy_new(&store->host_fd, NULL);
    store->secret_fd = r->secret.fd;
    store->secret_socket = r->secret.giver ? secret_giver_name(r->secret.giver) : NULL;
    return st;
}

/* Frees all of a run whose workers have ended. */
static void run_close(struct run *r, struct tenrec_store_server *server)
{
    for (int i = 0; i < r->started; i++)
        for (int k = 1; k <= 2; k++)
            if (r->worker[i].fd[k] >= 0)
                worker_close_stream(&r->worker[i], k);
    tenrec_store_server_drop(server);
    run_secret_close(&r->secret);
    if (r->store.host_fd)
        close(r->store.host_fd);
    if (r->signal_fd >= 0)
        close(r->signal_fd);
    free(r->worker);
}

int workers_run(const struct workers_plan *plan)
{
    struct run r = { .plan = plan, .kill_at = CLOCK_NEVER };
    struct tenrec_store_server *server = NULL;
    const size_t most = (size_t)(plan->elastic.max ? plan->elastic.max : plan->n);
    struct pollfd *p = calloc(most * 2 + RUN_OWN_MAX, sizeof *p);
    tenrec_error err;

    r.worker = calloc(most, sizeof *r.worker);
    r.elastic.plan = &plan->elastic;
    r.signal_fd = run_open_signals(plan->elastic.max > 0);
    r.screen = (struct screen){ .write = run_write, .arg = &r, .live_fd = 1 };
    r.screen.terminal[1] = isatty(1) == 1;
    r.screen.terminal[2] = isatty(2) == 1;
    if (!p || !r.worker || r.signal_fd < 0) {
        r.status = tool_fail(plan->tool, "cannot prepare %d workers: %s", plan->n, strerror(errno));
    } else if (open_run_store(&r, &server, &err)) {
        r.status = tool_fail(plan->tool, "%s", err.text);
    } else {
        fflush(NULL);
        start_all(&r);
        watch_until_the_end(&r, p);
        if (plan->elastic.max)
            tell_end(&r);
    }
    run_close(&r, server);
    free(p);
    return r.status;
}
