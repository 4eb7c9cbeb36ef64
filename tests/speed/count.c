/* SPDX-License-Identifier: Apache-2.0 */
#include "count.h"

#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define TASKS_MAX 256

/* A counted process signals the counter by closing descriptors that are not open. */
enum { MARK_BEGIN = -7001, MARK_END = -7002, MARK_ROLE = -7100 };

struct task {
    pid_t tid;
    int process; /* index of its process */
    bool wakes;  /* inside a futex call that wakes */
    bool inside;
    uint64_t number;
};

struct tracer {
    struct task task[TASKS_MAX];
    size_t n_tasks;
    pid_t process[TASKS_MAX];
    int role[TASKS_MAX]; /* of a process; -1: none yet */
    size_t n_processes;
    bool counting;
    struct counts *counts;
};

void count_role(int role)
{
    syscall(SYS_close, MARK_ROLE - role);
}

void count_begin(void)
{
    syscall(SYS_close, MARK_BEGIN);
}

void count_end(void)
{
    syscall(SYS_close, MARK_END);
}

/* ---- threads ------------------------------------------------------------------------ */

static pid_t process_of(pid_t tid)
{
    char path[64], line[128];
    pid_t pid = tid;
    FILE *f;

    snprintf(path, sizeof path, "/proc/%d/status", (int)tid);
    f = fopen(path, "r");
    while (f && fgets(line, sizeof line, f))
        if (!strncmp(line, "Tgid:", 5))
            pid = (pid_t)strtol(line + 5, NULL, 10);
    if (f)
        fclose(f);
    return pid;
}

static int process_index(struct tracer *t, pid_t pid)
{
    for (size_t i = 0; i < t->n_processes; i++)
        if (t->process[i] == pid)
            return (int)i;
    t->process[t->n_processes] = pid;
    t->role[t->n_processes] = -1;
    return (int)t->n_processes++;
}

static struct task *task_of(struct tracer *t, pid_t tid)
{
    struct task *k;

    for (size_t i = 0; i < t->n_tasks; i++)
        if (t->task[i].tid == tid)
            return &t->task[i];
    if (t->n_tasks == TASKS_MAX) {
        fprintf(stderr, "count: more than %d threads\n", TASKS_MAX);
        abort();
    }
    k = &t->task[t->n_tasks++];
    *k = (struct task){ .tid = tid, .process = process_index(t, process_of(tid)) };
    return k;
}

static void task_ended(struct tracer *t, pid_t tid)
{
    for (size_t i = 0; i < t->n_tasks; i++)
        if (t->task[i].tid == tid)
            t->task[i] = t->task[--t->n_tasks];
}

/* ---- what they do ---------------------------------------------------------------------- */

/* Returns true for a signal to the counter, which is no system call of the work. */
static bool heard(struct tracer *t, const struct task *k, const struct __ptrace_syscall_info *i)
{
    int fd = (int)i->entry.args[0];

    if (i->entry.nr != SYS_close || fd > MARK_BEGIN)
        return false;
    if (fd == MARK_BEGIN || fd == MARK_END)
        t->counting = fd == MARK_BEGIN;
    else
        t->role[k->process] = MARK_ROLE - fd;
    return true;
}

/* Counted by numbers of their own: a futex that wakes, a check of descriptors
 * without waiting, and what has too high a number. */
#define FUTEX_WAKES (COUNT_NUMBERS - 1)
#define LOOKS (COUNT_NUMBERS - 2)
#define UNKNOWN (COUNT_NUMBERS - 3)

static bool is_look(const struct __ptrace_syscall_info *i)
{
#ifdef SYS_epoll_wait
    if (i->entry.nr == SYS_epoll_wait)
        return (int)i->entry.args[3] == 0;
#endif
    return i->entry.nr == SYS_epoll_pwait && (int)i->entry.args[3] == 0;
}

static uint64_t number_of(const struct __ptrace_syscall_info *i)
{
    uint64_t op = i->entry.args[1] & FUTEX_CMD_MASK;

    if (i->entry.nr == SYS_futex && op != FUTEX_WAIT && op != FUTEX_WAIT_BITSET)
        return FUTEX_WAKES;
    if (is_look(i))
        return LOOKS;
    return i->entry.nr < UNKNOWN ? i->entry.nr : UNKNOWN;
}

/* Calls are counted when they begin, so that one which sleeps through the end
 * of the work does not count as part of it, nor is one forgotten. */
