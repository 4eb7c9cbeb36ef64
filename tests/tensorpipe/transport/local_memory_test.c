/* SPDX-License-Identifier: Apache-2.0 */
/* local_memory_test.c - the memory of rings. */
#include "transport/transport_local.h"

#include "../../testing.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

TEST(memory_of_rings_can_never_be_executed)
{
    int fd, plain = memfd_create("test", MFD_CLOEXEC | 0x0008U);

    if (plain < 0)
        skip(); /* before Linux 6.3 */
    close(plain);
    fd = local_memory_new("test", 4096);
    assert_true(fd >= 0);
    assert_int_equal(fchmod(fd, 0700), -1);
    close(fd);
}

/* In a child with a limit of 64 KiB. */
static int limited(void)
{
    const struct rlimit limit = { 65536, 65536 };
    char why[200];

    signal(SIGXFSZ, SIG_DFL);
    if (setrlimit(RLIMIT_FSIZE, &limit) || !local_memory_viable(65536, why, sizeof why))
        return 1;
    if (local_memory_new("test", 65537) >= 0 || errno != EFBIG)
        return 2;
    return local_memory_viable(1 << 20, why, sizeof why) ||
           !strstr(why, "1024 KiB; the limit of file sizes (ulimit -f) is 64 KiB");
}

TEST(memory_of_rings_obeys_the_limit_of_file_sizes_without_a_signal)
{
    const pid_t pid = fork();
    int status;

    if (pid == 0)
        _exit(limited());
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}
