/* SPDX-License-Identifier: Apache-2.0 */
/* cma.c - process_vm_readv, and whether it is allowed. */
#include "channel/channel.h"
#include "transport/transport_local.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef PR_SET_PTRACER
#define PR_SET_PTRACER 0x59616d61
#endif

#define STACK_SIZE 65536
#define READ_MAX ((uint64_t)1 << 30) /* bytes of one system call; it takes 2 GiB at most */

int cma_open(struct cma_peer *peer, pid_t pid)
{
    int fd = (int)syscall(SYS_pidfd_open, pid, 0);

    /* Kernels before 5.3 have no such descriptor, so the death of the process is not detected. */
    if (fd < 0 && errno != ENOSYS)
        return errno;
    *peer = (struct cma_peer){ .pid = pid, .fd = fd };
    return 0;
}

struct cma_peer cma_beside(pid_t pid, int sock)
{
    return (struct cma_peer){ .pid = pid, .fd = sock, .is_sock = true };
}

void cma_close(struct cma_peer *peer)
{
    if (peer->pid && peer->fd >= 0 && !peer->is_sock)
        close(peer->fd);
    *peer = (struct cma_peer){ .fd = -1 };
}

static int read_all(pid_t pid, void *to, uint64_t from, uint64_t len)
{
    while (len) {
        size_t n = (size_t)(len < READ_MAX ? len : READ_MAX);
        struct iovec here = { to, n }, there = { (void *)(uintptr_t)from, n };
        ssize_t r = process_vm_readv(pid, &here, 1, &there, 1, 0);

        if (r < 0)
            return errno;
        if (r == 0)
            return EFAULT;
        to = (char *)to + r;
        from += (uint64_t)r;
        len -= (uint64_t)r;
    }
    return 0;
}

/* `e`: of what was read. */
static int read_ended(const struct cma_peer *peer, int e)
{
    struct pollfd gone = { .fd = peer->fd, .events = peer->is_sock ? POLLRDHUP : POLLIN };

    return poll(&gone, 1, 0) > 0 ? ESRCH : e;
}

int cma_read(const struct cma_peer *peer, void *to, uint64_t from, uint64_t len)
{
    return read_ended(peer, read_all(peer->pid, to, from, len));
}

int cma_read_list(const struct cma_peer *peer, const struct iovec *to, const struct iovec *from,
                  size_t n)
{
    size_t len = 0;
    ssize_t r;

    for (size_t i = 0; i < n; i++)
        len += to[i].iov_len;
    r = process_vm_readv(peer->pid, to, n, from, n, 0);
    return read_ended(peer, r < 0 ? errno : (size_t)r == len ? 0 : EFAULT);
}

/* ---- is it allowed ---- */

struct trial {
    pid_t parent;
    long word;
};

/* In a child that shares our memory but is no thread of ours: so the kernel's
 * rules are asked in full, as for any stranger of our user, and nothing is
 * copied. Only system calls, since libc's state is the parent's too. */
static int try_on_parent(void *arg)
{
    struct trial *t = arg;
    long word = 0;
    struct iovec here = { &word, sizeof word }, there = { &t->word, sizeof t->word };

    if (syscall(SYS_process_vm_readv, t->parent, &here, 1UL, &there, 1UL, 0UL) < 0)
        return errno;
    return word == t->word ? 0 : EIO;
}

/* ThreadSanitizer takes every clone for a fork and stumbles over shared memory. */
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define __SANITIZE_THREAD__ 1
#endif
#endif

static pid_t start_child(char *stack, struct trial *trial)
{
#ifdef __SANITIZE_THREAD__
    pid_t child = fork();

    (void)stack;
    if (child == 0)
        _exit(try_on_parent(trial));
    return child;
#else
    /* No signal at its end: the program may count its children. */
    return clone(try_on_parent, stack + STACK_SIZE, CLONE_VM | CLONE_VFORK, trial);
#endif
}

