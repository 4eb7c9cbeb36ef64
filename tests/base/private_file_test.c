/* SPDX-License-Identifier: Apache-2.0 */
#include "core/base/file.h"

#include "../testing.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[] = "/tmp/tenrec-private-XXXXXX", path[64], other[64];

static void set_up(void)
{
    memcpy(folder + sizeof folder - 7, "XXXXXX", 6);
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/file", folder);
    snprintf(other, sizeof other, "%s/other", folder);
}

static void tear_down(void)
{
    unlink(path);
    unlink(other);
    assert_int_equal(rmdir(folder), 0);
}

static void write_text(const char *to, const char *text, mode_t mode)
{
    int fd = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    assert_true(fd >= 0 && fchmod(fd, mode) == 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
}

static void holds(const char *file, const char *wanted)
{
    char got[64] = "";
    int fd = open(file, O_RDONLY | O_CLOEXEC);

    assert_true(fd >= 0 && read(fd, got, sizeof got - 1) >= 0);
    close(fd);
    assert_string_equal(got, wanted);
}

TEST_WITH(file_that_is_new_follows_no_link, set_up, tear_down)
{
    tenrec_error err;

    write_text(other, "of another", 0600);
    assert_int_equal(symlink(other, path), 0);
    assert_int_equal(private_file_write(path, PRIVATE_FILE_NEW, "mine", 4, &err), TENREC_EOS);
    assert_int_equal(err.os_errno, EEXIST);
    holds(other, "of another");
}

TEST_WITH(file_that_is_new_replaces_none, set_up, tear_down)
{
    tenrec_error err;

    write_text(path, "of another", 0600);
    assert_int_equal(private_file_write(path, PRIVATE_FILE_NEW, "mine", 4, &err), TENREC_EOS);
    assert_text_has(err.text, path);
    holds(path, "of another");
}

TEST_WITH(file_is_readable_by_its_user_alone, set_up, tear_down)
{
    const mode_t before = umask(0);
    struct stat st;
    tenrec_error err;

    assert_status(private_file_write(path, PRIVATE_FILE_NEW, "mine", 4, &err), &err);
    assert_status(private_file_write(other, PRIVATE_FILE_NAMED, "mine", 4, &err), &err);
    umask(before);
    assert_true(stat(path, &st) == 0 && (st.st_mode & 0777) == 0600);
    assert_true(stat(other, &st) == 0 && (st.st_mode & 0777) == 0600);
    holds(path, "mine");
}

TEST_WITH(file_that_the_user_names_is_followed_and_emptied, set_up, tear_down)
{
    tenrec_error err;

    write_text(other, "much longer than the new text", 0600);
    assert_int_equal(symlink(other, path), 0);
    assert_status(private_file_write(path, PRIVATE_FILE_NAMED, "new", 3, &err), &err);
    holds(other, "new");
}

/* ---- the folder ------------------------------------------------------------------ */

static void in_folder(void)
{
    set_up();
    setenv("XDG_RUNTIME_DIR", folder, 1);
}

static void leave_folder(void)
{
    unsetenv("XDG_RUNTIME_DIR");
    chmod(folder, 0700);
    tear_down();
}

TEST_WITH(folder_is_that_of_the_session, in_folder, leave_folder)
{
    char got[TENREC_PRIVATE_FOLDER_MAX];
    tenrec_error err;

    assert_status(private_folder(got, &err), &err);
    assert_string_equal(got, folder);
}

TEST_WITH(folder_of_the_session_that_others_may_enter_is_left_out, in_folder, leave_folder)
{
    char got[TENREC_PRIVATE_FOLDER_MAX];
    tenrec_error err;

    assert_int_equal(chmod(folder, 0755), 0);
    assert_status(private_folder(got, &err), &err);
    assert_string_not_equal(got, folder);
}

/* In a child with a user of its own, whose first folder another user has taken. */
static int blocked(uid_t user, const char *taken)
{
    char got[TENREC_PRIVATE_FOLDER_MAX], want[80];
    struct stat st;

    snprintf(want, sizeof want, "%s-1", taken);
    if (setgid(user) || setuid(user) || private_folder(got, NULL) != TENREC_OK)
        return 1;
    if (strcmp(got, want) != 0 || stat(got, &st) != 0 || st.st_uid != user ||
        (st.st_mode & 0777) != 0700)
        return 2;
    return private_folder(got, NULL) != TENREC_OK || strcmp(got, want) != 0 ? 3 : rmdir(got);
}

TEST(folder_in_tmp_is_another_one_when_a_user_has_taken_the_first)
{
    const uid_t user = 1000000 + (uid_t)getpid();
    char taken[64];
    int status;
    pid_t pid;

    if (geteuid() != 0)
        skip(); /* only root can be two users */
    snprintf(taken, sizeof taken, "/tmp/tenrec-%u", (unsigned)user);
    assert_int_equal(mkdir(taken, 0700), 0);
    unsetenv("XDG_RUNTIME_DIR");
    pid = fork();
    if (pid == 0)
        _exit(blocked(user, taken));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(rmdir(taken), 0);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}
