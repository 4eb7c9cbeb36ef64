/* SPDX-License-Identifier: Apache-2.0 */
/* file_limit_test.c - files of processes with a limit of file sizes. Each case is a child of its
 * own, as a limit stays. */
#include "core/base/file.h"

#include "../testing.h"
#include "core/base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <tenrec/log.h>
#include <unistd.h>

enum { KIB = 1024 };

/* Runs fn in a child with that limit. It must return 0. */
static void run(rlim_t limit, int (*fn)(void))
{
    int status;
    const pid_t pid = fork();

    if (pid == 0) {
        const struct rlimit l = { limit, limit }, no_core = { 0, 0 };

        setrlimit(RLIMIT_CORE, &no_core);
        signal(SIGXFSZ, SIG_DFL);
        _exit(setrlimit(RLIMIT_FSIZE, &l) ? 99 : fn());
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFSIGNALED(status))
        fail_msg("signal %d ended the child", WTERMSIG(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static int checks(void)
{
    tenrec_error err;

    if (file_limit_check(4 * KIB, &err) != TENREC_OK)
        return 1;
    return file_limit_check(4 * KIB + 1, &err) != TENREC_EOS ||
           strcmp(err.text, "the limit of file sizes (ulimit -f) is 4 KiB") != 0;
}

TEST(limit_of_files_is_told_with_its_size)
{
    run(4 * KIB, checks);
}

static int makes_memory(void)
{
    tenrec_error err;
    int fd;

    if (memory_file_new("test", 4 * KIB, MFD_CLOEXEC, &fd, &err) != TENREC_OK)
        return 1;
    return memory_file_new("test", 4 * KIB + 1, MFD_CLOEXEC, &fd, &err) != TENREC_EOS ||
           !strstr(err.text, "(ulimit -f) is 4 KiB");
}

TEST(limit_of_files_holds_for_memory_without_a_signal)
{
    run(4 * KIB, makes_memory);
}

/* The signal of its own write is taken back: a signal that the program may wait for is not hidden.
 */
static int writes(void)
{
    static const char data[8 * KIB];
    char path[] = "/tmp/tenrec-limit-XXXXXX";
    int fd = mkstemp(path);
    sigset_t pending, blocked;
    tenrec_error err;

    close(fd);
    if (private_file_write(path, PRIVATE_FILE_NAMED, data, sizeof data, &err) != TENREC_EOS ||
        !strstr(err.text, path) || !strstr(err.text, "(ulimit -f) is 4 KiB"))
        return 1;
    unlink(path);
    if (private_file_write(path, PRIVATE_FILE_NEW, data, sizeof data, &err) != TENREC_EOS ||
        access(path, F_OK) == 0)
        return 2;
    sigpending(&pending);
    pthread_sigmask(SIG_SETMASK, NULL, &blocked);
    return sigismember(&pending, SIGXFSZ) == 1 || sigismember(&blocked, SIGXFSZ) == 1;
}

TEST(limit_of_files_fails_a_write_without_a_signal)
{
    run(4 * KIB, writes);
}

static int logs(void)
{
    char path[] = "/tmp/tenrec-limit-XXXXXX";
    int fd = mkstemp(path);
    struct stat st;

    unlink(path);
    for (int i = 0; i < 100; i++)
        log_sink_write(fd, "sixteen letters\n", 16);
    return fstat(fd, &st) || st.st_size != KIB;
}

TEST(limit_of_files_ends_a_log_without_a_signal)
{
    run(KIB, logs);
}

TEST(memory_file_can_never_be_executed)
{
    tenrec_error err;
    int fd, plain = memfd_create("test", MFD_CLOEXEC | 0x0008U);

    if (plain < 0)
        skip(); /* before Linux 6.3 */
    close(plain);
    assert_status(memory_file_new("test", KIB, MFD_CLOEXEC, &fd, &err), &err);
    assert_int_equal(fchmod(fd, 0700), -1);
    close(fd);
}
