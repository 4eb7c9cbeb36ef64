/* SPDX-License-Identifier: Apache-2.0 */
#include "run/workers_run.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <termios.h>
#include <unistd.h>

extern char **environ;

char **spawn_environment(char *const *set, size_t n)
{
    size_t old = 0, used = 0;
    char **ret;

    while (environ[old])
        old++;
    ret = calloc(old + n + 1, sizeof *ret);
    if (!ret)
        return NULL;
    for (size_t i = 0; i < old; i++) {
        bool replaced = false;

        for (size_t k = 0; k < n && !replaced; k++) {
            size_t name = strcspn(set[k], "=");

            replaced = !strncmp(environ[i], set[k], name) && environ[i][name] == '=';
        }
        if (!replaced)
            ret[used++] = environ[i];
    }
    for (size_t k = 0; k < n; k++)
        if (strchr(set[k], '='))
            ret[used++] = set[k];
    return ret;
}

/* Opens a raw terminal, a little narrower than that of this process. */
static bool open_terminal(int narrower, int pair[2])
{
    struct winsize size;
    struct termios t;
    const char *name;

    if (ioctl(1, TIOCGWINSZ, &size))
        memset(&size, 0, sizeof size);
    if (size.ws_col > narrower)
        size.ws_col = (unsigned short)(size.ws_col - narrower);
    pair[0] = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (pair[0] < 0)
        return false;
    name = grantpt(pair[0]) || unlockpt(pair[0]) ? NULL : ptsname(pair[0]);
    pair[1] = name ? open(name, O_RDWR | O_NOCTTY | O_CLOEXEC) : -1;
    if (pair[1] < 0) {
        close(pair[0]);
        pair[0] = -1;
        return false;
    }
    ioctl(pair[1], TIOCSWINSZ, &size);
    if (!tcgetattr(pair[1], &t)) {
        t.c_oflag &= ~(tcflag_t)OPOST;
        t.c_lflag &= ~(tcflag_t)ECHO;
        tcsetattr(pair[1], TCSANOW, &t);
    }
    return true;
}

/* Runs in the child, where only async-signal-safe calls are allowed: other
 * threads of the parent may hold locks. */
static void spawn_become(const struct spawn *what, pid_t parent, int out, int err_fd, int report)
{
    struct sigaction act = { .sa_handler = SIG_DFL };
    sigset_t none;
    int in;

    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(127);
    for (int s = 1; s < NSIG; s++)
        sigaction(s, &act, NULL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    in = open("/dev/null", O_RDONLY);
    if (in >= 0 && dup2(in, 0) == 0 && dup2(out, 1) == 1 && dup2(err_fd, 2) == 2) {
        if (in > 2)
            close(in);
        execvpe(what->argv[0], what->argv, what->env);
    }
    in = errno;
    if (write(report, &in, sizeof in) < 0)
        _exit(126);
    _exit(127);
}

static void close_pair(int pair[2])
{
    for (int i = 0; i < 2; i++)
        if (pair[i] >= 0)
            close(pair[i]);
}

tenrec_status spawn(const struct spawn *what, struct spawned *ret, tenrec_error *err)
{
    int out[2] = { -1, -1 }, errs[2] = { -1, -1 }, report[2] = { -1, -1 };
    int why = 0;
    pid_t parent = getpid(), pid = -1;

    /* None of these is 0 to 2, where dup2 in the child would overwrite it, unless the caller runs
     * without them. [0] is ours. */
    if ((!(what->terminal && open_terminal(what->narrower, out)) && pipe2(out, O_CLOEXEC)) ||
        pipe2(errs, O_CLOEXEC) || pipe2(report, O_CLOEXEC) || (pid = fork()) < 0)
        why = errno;
    if (pid == 0)
        spawn_become(what, parent, out[1], errs[1], report[1]);
    if (pid < 0) {
        close_pair(out);
        close_pair(errs);
        close_pair(report);
        return tenrec_fail_errno(err, TENREC_EOS, why, "cannot create a process");
    }
    setpgid(pid, pid); /* the child does the same: either may run first */
    close(out[1]);
    close(errs[1]);
    close(report[1]);
    ret->pid = pid;
    ret->fd[0] = -1;
    ret->fd[1] = out[0];
    ret->fd[2] = errs[0];
    /* exec closes the other end, and the read returns nothing. */
    if (read(report[0], &why, sizeof why) != sizeof why)
        why = 0;
    close(report[0]);
    if (!why)
        return TENREC_OK;
    close(out[0]);
    close(errs[0]);
    return tenrec_fail_errno(err, why == ENOENT ? TENREC_ENOTFOUND : TENREC_EOS, why,
                             "cannot start '%s'", what->argv[0]);
}
