/* SPDX-License-Identifier: Apache-2.0 */
/* secret_file_test.c - secrets in files, and files that are refused. */
#include "security/secret/secret.h"

#include "../testing.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEX "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1eff"

static char folder[64], path[96];

static void set_up(void)
{
    strcpy(folder, "/tmp/secret_file.XXXXXX");
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/key", folder);
}

static void tear_down(void)
{
    unlink(path);
    rmdir(path);
    rmdir(folder);
}

static void put(const void *data, size_t len, mode_t mode)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, data, len), len);
    assert_int_equal(fchmod(fd, mode), 0);
    close(fd);
}

static void assert_read(const void *bytes, size_t len)
{
    struct secret *s;
    tenrec_error err;
    size_t found;

    assert_status(secret_read_file(path, &s, &err), &err);
    assert_memory_equal(secret_bytes(s, &found), bytes, len);
    assert_int_equal(found, len);
    secret_drop(s);
}

static void assert_refused(const char *part)
{
    struct secret *s = NULL;
    tenrec_error err;

    assert_int_equal(secret_read_file(path, &s, &err), TENREC_ECONFIG);
    assert_null(s);
    assert_text_has(err.text, path);
    assert_text_has(err.text, part);
}

TEST_WITH(secret_file_reads_digits_with_and_without_newline, set_up, tear_down)
{
    uint8_t bytes[SECRET_BYTES];

    for (int i = 0; i < SECRET_BYTES; i++)
        bytes[i] = (uint8_t)i;
    bytes[31] = 0xff;
    put(HEX "\n", 65, 0600);
    assert_read(bytes, sizeof bytes);
    put(HEX, 64, 0400);
    assert_read(bytes, sizeof bytes);
    put("000102030405060708090A0B0C0D0E0F101112131415161718191A1B1C1D1EFF\n", 65, 0600);
    assert_read(bytes, sizeof bytes);
}

TEST_WITH(secret_file_takes_another_form_byte_for_byte, set_up, tear_down)
{
    static uint8_t long_one[SECRET_MAX];

    put(HEX "\r\n", 66, 0600);
    assert_read(HEX "\r\n", 66);
    put("x" HEX, 64, 0600); /* no digit */
    assert_read("x" HEX, 64);
    put("0123456789abcdef", SECRET_MIN, 0600);
    assert_read("0123456789abcdef", SECRET_MIN);
    put(long_one, sizeof long_one, 0600);
    assert_read(long_one, sizeof long_one);
}

TEST_WITH(secret_file_is_refused_with_the_remedy, set_up, tear_down)
{
    static const uint8_t too_long[SECRET_MAX + 1];

    assert_refused("No such file");
    put(HEX "\n", 65, 0644);
    assert_refused("(mode 644): chmod 600");
    put(HEX "\n", 65, 0602);
    assert_refused("(mode 602): chmod 600");
    put(HEX "\n", 65, 0620);
    assert_refused("(mode 620): chmod 600");
    put("0123456789abcde", 15, 0600);
    assert_refused("it has 15 bytes, 16 to 4096 were expected: make one with 'tenrec secret new");
    put("", 0, 0600);
    assert_refused("it has 0 bytes");
    put(too_long, sizeof too_long, 0600);
    assert_refused("it has more than 4096 bytes");
}

TEST_WITH(secret_file_is_no_folder_and_no_pipe, set_up, tear_down)
{
    assert_int_equal(mkdir(path, 0700), 0);
    assert_refused("no regular file");
    rmdir(path);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_refused("no regular file");
}

static bool is_root(void)
{
    return geteuid() == 0;
}

TEST_WHEN(secret_file_of_another_user_is_refused, is_root, set_up, tear_down)
{
    put(HEX "\n", 65, 0600);
    assert_int_equal(chown(path, 4711, 4711), 0);
    assert_refused("it belongs to user 4711");
}

TEST_WHEN(secret_file_of_root_may_be_read_by_its_group, is_root, set_up, tear_down)
{
    put("0123456789abcdef", SECRET_MIN, 0640);
    assert_read("0123456789abcdef", SECRET_MIN);
}

TEST_WITH(secret_file_is_written_for_its_owner_and_read_again, set_up, tear_down)
{
    struct secret *s;
    tenrec_error err;
    struct stat found;
    char text[80];
    size_t len;
    FILE *f;

    assert_status(secret_draw(&s, &err), &err);
    assert_status(secret_write_file(s, path, &err), &err);
    assert_int_equal(stat(path, &found), 0);
    assert_int_equal(found.st_mode & 07777, 0600);
    f = fopen(path, "r");
    assert_int_equal(fread(text, 1, sizeof text, f), 65);
    fclose(f);
    assert_int_equal(strspn(text, "0123456789abcdef"), 64);
    assert_read(secret_bytes(s, &len), SECRET_BYTES);
    /* A second one does not replace it. */
    assert_int_equal(secret_write_file(s, path, &err), TENREC_EEXIST);
    assert_read(secret_bytes(s, &len), SECRET_BYTES);
    secret_drop(s);
}

TEST_WITH(secret_file_reports_a_folder_that_does_not_exist, set_up, tear_down)
{
    struct secret *s;
    tenrec_error err;

    assert_status(secret_draw(&s, &err), &err);
    assert_int_equal(secret_write_file(s, "/nowhere/key", &err), TENREC_EOS);
    assert_text_has(err.text, "'/nowhere/key': cannot make it: No such file");
    secret_drop(s);
}
