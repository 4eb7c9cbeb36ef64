/* SPDX-License-Identifier: Apache-2.0 */
/* The file store's format, byte by byte, and what it does with files that are
 * damaged, removed or locked. */
#include "../support/test_store.h"

#include "core/base/clock.h"
#include "group/store/store.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <tenrec/log.h>
#include <tenrec/store.h>

static tenrec_error err;
static char dir[64], path[96], url[112];

static void make_dir(void)
{
    snprintf(dir, sizeof dir, "/tmp/tenrec-file-XXXXXX");
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/store", dir);
    snprintf(url, sizeof url, "file://%s", path);
}

static void drop_dir(void)
{
    unlink(path);
    rmdir(dir);
}

static void put_file(const void *data, size_t len, int flags)
{
    int fd = open(path, O_WRONLY | O_CREAT | flags, 0644);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, data, len), len);
    close(fd);
}

static void file_is(const void *data, size_t len)
{
    char got[256];
    int fd = open(path, O_RDONLY);

    assert_int_equal(read(fd, got, sizeof got), len);
    assert_memory_equal(got, data, len);
    close(fd);
}

static bool is_there(void)
{
    return access(path, F_OK) == 0;
}

static struct tenrec_store *open_it(void)
{
    struct tenrec_store *s;

    assert_status(tenrec_store_open(url, TEST_MS, &s, &err), &err);
    return s;
}

static void holds(struct tenrec_store *s, const char *key, const char *value)
{
    void *data;

    assert_status(tenrec_store_get(s, key, TEST_MS, &data, NULL, &err), &err);
    assert_string_equal(data, value);
    free(data);
}

/* Records that torch 1.13 wrote, with Tenrec's records between. */
#define A_V "\2\0\0\0/a\2\0\0\0v\0"
#define B_TB "\2\0\0\0/b\2\0\0\0tb"
#define C_4                                                                                        \
    "\2\0\0\0/c\1\0\0\0"                                                                           \
    "4"
#define DEL_B "\3\0\0\0-/b\0\0\0\0"

TEST_WITH(file_writes_the_records_of_torch, make_dir, drop_dir)
{
    struct tenrec_store *s = open_it();

    assert_status(tenrec_store_set(s, "a", "v", 2, TEST_MS, &err), &err);
    assert_status(tenrec_store_set(s, "b", "tb", 2, TEST_MS, &err), &err);
    assert_status(tenrec_store_add(s, "c", 4, TEST_MS, NULL, &err), &err);
    assert_status(tenrec_store_delete(s, "b", TEST_MS, NULL, &err), &err);
    file_is(A_V B_TB C_4 DEL_B, sizeof(A_V B_TB C_4 DEL_B) - 1);
    tenrec_store_close(s);
    assert_true(is_there()); /* the number of workers was not set */
}

TEST_WITH(file_reads_records_that_other_clients_append, make_dir, drop_dir)
{
    struct tenrec_store *s;
    const char *b = "b";
    bool there;

    put_file(A_V B_TB, sizeof(A_V B_TB) - 1, 0);
    s = open_it();
    holds(s, "a", "v");
    holds(s, "b", "tb");
    put_file(C_4 DEL_B, sizeof(C_4 DEL_B) - 1, O_APPEND);
    holds(s, "c", "4");
    assert_status(tenrec_store_check(s, &b, 1, TEST_MS, &there, &err), &err);
    assert_false(there);
    tenrec_store_close(s);
}

TEST_WITH(file_refuses_a_damaged_file, make_dir, drop_dir)
{
    struct tenrec_store *s = NULL;

    put_file("these are no records", 20, 0);
    assert_int_equal(tenrec_store_open(url, TEST_MS, &s, &err), TENREC_EPROTOCOL);
    assert_text_has(err.text, path);
    assert_text_has(err.text, "byte 0");
}

TEST_WITH(file_starts_anew_when_the_file_was_removed, make_dir, drop_dir)
{
    struct tenrec_store *s = open_it();
    const char *a = "a";
    bool there;

    assert_status(tenrec_store_set(s, "a", "1", 1, TEST_MS, &err), &err);
    unlink(path);
    assert_status(tenrec_store_check(s, &a, 1, TEST_MS, &there, &err), &err);
    assert_false(there);
    assert_status(tenrec_store_set(s, "b", "2", 1, TEST_MS, &err), &err);
    assert_status(tenrec_store_check(s, &a, 1, TEST_MS, &there, &err), &err);
    assert_false(there);
    holds(s, "b", "2");
    tenrec_store_close(s);
}

