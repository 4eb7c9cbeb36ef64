/* SPDX-License-Identifier: Apache-2.0 */
/* workers_end.c - signals, and the consequences of the end of a worker. */
#include "core/base/clock.h"
#include "run/workers_run.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

static const int forwarded[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };

TENREC_PRINTF(2, 3)
void run_say(struct run *r, const char *fmt, ...)
{
    char text[512];
    int n = snprintf(text, sizeof text, "tenrec %s: ", r->plan->tool->name);
    size_t len;
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text + n, sizeof text - (size_t)n, fmt, ap);
    va_end(ap);
    len = strlen(text);
    text[len] = '\n';
    screen_print(&r->screen, 2, text, len + 1);
}

/* "rank 2", or in an elastic run "slot 2". */
static const char *kind_of(const struct run *r)
{
    return r->plan->elastic.max ? "slot" : "rank";
}

static void signal_all(struct run *r, int sig)
{
    for (int i = 0; i < r->started; i++)
        if (r->worker[i].running)
            kill(-r->worker[i].pid, sig);
}

void run_end_all(struct run *r, int sig)
{
    for (int i = 0; i < r->started; i++)
        r->worker[i].slot.again_ns = 0;
    r->elastic.waiting = 0;
    signal_all(r, sig);
    if (r->kill_at == CLOCK_NEVER)
        r->kill_at = clock_deadline_ms(r->plan->grace_ms);
}

static void kill_all(struct run *r)
{
    signal_all(r, SIGKILL);
    r->kill_at = CLOCK_NEVER;
    r->killed = true;
}

static void on_user_signal(struct run *r, int sig)
{
    if (++r->signals == 1) {
        if (!r->running && !r->failed) { /* all failed, and waited for a restart */
            r->failed = true;
            r->status = 128 + sig;
        }
        run_end_all(r, sig);
        return;
    }
    kill_all(r);
    if (r->signals == 2)
        run_say(r, "%s again: killed all workers", signal_name(sig, (char[SIGNAL_NAME_MAX]){ 0 }));
}

static void how_it_ended(int status, char *buf, size_t n)
{
    char name[SIGNAL_NAME_MAX];

    if (WIFEXITED(status)) {
        snprintf(buf, n, "exit status %d", WEXITSTATUS(status));
        return;
    }
    snprintf(buf, n, "killed by %s", signal_name(WTERMSIG(status), name));
}

static int status_of(int status)
{
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Ends the run after the failure of a worker. After a signal to the launcher the others have that
 * signal, too: each ends by it in its own time. */
static void on_failure(struct run *r, int rank, const char *how)
{
    if (!r->signals)
        run_end_all(r, SIGTERM);
    if (r->running && !r->signals)
        run_say(r, "%s %d failed: %s; terminating the other %d", kind_of(r), rank, how, r->running);
    else
        run_say(r, "%s %d failed: %s", kind_of(r), rank, how);
}

static void on_end(struct run *r, int rank, int status)
{
    char how[64];

    if (status == 0 || (r->failed && !r->plan->keep_going))
        return;
    if (!r->failed)
        r->status = status_of(status);
    r->failed = true;
    how_it_ended(status, how, sizeof how);
    if (r->plan->keep_going && !r->signals)
        run_say(r, "rank %d failed: %s; still running: %d", rank, how, r->running);
    else
        on_failure(r, rank, how);
}

/* on_end for a slot of an elastic run. */
void run_slot_ended(struct run *r, int slot, int status)
{
    struct elastic_slot *s = &r->worker[slot].slot;
    uint64_t now = clock_now_ns();
    char how[64];

    if (status == 0) {
        elastic_ended_well(&r->elastic, s);
        return;
    }
    if (r->failed || r->signals) { /* the run ends already */
        on_end(r, slot, status);
        return;
    }
    how_it_ended(status, how, sizeof how);
    switch (elastic_failed(&r->elastic, s, r->running, now)) {
    case ELASTIC_AGAIN:
        run_say(r, "slot %d failed: %s; restart %d of %d in %.1f s; still running: %d", slot, how,
                s->life + 1, r->plan->elastic.restarts, (double)(s->again_ns - now) / 1e9,
                r->running);
        return;
    case ELASTIC_GO_ON:
        run_say(r, "slot %d failed: %s; no restarts left; still running: %d", slot, how,
                r->running + r->elastic.waiting);
        return;
    case ELASTIC_IS_OVER:
        r->failed = true;
        r->status = status_of(status);
        run_say(r, "slot %d failed: %s; no restarts left, and fewer than %d slots remain", slot,
                how, r->plan->elastic.min);
        run_end_all(r, SIGTERM);
        return;
    }
}

static void workers_end_reap(struct run *r)
{
    for (int i = 0; i < r->started; i++) {
        struct worker *w = &r->worker[i];
        siginfo_t seen = { .si_pid = 0 };
        int status;

        /* Kill the group before reaping the worker: until then no other process can
         * get its number. */
        if (!w->running || waitid(P_PID, (id_t)w->pid, &seen, WEXITED | WNOHANG | WNOWAIT) ||
            seen.si_pid == 0)
            continue;
        kill(-w->pid, SIGKILL); /* processes that the worker left behind */
        if (waitpid(w->pid, &status, 0) != w->pid)
            continue;
        w->running = false;
        r->running--;
        if (r->plan->elastic.max)
            run_slot_ended(r, i, status);
        else
            on_end(r, i, status);
    }
}

void run_read_signals(struct run *r)
{
    struct signalfd_siginfo info;

    while (read(r->signal_fd, &info, sizeof info) == sizeof info)
        if (info.ssi_signo == SIGCHLD)
            workers_end_reap(r);
        else if (info.ssi_signo == SIGUSR1)
            r->more++;
        else
            on_user_signal(r, (int)info.ssi_signo);
}

void run_kill_late(struct run *r)
{
    if (!clock_passed(r->kill_at))
        return;
    kill_all(r);
    if (r->running)
        run_say(r, "%d workers did not end within %.1f s: killed them", r->running,
                (double)r->plan->grace_ms / 1e3);
}

int run_open_signals(bool elastic)
{
    sigset_t set;

    signal(SIGPIPE, SIG_IGN);
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    for (size_t i = 0; i < sizeof forwarded / sizeof forwarded[0]; i++)
        sigaddset(&set, forwarded[i]);
    if (elastic)
        sigaddset(&set, SIGUSR1);
    /* Before the thread of the store starts, which inherits the mask. */
    if (sigprocmask(SIG_BLOCK, &set, NULL))
        return -1;
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}