/* 0, or why the kernel says no. */
static int ask_kernel(void)
{
    struct trial trial = { getpid(), 0x70756c6c };
    /* No malloc: valgrind makes a child of its own memory, which would lose it. */
    char *stack = mmap(NULL, STACK_SIZE, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    sigset_t all, before;
    int status = 0, e;
    pid_t child;

    if (stack == MAP_FAILED)
        return ENOMEM;
    /* A handler of the program would run in the child too. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    child = start_child(stack, &trial);
    e = child < 0 ? errno : 0;
    while (child > 0 && waitpid(child, &status, __WALL) < 0 && errno == EINTR)
        continue;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    munmap(stack, STACK_SIZE);
    if (e)
        return e;
    return WIFEXITED(status) ? WEXITSTATUS(status) : EPERM;
}

static int yama_scope(void)
{
    char scope[16] = "";

    locality_line("/proc/sys/kernel/yama/ptrace_scope", scope, sizeof scope);
    return *scope >= '0' && *scope <= '9' ? *scope - '0' : 0;
}

static char answer[CMA_TEXT_MAX]; /* "": it is allowed */

/* At scope 1 only an ancestor may read, or one process that was named, and its
 * descendants. To name it lets it attach as a debugger, too: so that is done for the time
 * that a peer is connected, and never for all processes at once. */
static void name_tracer(pid_t pid)
{
    prctl(PR_SET_PTRACER, (unsigned long)pid, 0, 0, 0);
}

static struct {
    pthread_mutex_t lock;
    pid_t pid;
    unsigned count;
} tracer = { .lock = PTHREAD_MUTEX_INITIALIZER };

bool cma_wants_names(void)
{
    return yama_scope() == 1;
}

bool cma_allow(pid_t pid)
{
    bool allowed;

    if (!cma_wants_names())
        return true;
    pthread_mutex_lock(&tracer.lock);
    allowed = !tracer.count || tracer.pid == pid;
    if (allowed && tracer.count++ == 0) {
        tracer.pid = pid;
        name_tracer(pid);
    }
    pthread_mutex_unlock(&tracer.lock);
    return allowed;
}

void cma_disallow(pid_t pid)
{
    pthread_mutex_lock(&tracer.lock);
    if (tracer.count && tracer.pid == pid && --tracer.count == 0)
        name_tracer(0);
    pthread_mutex_unlock(&tracer.lock);
}

static void find_out(void)
{
    int scope = yama_scope(), e;

    if (scope == 1)
        name_tracer(getpid()); /* and so the child */
    e = ask_kernel();
    if (scope == 1)
        name_tracer(0);
    if (!e)
        return;
    if (scope > 1)
        snprintf(answer, sizeof answer,
                 "kernel.yama.ptrace_scope is %d; processes may read each other at 0 and 1", scope);
    else if (prctl(PR_GET_DUMPABLE) == 0)
        snprintf(answer, sizeof answer, "this process is not dumpable (prctl PR_SET_DUMPABLE)");
    else
        snprintf(answer, sizeof answer,
                 "process_vm_readv is not allowed here (%s); containers need the capability "
                 "SYS_PTRACE for it",
                 strerror(e));
}

bool cma_viable(char why[], size_t cap)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, find_out);
    snprintf(why, cap, "%s", answer);
    return !*answer;
}

/* ---- are two processes alike ---- */

/* Returns true if the kernel has capabilities, or does not say, as TensorPipe does. */
static bool has_capabilities(void)
{
    char text[512];

    return !locality_line("/sys/kernel/security/lsm", text, sizeof text) ||
           strstr(text, "capability");
}

static bool permitted_capabilities(char buf[LOCALITY_PART_MAX])
{
    FILE *f = fopen("/proc/self/status", "re");
    char line[256];
    uint64_t caps;
    bool found = false;

    while (f && !found && fgets(line, sizeof line, f))
        found = sscanf(line, "CapPrm: %" SCNx64, &caps) == 1;
    if (f)
        fclose(f);
    if (found)
        snprintf(buf, LOCALITY_PART_MAX, "_%" PRIx64, caps);
    return found;
}

bool cma_domain(char buf[CMA_TEXT_MAX])
{
    char boot[LOCALITY_PART_MAX], pid[LOCALITY_PART_MAX], user[LOCALITY_PART_MAX];
    char caps[LOCALITY_PART_MAX] = "";

    if (!locality_boot_id(boot) || !locality_namespace("pid", pid) ||
        !locality_namespace("user", user) || (has_capabilities() && !permitted_capabilities(caps)))
        return false;
    return snprintf(buf, CMA_TEXT_MAX, "cma:%s_%s_%s_%u_%u%s", boot, pid, user, (unsigned)geteuid(),
                    (unsigned)getegid(), caps) < CMA_TEXT_MAX;
}
