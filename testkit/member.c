/* SPDX-License-Identifier: Apache-2.0 */
#include "testkit/member.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <tenrec/rref.h>
#include <unistd.h>

#include "testkit/leaks.h"
#include "testkit/scale.h"

enum { AT_ONCE_MS = 3000 /* for functions that still run */ };

static void member_enter(struct member *m, enum record_phase phase)
{
    atomic_store(&member_record(m)->phase, phase);
}

/* Every worker of the kit serves this. */
static tenrec_status member_noop(struct tenrec_call *call, void *arg, tenrec_error *err)
{
    (void)call, (void)arg, (void)err;
    return TENREC_OK;
}

static tenrec_status make_worker(struct member *m, struct tenrec_worker **ret, tenrec_error *err)
{
    const struct tenrec_test_options *o = &m->setting->o;
    struct tenrec_config *config = NULL;
    tenrec_status st = setting_config(m->setting, m->test.rank, &config, err);

    if (st != TENREC_OK)
        return st;
    st = tenrec_worker_new(config, ret, err);
    tenrec_config_drop(config);
    if (st == TENREC_OK)
        st = tenrec_worker_register_function(*ret, TENREC_TEST_NOOP, member_noop, NULL,
                                             TENREC_INLINE, err);
    if (st == TENREC_OK && !(o->flags & TENREC_TEST_IGNORE_LEAKS))
        tenrec_worker_set_rref_leak_check(*ret, true);
    if (st == TENREC_OK && o->setup)
        st = o->setup(*ret, m->test.rank, o->arg, err);
    return st;
}

static tenrec_status start_worker(struct member *m, tenrec_error *err)
{
    struct tenrec_worker_info info;
    tenrec_status st;

    member_enter(m, RECORD_INIT);
    if ((st = tenrec_init_rpc(m->test.worker, err)) != TENREC_OK)
        return st;
    if (tenrec_get_worker_info(m->test.worker, NULL, &info, NULL) == TENREC_OK)
        snprintf(m->name, sizeof m->name, "%s", info.name);
    atomic_store(&m->worker, m->test.worker);
    return TENREC_OK;
}

static void run_body(void *arg)
{
    struct member *m = arg;

    /* A crash must end the process, even if the test framework has a handler. */
    if (m->pid)
        for (int s = 1; s < NSIG; s++)
            if (s == SIGSEGV || s == SIGBUS || s == SIGFPE || s == SIGILL || s == SIGSYS)
                signal(s, SIG_DFL);
    m->status = m->setting->o.body(&m->test, &m->err);
}

static tenrec_status member_body(struct member *m, tenrec_error *err)
{
    tenrec_test_guard_fn *guard = m->setting->o.guard;

    member_enter(m, RECORD_BODY);
    m->err.text[0] = '\0';
    if (!m->setting->o.body) {
        m->status = TENREC_OK;
    } else if (!guard) {
        run_body(m);
    } else if (!guard(m->name, run_body, m)) {
        atomic_store(&member_record(m)->asserted, true);
        return tenrec_fail(err, TENREC_EREMOTE, "an assertion failed in its body");
    }
    if (m->status != TENREC_OK)
        *err = m->err;
    return m->status;
}

/* Serves until all bodies are done, or the test closes the group. */
static void wait_for_others(struct member *m)
{
    struct board *b = m->board;

    member_enter(m, RECORD_WAIT);
    while (!atomic_load(&b->failed) && !atomic_load(&member_record(m)->may_die) &&
           (m->serves ? !atomic_load(&b->closing) : !board_all(b, RECORD_WAIT)) &&
           scale_moment(INT64_MAX))
        ;
}

static tenrec_status member_leave(struct member *m, tenrec_error *err)
{
    struct tenrec_worker *w = m->test.worker;
    struct board *b = m->board;
    bool at_once = m->setting->o.flags & TENREC_TEST_UNCLEAN || atomic_load(&b->failed) ||
                   atomic_load(&b->shortened) || atomic_load(&b->at_once);
    int64_t left = scale_left(at_once ? scale_deadline(AT_ONCE_MS) : m->deadline);
    tenrec_status st;

    member_enter(m, RECORD_SHUTDOWN);
    if (!tenrec_worker_running(w))
        return TENREC_OK; /* shut down by the body */
    if (at_once)          /* messages about references are cut off: no leak */
        tenrec_worker_set_rref_leak_check(w, false);
    st = tenrec_shutdown(w, at_once ? TENREC_IMMEDIATE : TENREC_GRACEFUL, left, err);
    return st == TENREC_ESHUTDOWN ? TENREC_OK : st;
}

/* From here on only this thread uses the worker. */
static void member_withdraw(struct member *m)
{
    pthread_mutex_lock(&m->lock);
    atomic_store(&m->worker, NULL);
    pthread_mutex_unlock(&m->lock);
}

void member_give_up(struct member *m)
{
    struct tenrec_worker *w;

    pthread_mutex_lock(&m->lock);
    if ((w = atomic_load(&m->worker)))
        tenrec_shutdown(w, TENREC_IMMEDIATE, tenrec_test_stretch_ms(AT_ONCE_MS), NULL);
    pthread_mutex_unlock(&m->lock);
}

static tenrec_status member_live(struct member *m, tenrec_error *err)
{
    const struct tenrec_test_options *o = &m->setting->o;
    bool rpc = !(o->flags & TENREC_TEST_NO_RPC);
    tenrec_status st = TENREC_OK;

    if (rpc && ((st = make_worker(m, &m->test.worker, err)) != TENREC_OK ||
                (st = start_worker(m, err)) != TENREC_OK))
        return st;
    if ((st = member_body(m, err)) != TENREC_OK)
        return st;
    wait_for_others(m);
    member_withdraw(m);
    if (rpc && (st = member_leave(m, err)) == TENREC_OK && !(o->flags & TENREC_TEST_IGNORE_LEAKS))
        st = leaks_check_worker(m->test.worker, err);
    return st;
}

void member_run(struct member *m)
{
    bool check = m->pid && !(m->setting->o.flags & TENREC_TEST_IGNORE_LEAKS);
    tenrec_error err = { .code = TENREC_OK };
    struct leaks before;
    tenrec_status st;

    if (check)
        leaks_begin(&before);
    st = member_live(m, &err);
    if (st != TENREC_OK && !atomic_load(&member_record(m)->may_die))
        board_fail(m->board, m->test.rank);
    member_withdraw(m);
    tenrec_worker_drop(m->test.worker);
    member_enter(m, RECORD_LEAKS);
    if (st == TENREC_OK && check)
        st = leaks_check(&before, &err);
    if (atomic_load(&member_record(m)->may_die))
        st = TENREC_OK;
    board_end(m->board, m->test.rank, st, &err);
}

tenrec_status tenrec_test_make_config(const struct tenrec_test *t, struct tenrec_config **ret,
                                      tenrec_error *err)
{
    const struct member *m = (const struct member *)(const void *)t;

    *ret = NULL;
    return setting_config(m->setting, t->rank, ret, err);
}

void tenrec_test_die(const struct tenrec_test *t)
{
    const struct member *m = (const struct member *)(const void *)t;

    atomic_store(&member_record(m)->may_die, true);
    atomic_store(&m->board->shortened, true);
    if (m->pid) {
        fflush(NULL);
        kill(getpid(), SIGKILL);
    }
    if (t->worker)
        tenrec_shutdown(t->worker, TENREC_IMMEDIATE, scale_left(m->deadline), NULL);
}