static void on_syscall(struct tracer *t, struct task *k)
{
    struct __ptrace_syscall_info i;
    int role = t->role[k->process];
    struct count_process *p = role < 0 ? NULL : &t->counts->of[role];

    if (ptrace(PTRACE_GET_SYSCALL_INFO, k->tid, sizeof i, &i) <= 0)
        return;
    if (i.op == PTRACE_SYSCALL_INFO_ENTRY) {
        k->inside = !heard(t, k, &i) && t->counting && p;
        k->number = number_of(&i);
        if (k->inside)
            p->done[k->number]++;
    } else if (i.op == PTRACE_SYSCALL_INFO_EXIT && k->inside) {
        k->inside = false;
        if (p && i.exit.is_error) {
            p->done[k->number]--;
            p->refused[k->number]++;
        }
    }
}

/* Goes on after a stop; passes on the signals that are not ours. */
static void go_on(struct tracer *t, pid_t tid, int status)
{
    int signal = WSTOPSIG(status), event = status >> 16;
    struct task *k = task_of(t, tid);

    if (signal == (SIGTRAP | 0x80)) {
        on_syscall(t, k);
        signal = 0;
    } else if (event || signal == SIGSTOP || signal == SIGTRAP) {
        signal = 0; /* new children stop once */
    }
    ptrace(PTRACE_SYSCALL, tid, 0, signal);
}

int count_run(int (*fn)(void *arg), void *arg, struct counts *ret)
{
    const long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK |
                         PTRACE_O_TRACEVFORK | PTRACE_O_EXITKILL;
    struct tracer *t = calloc(1, sizeof *t);
    int status, result = -1;
    pid_t child, tid;

    if (!t)
        return -1;
    memset(ret, 0, sizeof *ret);
    t->counts = ret;
    fflush(NULL);
    child = fork();
    if (child == 0) {
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
            _exit(126);
        raise(SIGSTOP);
        _exit(fn(arg));
    }
    if (child > 0 && waitpid(child, &status, 0) == child && WIFSTOPPED(status)) {
        ptrace(PTRACE_SETOPTIONS, child, NULL, options);
        ptrace(PTRACE_SYSCALL, child, NULL, 0);
        while ((tid = waitpid(-1, &status, __WALL)) > 0) {
            if (WIFSTOPPED(status)) {
                go_on(t, tid, status);
                continue;
            }
            task_ended(t, tid);
            if (tid == child && WIFEXITED(status))
                result = WEXITSTATUS(status);
        }
    }
    free(t);
    return result;
}

/* ---- sums --------------------------------------------------------------------------------- */

static uint32_t done(const struct count_process *p, const long *numbers, size_t n)
{
    uint32_t sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += p->done[numbers[i]];
    return sum;
}

static uint32_t all(const struct count_process *p)
{
    uint32_t sum = 0;

    for (size_t i = 0; i < COUNT_NUMBERS; i++)
        sum += p->done[i] + p->refused[i];
    return sum;
}

#define DONE(p, list) done(p, list, sizeof list / sizeof *list)

struct count_sums count_sum(const struct count_process *p)
{
    static const long sends[] = { SYS_sendto, SYS_sendmsg, SYS_write, SYS_writev };
    static const long receives[] = { SYS_recvfrom, SYS_recvmsg, SYS_read, SYS_readv };
    static const long waits[] = {
#ifdef SYS_epoll_wait
        SYS_epoll_wait,  SYS_poll,
#endif
        SYS_epoll_pwait, SYS_ppoll, SYS_futex,
    };
    struct count_sums s = { .sends = DONE(p, sends),
                            .receives = DONE(p, receives),
                            .waits = DONE(p, waits),
                            .wakes = p->done[FUTEX_WAKES],
                            .looks = p->done[LOOKS] };

    for (size_t i = 0; i < sizeof receives / sizeof *receives; i++)
        s.vain += p->refused[receives[i]];
    /* A futex whose word has changed already was a wait all the same. */
    s.waits += p->refused[SYS_futex];
    s.others = all(p) - s.sends - s.receives - s.vain - s.waits - s.wakes - s.looks;
    return s;
}

void count_print(const struct counts *c)
{
    for (int r = 0; r < COUNT_ROLES; r++) {
        struct count_sums s = count_sum(&c->of[r]);

        fprintf(stderr, "%s: %u sends, %u receives, %u in vain, %u waits, %u wakes, %u others\n",
                r ? "callee" : "caller", s.sends, s.receives, s.vain, s.waits, s.wakes, s.others);
        for (int i = 0; i < COUNT_NUMBERS; i++)
            if (c->of[r].done[i] || c->of[r].refused[i])
                fprintf(stderr, "    system call %d: %u done, %u refused\n", i, c->of[r].done[i],
                        c->of[r].refused[i]);
    }
}
