/* SPDX-License-Identifier: Apache-2.0 */
#include "setuid.h"

#include "../testing.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOT_STARTED 78 /* as under valgrind, which starts no such program */

static void copy_program(const char *to)
{
    char chunk[65536];
    int in = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    int out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
    ssize_t n;

    assert_true(in >= 0 && out >= 0);
    while ((n = read(in, chunk, sizeof chunk)) > 0)
        assert_int_equal(write(out, chunk, (size_t)n), n);
    assert_int_equal(n, 0);
    /* The owner first: a change of it clears the bit. */
    assert_int_equal(fchown(out, SETUID_USER, (gid_t)-1), 0);
    assert_int_equal(fchmod(out, 04755), 0);
    close(in);
    close(out);
}

bool setuid_copy_make(struct setuid_copy *c)
{
    *c = (struct setuid_copy){ .folder = "" };
    if (geteuid() != 0)
        return false;
    snprintf(c->folder, sizeof c->folder, "/tmp/" SETUID_MARK "XXXXXX");
    assert_non_null(mkdtemp(c->folder));
    assert_int_equal(chmod(c->folder, 0777), 0);
    snprintf(c->program, sizeof c->program, "%s/program", c->folder);
    copy_program(c->program);
    return true;
}

void setuid_copy_remove(struct setuid_copy *c)
{
    unlink(c->program);
    rmdir(c->folder);
}

static void start(const struct setuid_copy *c, char *const args[], char *const env[], int out)
{
    char *all[SETUID_ARGS_MAX + 2] = { (char *)c->program };

    for (size_t i = 0; i < SETUID_ARGS_MAX && args[i]; i++)
        all[i + 1] = args[i];
    dup2(out, 1);
    dup2(out, 2);
    execve(c->program, all, env);
    _exit(errno == EACCES ? NOT_STARTED : 126);
}

int setuid_copy_run(const struct setuid_copy *c, char *const args[], char *const env[], char *ret,
                    size_t room)
{
    size_t len = 0;
    ssize_t n;
    int pair[2], status;
    pid_t pid;

    assert_int_equal(pipe2(pair, O_CLOEXEC), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        start(c, args, env, pair[1]);
    close(pair[1]);
    while (len < room - 1 && (n = read(pair[0], ret + len, room - 1 - len)) > 0)
        len += (size_t)n;
    ret[len] = '\0';
    close(pair[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == SETUID_NOT_SECURE || WEXITSTATUS(status) == NOT_STARTED)
        skip();
    return WEXITSTATUS(status);
}
