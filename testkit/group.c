/* SPDX-License-Identifier: Apache-2.0 */
/* group.c - several workers: start, common deadline, close, and the report of failures. The board
 * is shared by atomics; all else belongs to the thread that opened the group. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "testkit/leaks.h"
#include "testkit/process.h"
#include "testkit/report.h"
#include "testkit/scale.h"

enum { GRACE_MS = 5000 /* for the others, after a worker has failed */ };

struct tenrec_test_group {
    struct setting setting;
    struct board *board;
    struct leaks before;
    int64_t deadline;
    int store_pid;
    int32_t n;
    struct member member[];
};

/* ---- start ------------------------------------------------------------------ */

static void *run_thread(void *arg)
{
    member_run(arg);
    return NULL;
}

static tenrec_status start_thread(struct member *m, tenrec_error *err)
{
    int r = pthread_create(&m->thread, NULL, run_thread, m);

    if (r)
        return tenrec_fail_errno(err, TENREC_EOS, r, "a thread for worker %d", m->test.rank);
    m->threaded = true;
    return TENREC_OK;
}

static void init_member(struct tenrec_test_group *g, int32_t rank, bool serves)
{
    struct member *m = &g->member[rank];

    pthread_mutex_init(&m->lock, NULL);
    m->setting = &g->setting;
    m->board = g->board;
    m->deadline = g->deadline;
    m->serves = serves;
    tenrec_test_worker_name(rank, m->name);
    m->test = (struct tenrec_test){ .rank = rank,
                                    .world_size = g->n,
                                    .name = m->name,
                                    .init_method = g->setting.store,
                                    .arg = g->setting.o.arg };
}

/* Processes first: a fork must not happen while threads of this group exist. */
static tenrec_status start_all(struct tenrec_test_group *g, bool serves, tenrec_error *err)
{
    int32_t first = g->setting.o.mode == TENREC_TEST_THREADS ? g->n : serves ? 1 : 0;
    tenrec_status st = TENREC_OK;

    if (g->setting.o.flags & TENREC_TEST_TCP_STORE)
        st = process_serve_store(&g->setting, &g->store_pid, err);
    for (int32_t i = 0; i < g->n; i++)
        init_member(g, i, serves);
    for (int32_t i = first; i < g->n && st == TENREC_OK; i++)
        st = process_start(&g->member[i], err);
    for (int32_t i = 0; i < first && i < g->n && st == TENREC_OK; i++)
        st = start_thread(&g->member[i], err);
    return st;
}

static tenrec_status group_new(const struct tenrec_test_options *options,
                               struct tenrec_test_group **ret, tenrec_error *err)
{
    struct tenrec_test_group *g;
    struct setting setting;
    tenrec_status st = setting_init(&setting, options, err);

    if (st != TENREC_OK)
        return st;
    g = calloc(1, sizeof *g + (size_t)setting.o.world_size * sizeof g->member[0]);
    if (!g) {
        setting_finish(&setting);
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for the group");
    }
    g->setting = setting;
    g->n = setting.o.world_size;
    g->deadline = scale_deadline(setting.o.timeout_ms);
    leaks_begin(&g->before);
    if ((st = board_new(g->n, &g->board, err)) != TENREC_OK) {
        setting_finish(&g->setting);
        free(g);
        return st;
    }
    *ret = g;
    return TENREC_OK;
}

/* ---- end --------------------------------------------------------------------- */

static bool group_ended(struct member *m)
{
    if (m->threaded)
        return atomic_load(&member_record(m)->phase) == RECORD_ENDED;
    return !m->pid || process_ended(m);
}

static bool all_ended(struct tenrec_test_group *g)
{
    bool all = true;

    for (int32_t i = 0; i < g->n; i++)
        all = group_ended(&g->member[i]) && all;
    return all;
}

/* Reports processes that exited without a result as crashed. */
static void report_crashes(struct tenrec_test_group *g)
{
    for (int32_t i = 0; i < g->n; i++)
        report_crash(&g->member[i]);
}

/* Waits for all workers until the deadline; after a failure for GRACE_MS at most. */
static bool wait_all(struct tenrec_test_group *g, int64_t deadline)
{
    bool failed = false;

    while (!all_ended(g)) {
        report_crashes(g);
        if (!failed && atomic_load(&g->board->failed)) {
            int64_t grace = scale_deadline(GRACE_MS);
            failed = true;
            deadline = grace < deadline ? grace : deadline;
        }
        if (!scale_moment(deadline))
            return false;
    }
    report_crashes(g);
    return true;
}

/* A worker that waits for the others does not hang: it ends once they have. */
static bool group_hangs(struct member *m)
{
    return !group_ended(m) && atomic_load(&member_record(m)->phase) != RECORD_WAIT;
}

/* Kills processes that hang, shuts the workers of threads down. */
static void end_hanging(struct tenrec_test_group *g)
{
    bool others = atomic_load(&g->board->failed) != 0;

    for (int32_t i = 0; i < g->n; i++)
        if (group_hangs(&g->member[i]))
            report_hang(&g->member[i], others);
    for (int32_t i = 0; i < g->n; i++) {
        struct member *m = &g->member[i];
        if (m->noted == TENREC_OK || group_ended(m))
            continue;
        if (m->pid)
            kill(m->pid, SIGKILL);
        else
            member_give_up(m);
    }
}

