/* SPDX-License-Identifier: Apache-2.0 */
#include "observe/recorder/stack.h"

#include "core/base/clock.h"
#include "core/base/forks.h"
#include "core/base/threads.h"

#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>
#ifdef TENREC_HAVE_EXECINFO
#include <execinfo.h>
#endif

enum { ANSWER_MS = 200, OWN_FRAMES = 8 };

/* ---- what the kernel knows ---------------------------------------------------- */

static bool task_read(uint32_t thread, const char *name, char *buf, size_t size)
{
    char path[64];
    FILE *file;
    size_t n;

    snprintf(path, sizeof path, "/proc/self/task/%u/%s", thread, name);
    file = fopen(path, "re");
    if (!file)
        return false;
    n = fread(buf, 1, size - 1, file);
    fclose(file);
    buf[n] = '\0';
    return true;
}

static const char *state_text(char letter)
{
    switch (letter) {
    case 'R':
        return "runs";
    case 'S':
        return "sleeps";
    case 'D':
        return "waits for a device";
    case 'T':
    case 't':
        return "is stopped";
    default:
        return "";
    }
}

/* Returns false if there is no such thread. */
static bool stack_look(struct stack *s)
{
    char text[512], wait[40] = "";
    const char *at;

    s->n = 0;
    s->state[0] = s->thread_name[0] = '\0';
    s->result = STACK_NONE;
    if (!task_read(s->thread, "stat", text, sizeof text))
        return false;
    s->result = STACK_NOT_ASKED;
    at = strrchr(text, ')'); /* the name before it may hold any character */
    if (at && task_read(s->thread, "wchan", wait, sizeof wait) && *wait == '0')
        wait[0] = '\0'; /* hidden, or it runs */
    if (at && at[1])
        snprintf(s->state, sizeof s->state, "%s%s%s", state_text(at[2]), *wait ? " in " : "", wait);
    if (task_read(s->thread, "comm", s->thread_name, sizeof s->thread_name))
        s->thread_name[strcspn(s->thread_name, "\n")] = '\0';
    return true;
}

void stacks_look(struct stack *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        stack_look(&s[i]);
}

#ifdef TENREC_HAVE_EXECINFO

/* ---- the signal ----------------------------------------------------------------- */

enum { ASK_NOTHING, ASK_WAITS, ASK_TAKES };

/* Of the one question at a time. It outlives the question, as a handler may be late. */
static struct {
    pthread_mutex_t lock;
    _Atomic uint32_t state, thread;
    int fd; /* an eventfd, written when the frames are there */
    void *frame[STACK_DEPTH + OWN_FRAMES];
    void *at; /* the interrupted instruction; NULL: unknown */
    int n;
    bool hangs; /* a handler never came back: it may still write */
} ask = { .lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1 };

static void *interrupted_at(const ucontext_t *u)
{
#if defined __x86_64__
    return (void *)u->uc_mcontext.gregs[REG_RIP];
#elif defined __aarch64__
    return (void *)u->uc_mcontext.pc;
#else
    (void)u;
    return NULL;
#endif
}

static void on_signal(int number, siginfo_t *info, void *context)
{
    const uint64_t one = 1;
    const int saved = errno;
    uint32_t waits = ASK_WAITS;

    (void)number;
    (void)info;
    if (atomic_load(&ask.thread) == (uint32_t)syscall(SYS_gettid) &&
        atomic_compare_exchange_strong(&ask.state, &waits, ASK_TAKES)) {
        ask.at = interrupted_at(context);
        ask.n = backtrace(ask.frame, STACK_DEPTH + OWN_FRAMES);
        atomic_store(&ask.state, ASK_NOTHING);
        if (write(ask.fd, &one, sizeof one) < 0)
            ask.n = 0; /* the asking thread times out */
    }
    errno = saved;
}

/* Is the signal blocked? Then it would stay pending. */
static bool thread_blocks(uint32_t thread)
{
    char text[2048];
    const char *at;

    if (!task_read(thread, "status", text, sizeof text) || !(at = strstr(text, "\nSigBlk:")))
        return true;
    return strtoull(at + strlen("\nSigBlk:"), NULL, 16) >> (THREADS_STACK_SIGNAL - 1) & 1;
}

static bool ask_answered(uint64_t until)
{
    struct pollfd p = { .fd = ask.fd, .events = POLLIN };
    uint64_t ignored;
    int left;

    while ((left = clock_left_ms(until)) > 0)
        if (poll(&p, 1, left) > 0)
            return read(ask.fd, &ignored, sizeof ignored) > 0;
    return false;
}

/* Without the frames of the handler and the kernel's trampoline. */
static void ask_copy(struct stack *s)
{
    int from = 0;

    for (int i = 0; i < ask.n && i < OWN_FRAMES; i++)
        if (ask.at && ask.frame[i] == ask.at)
            from = i;
    s->n = ask.n - from < STACK_DEPTH ? ask.n - from : STACK_DEPTH;
    memcpy(s->frame, ask.frame + from, sizeof s->frame[0] * (size_t)s->n);
}

