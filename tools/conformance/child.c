/* SPDX-License-Identifier: Apache-2.0 */
#include "conformance/report.h"

#include "core/base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define KEPT 3500 /* bytes of what was printed; the rest is for how it ended */

static void child_keep(struct result *r, const char *bytes, size_t n)
{
    const size_t had = strlen(r->text);

    if (had + n > KEPT) {
        const size_t drop = had + n - KEPT < had ? had + n - KEPT : had;

        memmove(r->text, r->text + drop, had - drop + 1);
        if (n > KEPT) {
            bytes += n - KEPT;
            n = KEPT;
        }
    }
    strncat(r->text, bytes, n);
}

TENREC_PRINTF(2, 3)
static void child_add(struct result *r, const char *fmt, ...)
{
    const size_t had = strlen(r->text);
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(r->text + had, sizeof r->text - had, fmt, ap);
    va_end(ap);
}

/* Reads until the case, and all that it started, has closed its output. False at the limit. */
static bool listen_to(int fd, uint64_t until_ns, struct result *r)
{
    for (;;) {
        struct pollfd p = { .fd = fd, .events = POLLIN };
        char bytes[512];
        ssize_t n;

        if (clock_passed(until_ns))
            return false;
        if (poll(&p, 1, clock_left_ms(until_ns)) <= 0)
            continue;
        n = read(fd, bytes, sizeof bytes - 1);
        if (n <= 0)
            return true;
        for (ssize_t i = 0; i < n; i++) /* the text ends at the first NUL */
            bytes[i] = bytes[i] ? bytes[i] : '?';
        bytes[n] = '\0';
        child_keep(r, bytes, (size_t)n);
    }
}

static void run_here(const struct conformance_case *c, const struct conformance_setup *setup,
                     int out, pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(CASE_FAILED);
    setpgid(0, 0); /* what the plugin starts ends with it */
    dup2(out, STDOUT_FILENO);
    dup2(out, STDERR_FILENO);
    case_run(c, setup);
    exit(CASE_OK); /* so that a leak is found where that is looked for */
}

static void child_judge(struct result *r, int status)
{
    if (WIFSIGNALED(status))
        child_add(r, "killed by signal %d (%s)\n", WTERMSIG(status), strsignal(WTERMSIG(status)));
    else if (WEXITSTATUS(status) == CASE_NOT_OFFERED)
        r->outcome = OUTCOME_NOT_OFFERED;
    else if (WEXITSTATUS(status) == CASE_UNUSABLE)
        r->outcome = OUTCOME_UNUSABLE;
    else if (WEXITSTATUS(status) == CASE_OK)
        r->outcome = OUTCOME_OK;
    else if (WEXITSTATUS(status) != CASE_FAILED)
        child_add(r, "ended with exit status %d\n", WEXITSTATUS(status));
}

void child_run(const struct conformance_case *c, const struct conformance_setup *setup,
               uint64_t limit_ms, struct result *ret)
{
    const uint64_t until_ns = clock_deadline_ms(limit_ms);
    const pid_t parent = getpid();
    char *rule;
    int fd[2], status = 0;
    bool ended;
    pid_t pid;

    *ret = (struct result){ .outcome = OUTCOME_FAILED };
    rule = mmap(NULL, EXPECT_RULE_MAX, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (rule == MAP_FAILED) {
        child_add(ret, "no memory for the case: %s\n", strerror(errno));
        return;
    }
    expect_share(rule);
    if (pipe2(fd, O_CLOEXEC)) {
        child_add(ret, "no pipe for the case: %s\n", strerror(errno));
        munmap(rule, EXPECT_RULE_MAX);
        return;
    }
    fflush(NULL);
    pid = fork();
    if (pid == 0)
        run_here(c, setup, fd[1], parent);
    close(fd[1]);
    if (pid < 0) {
        child_add(ret, "no process for the case: %s\n", strerror(errno));
        close(fd[0]);
        munmap(rule, EXPECT_RULE_MAX);
        return;
    }
    ended = listen_to(fd[0], until_ns, ret);
    kill(-pid, SIGKILL);
    if (!ended)
        kill(pid, SIGKILL);
    close(fd[0]);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    if (ended)
        child_judge(ret, status);
    else
        child_add(ret, "did not end within %llu ms\n", (unsigned long long)limit_ms);
    if (ret->outcome == OUTCOME_FAILED)
        memcpy(ret->rule, rule,
               EXPECT_RULE_MAX - 1); /* of a process that may have written any byte */
    munmap(rule, EXPECT_RULE_MAX);
}