/* Returns false if a thread never ends. */
static bool end_all(struct tenrec_test_group *g)
{
    if (wait_all(g, g->deadline))
        return true;
    end_hanging(g);
    if (wait_all(g, scale_deadline(GRACE_MS)))
        return true;
    for (int32_t i = 0; i < g->n; i++)
        if (g->member[i].pid && !group_ended(&g->member[i]))
            kill(g->member[i].pid, SIGKILL);
    return wait_all(g, scale_deadline(GRACE_MS));
}

static void group_free(struct tenrec_test_group *g)
{
    for (int32_t i = 0; i < g->n; i++)
        pthread_mutex_destroy(&g->member[i].lock);
    process_end_store(g->store_pid);
    setting_finish(&g->setting);
    board_drop(g->board);
    free(g);
}

/* st, *err  result of the start */
static tenrec_status group_end(struct tenrec_test_group *g, tenrec_status st, tenrec_error *err)
{
    tenrec_error own;
    tenrec_error *e = err ? err : &own;

    if (st != TENREC_OK) /* started workers must not wait for the others */
        atomic_store(&g->board->failed, g->n + 1);
    if (!end_all(g)) {
        /* A thread still uses the group: leak it. */
        report_all(g->member, g->n);
        return report_first(g->member, g->board, e);
    }
    report_all(g->member, g->n);
    if (st == TENREC_OK)
        st = report_first(g->member, g->board, e);
    for (int32_t i = 0; i < g->n; i++)
        if (g->member[i].threaded)
            pthread_join(g->member[i].thread, NULL);
    if (st == TENREC_OK && !(g->setting.o.flags & TENREC_TEST_IGNORE_LEAKS) &&
        (st = leaks_check(&g->before, e)) != TENREC_OK)
        tenrec_error_prefix(e, "the workers have ended");
    group_free(g);
    return st;
}

/* ---- public -------------------------------------------------------------------- */

tenrec_status tenrec_test_dist_init(const struct tenrec_test_options *options, tenrec_error *err)
{
    struct tenrec_test_group *g = NULL;
    tenrec_status st = group_new(options, &g, err);

    return st == TENREC_OK ? group_end(g, start_all(g, false, err), err) : st;
}

tenrec_status tenrec_test_group_open(const struct tenrec_test_options *options,
                                     struct tenrec_test_group **ret, tenrec_error *err)
{
    struct tenrec_test_group *g = NULL;
    tenrec_status st;

    *ret = NULL;
    if (options && options->body)
        return tenrec_fail(err, TENREC_EINVAL,
                           "options: body is set, which a group that is opened cannot run");
    if (options && options->flags & (TENREC_TEST_NO_RPC | TENREC_TEST_UNCLEAN))
        return tenrec_fail(err, TENREC_EINVAL,
                           "options: TENREC_TEST_NO_RPC and TENREC_TEST_UNCLEAN are for "
                           "tenrec_test_dist_init only");
    if ((st = group_new(options, &g, err)) != TENREC_OK)
        return st;
    st = start_all(g, true, err);
    while (st == TENREC_OK && !board_all(g->board, RECORD_WAIT)) {
        all_ended(g);
        report_crashes(g);
        if (atomic_load(&g->board->failed) || !scale_moment(g->deadline))
            return group_end(g, TENREC_OK, err);
    }
    if (st != TENREC_OK || atomic_load(&g->board->failed))
        return group_end(g, st, err);
    *ret = g;
    return TENREC_OK;
}

struct tenrec_worker *tenrec_test_group_worker(const struct tenrec_test_group *g, int32_t rank)
{
    return rank >= 0 && rank < g->n ? atomic_load(&g->member[rank].worker) : NULL;
}

tenrec_status tenrec_test_group_kill(struct tenrec_test_group *g, int32_t rank, int signal,
                                     tenrec_error *err)
{
    bool ends = signal != SIGSTOP && signal != SIGCONT && signal != 0;
    struct member *m;

    if (rank <= 0 || rank >= g->n)
        return tenrec_fail(err, TENREC_EINVAL, "worker %d: expected 1 to %d", rank, g->n - 1);
    m = &g->member[rank];
    if (!m->pid && signal != SIGKILL)
        return tenrec_fail(err, TENREC_EUNSUPPORTED,
                           "worker %d is a thread: expected SIGKILL, not signal %d", rank, signal);
    if (group_ended(m))
        return tenrec_fail(err, TENREC_ESHUTDOWN, "worker %d has ended", rank);
    if (ends) {
        atomic_store(&g->board->shortened, true);
        atomic_store(&g->board->worker[rank].may_die, true);
    }
    if (m->pid && kill(m->pid, signal) != 0)
        return tenrec_fail_errno(err, TENREC_EOS, errno, "signal %d to worker %d", signal, rank);
    while (ends && !group_ended(m))
        if (!scale_moment(g->deadline))
            return tenrec_fail(err, TENREC_ETIMEDOUT, "worker %d does not end", rank);
    return TENREC_OK;
}

tenrec_status tenrec_test_group_close(struct tenrec_test_group *g, enum tenrec_shutdown_mode mode,
                                      tenrec_error *err)
{
    if (!g)
        return TENREC_OK;
    if (mode == TENREC_IMMEDIATE)
        atomic_store(&g->board->at_once, true);
    atomic_store(&g->board->closing, true);
    return group_end(g, TENREC_OK, err);
}