TEST_WITH(file_call_ends_when_another_process_keeps_the_lock, make_dir, drop_dir)
{
    struct tenrec_store *s = open_it();
    int fd = open(path, O_RDWR);

    assert_int_equal(flock(fd, LOCK_EX), 0);
    assert_int_equal(tenrec_store_set(s, "a", "", 0, 10, &err), TENREC_EPEER_LOST);
    assert_text_has(err.text, "locked");
    close(fd);
    assert_status(tenrec_store_set(s, "a", "", 0, TEST_MS, &err), &err);
    tenrec_store_close(s);
}

TEST_WITH(file_is_removed_by_the_last_of_its_workers, make_dir, drop_dir)
{
    struct tenrec_store *a, *b, *again;

    assert_status(store_file_open(path, 2, CLOCK_NEVER, &a, &err), &err);
    assert_status(store_file_open(path, 2, CLOCK_NEVER, &b, &err), &err);
    tenrec_store_close(a);
    assert_true(is_there());
    /* A worker that returns before the others are gone keeps the file. */
    assert_status(store_file_open(path, 2, CLOCK_NEVER, &again, &err), &err);
    tenrec_store_close(b);
    assert_true(is_there());
    tenrec_store_close(again);
    assert_false(is_there());
}

TEST_WITH(file_refuses_a_path_that_is_no_file, make_dir, drop_dir)
{
    struct tenrec_store *s = NULL;

    assert_int_equal(tenrec_store_open("file:///tmp", TEST_MS, &s, &err), TENREC_EOS);
    assert_text_has(err.text, "/tmp");
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(tenrec_store_open(url, TEST_MS, &s, &err), TENREC_EINVAL);
    assert_text_has(err.text, "regular");
    assert_int_equal(tenrec_store_open("file:///no/such/dir/x", TEST_MS, &s, &err), TENREC_EOS);
    assert_text_has(err.text, "/no/such/dir/x");
    unlink(path);
    assert_int_equal(symlink("/etc/passwd", path), 0);
    assert_int_equal(tenrec_store_open(url, TEST_MS, &s, &err), TENREC_EOS);
}

TEST_WITH(file_is_made_for_its_user_alone, make_dir, drop_dir)
{
    const mode_t mask = umask(0);
    struct tenrec_store *s = open_it();
    struct stat st;

    umask(mask);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    tenrec_store_close(s);
}

TEST_WITH(file_refuses_a_file_that_other_users_can_write, make_dir, drop_dir)
{
    static const mode_t modes[] = { 0620, 0602, 0666 };
    struct tenrec_store *s = NULL;

    put_file("", 0, 0);
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        assert_int_equal(chmod(path, modes[i]), 0);
        assert_int_equal(tenrec_store_open(url, TEST_MS, &s, &err), TENREC_EOS);
        assert_text_has(err.text, "can be written by others");
        assert_text_has(err.text, "chmod 600");
    }
}

/* Root can give a file away; a test of another user is content with the rights. */
TEST_WITH(file_refuses_a_file_of_another_user, make_dir, drop_dir)
{
    struct tenrec_store *s = NULL;

    put_file("", 0, 0);
    if (geteuid() != 0 || chown(path, 65534, (gid_t)-1) != 0)
        return;
    assert_int_equal(tenrec_store_open(url, TEST_MS, &s, &err), TENREC_EOS);
    assert_text_has(err.text, "belongs to another user (uid 65534)");
}

static char logged[2048];

static void keep_log(void *arg, enum tenrec_log_level level, const char *part, const char *text)
{
    const size_t n = strlen(logged);

    (void)part, (void)arg;
    if (level == TENREC_LOG_WARN)
        snprintf(logged + n, sizeof logged - n, "%s\n", text);
}

/* As torch's FileStore makes it. */
TEST_WITH(file_warns_once_of_a_file_that_other_users_can_read, make_dir, drop_dir)
{
    struct tenrec_store *s;
    char *first;

    put_file("", 0, 0);
    assert_int_equal(chmod(path, 0644), 0);
    tenrec_log_set_level(TENREC_LOG_WARN);
    *logged = '\0';
    tenrec_log_set_callback(keep_log, NULL);
    s = open_it();
    assert_status(tenrec_store_set(s, "a", "1", 1, TEST_MS, &err), &err);
    tenrec_log_set_callback(NULL, NULL);
    tenrec_store_close(s);
    first = strstr(logged, "can be read, and locked, by others (mode 0644)");
    assert_non_null(first);
    assert_null(strstr(first + 1, "can be read"));
}
