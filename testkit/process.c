/* SPDX-License-Identifier: Apache-2.0 */
#include <tenrec/store.h>

#include "testkit/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* Exit handlers of LeakSanitizer and gcov, which _exit leaves out. NULL in a program without them.
 */
extern void __lsan_do_leak_check(void) __attribute__((weak));
extern void __gcov_dump(void) __attribute__((weak));

static void output_path(const struct member *m, char ret[SETTING_PATH_MAX])
{
    snprintf(ret, SETTING_PATH_MAX, "%.200s/output%d", m->setting->dir, m->test.rank);
}

/* Resets the signal handlers of the test, and dies with the parent. */
static void begin_child(pid_t parent)
{
    for (int s = 1; s < NSIG; s++)
        if (s != SIGPIPE) /* a program that ignores SIGPIPE needs to */
            signal(s, SIG_DFL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
}

static void process_redirect(const struct member *m)
{
    char path[SETTING_PATH_MAX];
    int fd;

    output_path(m, path);
    fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd < 0)
        return;
    dup2(fd, STDOUT_FILENO);
    dup2(fd, STDERR_FILENO);
    close(fd);
}

static void set_environment(const struct member *m)
{
    const char *place = m->setting->store + strlen("tcp://"), *colon = strrchr(place, ':');
    char text[SETTING_PATH_MAX];

    if (!(m->setting->o.flags & TENREC_TEST_TCP_STORE) || !colon)
        return;
    snprintf(text, sizeof text, "%.*s", (int)(colon - place), place);
    setenv("MASTER_ADDR", text, 1);
    setenv("MASTER_PORT", colon + 1, 1);
    setenv("TORCHELASTIC_USE_AGENT_STORE", "True", 1);
    snprintf(text, sizeof text, "%d", m->test.rank);
    setenv("RANK", text, 1);
    snprintf(text, sizeof text, "%d", m->test.world_size);
    setenv("WORLD_SIZE", text, 1);
}

static _Noreturn void run_child(struct member *m)
{
    m->pid = getpid();
    process_redirect(m);
    set_environment(m);
    setvbuf(stdout, NULL, _IOLBF, 0);
    member_run(m);
    fflush(NULL);
    if (__lsan_do_leak_check && member_record(m)->status == TENREC_OK &&
        !(m->setting->o.flags & TENREC_TEST_IGNORE_LEAKS))
        __lsan_do_leak_check(); /* ends the process when it finds one */
    if (__gcov_dump)
        __gcov_dump();
    _exit(0);
}

tenrec_status process_start(struct member *m, tenrec_error *err)
{
    pid_t parent = getpid(), pid;

    fflush(NULL); /* or the child prints it again */
    pid = fork();
    if (pid < 0)
        return tenrec_fail_errno(err, TENREC_EOS, errno, "a process for worker %d", m->test.rank);
    if (pid == 0) {
        begin_child(parent);
        run_child(m);
    }
    m->pid = pid;
    return TENREC_OK;
}

bool process_ended(struct member *m)
{
    pid_t r = m->reaped ? 0 : waitpid(m->pid, &m->exit, WNOHANG);

    /* A program that ignores SIGCHLD gets ECHILD, and no status. */
    if (r == m->pid || (r < 0 && errno == ECHILD))
        m->reaped = true;
    return m->reaped;
}

void process_how(const struct member *m, char *ret, size_t room)
{
    if (WIFSIGNALED(m->exit))
        snprintf(ret, room, "was killed by signal %d (%s)", WTERMSIG(m->exit),
                 strsignal(WTERMSIG(m->exit)));
    else
        snprintf(ret, room, "exited with status %d", WEXITSTATUS(m->exit));
}

void process_output(const struct member *m, char *ret, size_t room)
{
    char path[SETTING_PATH_MAX];
    ssize_t n = 0;
    off_t end;
    int fd;

    output_path(m, path);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        end = lseek(fd, 0, SEEK_END);
        n = pread(fd, ret, room - 1, end > (off_t)room - 1 ? end - (off_t)(room - 1) : 0);
        close(fd);
    }
    ret[n > 0 ? n : 0] = '\0';
}

/* ---- the store --------------------------------------------------------------- */

static _Noreturn void process_serve(int fd)
{
    struct tenrec_store_server *server = NULL;
    uint16_t port = 0;

    if (tenrec_store_server_new("127.0.0.1", 0, &server, &port, NULL) != TENREC_OK)
        _exit(1);
    if (write(fd, &port, sizeof port) != sizeof port)
        _exit(1);
    for (;;)
        pause();
}

tenrec_status process_serve_store(struct setting *s, int *ret_pid, tenrec_error *err)
{
    pid_t parent = getpid(), pid;
    uint16_t port = 0;
    int fd[2];
    ssize_t n;

    if (pipe(fd) != 0)
        return tenrec_fail_errno(err, TENREC_EOS, errno, "a pipe to the store");
    fflush(NULL);
    pid = fork();
    if (pid == 0) {
        begin_child(parent);
        close(fd[0]);
        process_serve(fd[1]);
    }
    close(fd[1]);
    n = pid < 0 ? 0 : read(fd[0], &port, sizeof port);
    close(fd[0]);
    if (n != sizeof port) {
        process_end_store(pid);
        return tenrec_fail(err, TENREC_EOS, "the process that serves the store did not start");
    }
    snprintf(s->store, sizeof s->store, "tcp://127.0.0.1:%u", port);
    *ret_pid = pid;
    return TENREC_OK;
}

void process_end_store(int pid)
{
    if (pid <= 0)
        return;
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}