static enum stack_result stack_ask(struct stack *s)
{
    uint32_t waits = ASK_WAITS;

    if (thread_blocks(s->thread))
        return STACK_BLOCKED;
    atomic_store(&ask.thread, s->thread);
    atomic_store(&ask.state, ASK_WAITS);
    if (syscall(SYS_tgkill, getpid(), (pid_t)s->thread, THREADS_STACK_SIGNAL) != 0) {
        atomic_store(&ask.state, ASK_NOTHING);
        return errno == ESRCH ? STACK_NONE : STACK_LATE;
    }
    if (ask_answered(clock_deadline_ms(ANSWER_MS))) {
        ask_copy(s);
        return STACK_TAKEN;
    }
    if (atomic_compare_exchange_strong(&ask.state, &waits, ASK_NOTHING))
        return STACK_LATE;
    if (ask_answered(clock_deadline_ms(ANSWER_MS))) {
        ask_copy(s);
        return STACK_TAKEN;
    }
    ask.hangs = true;
    return STACK_LATE;
}

static void stacks_ask(struct stack *s, size_t n)
{
    struct sigaction ours = { .sa_sigaction = on_signal, .sa_flags = SA_RESTART | SA_SIGINFO };
    const struct sigaction ignore = { .sa_handler = SIG_IGN };
    struct sigaction before;
    void *first[1];
    bool fresh;

    sigfillset(&ours.sa_mask);
    if (ask.fd < 0)
        ask.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    backtrace(first, 1); /* loads what it needs: not in a signal handler */
    fresh = sigaction(THREADS_STACK_SIGNAL, NULL, &before) == 0 &&
            !(before.sa_flags & SA_SIGINFO) && before.sa_handler == SIG_DFL;
    if (!fresh || ask.fd < 0 || sigaction(THREADS_STACK_SIGNAL, &ours, NULL) != 0) {
        for (size_t i = 0; i < n; i++)
            s[i].result = s[i].result == STACK_NONE ? STACK_NONE : STACK_IN_USE;
        return;
    }
    for (size_t i = 0; i < n; i++)
        if (s[i].result != STACK_NONE)
            s[i].result = ask.hangs ? STACK_LATE : stack_ask(&s[i]);
    /* Discards signals that are still pending, which would end the process else. */
    sigaction(THREADS_STACK_SIGNAL, &ignore, NULL);
    sigaction(THREADS_STACK_SIGNAL, &before, NULL);
}

/* The thread that held the lock is the parent's. */
static void stacks_forked(void)
{
    pthread_mutex_init(&ask.lock, NULL);
    ask.fd = -1; /* shared with the parent */
    ask.hangs = false;
}

static struct fork_hook fork_hook = { .child = stacks_forked };

void stacks_take(struct stack *s, size_t n)
{
    forks_follow(&fork_hook);
    stacks_look(s, n);
    pthread_mutex_lock(&ask.lock);
    stacks_ask(s, n);
    pthread_mutex_unlock(&ask.lock);
}

#else

void stacks_take(struct stack *s, size_t n)
{
    stacks_look(s, n);
    for (size_t i = 0; i < n; i++)
        if (s[i].result != STACK_NONE)
            s[i].result = STACK_ABSENT;
}

#endif

/* ---- texts ------------------------------------------------------------------------ */

const char *stack_result_text(enum stack_result r)
{
    static const char *const text[] = {
        [STACK_TAKEN] = "",
        [STACK_NOT_ASKED] = "not interrupted (observe.stacks)",
        [STACK_BLOCKED] = "the thread blocks the signal",
        [STACK_IN_USE] = "the program handles the signal itself",
        [STACK_LATE] = "the thread did not answer in time",
        [STACK_NONE] = "the thread has ended",
        [STACK_ABSENT] = "this C library lists no frames",
    };

    return text[r];
}

const char *stack_frame_text(const struct stack *s, int i, char buf[static STACK_FRAME_TEXT])
{
    /* All but the innermost are return addresses, which may be behind the function. */
    const char *at = (const char *)s->frame[i] - (i > 0 ? 1 : 0), *file;
    Dl_info info;

    if (dladdr(at, &info) == 0 || !info.dli_fname) {
        snprintf(buf, STACK_FRAME_TEXT, "in no file"); /* an address would help attackers */
        return buf;
    }
    file = strrchr(info.dli_fname, '/');
    file = file ? file + 1 : info.dli_fname;
    if (info.dli_sname)
        snprintf(buf, STACK_FRAME_TEXT, "%s+0x%zx (%s)", info.dli_sname,
                 (size_t)((const char *)s->frame[i] - (const char *)info.dli_saddr), file);
    else
        snprintf(buf, STACK_FRAME_TEXT, "%s+0x%zx", file,
                 (size_t)((const char *)s->frame[i] - (const char *)info.dli_fbase));
    return buf;
}
