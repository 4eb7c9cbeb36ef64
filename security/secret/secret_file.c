/* SPDX-License-Identifier: Apache-2.0 */
/* secret_file.c - a secret in a file. */
#include "core/base/file.h"
#include "security/secret/crypto.h"
#include "security/secret/secret.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEX_LEN ((size_t)2 * SECRET_BYTES)
#define FILE_MODE 0600

static int secret_file_digit(uint8_t c)
{
    static const char digits[] = "0123456789abcdef0123456789ABCDEF";
    const char *at = c ? strchr(digits, c) : NULL;

    return at ? (int)(at - digits) % 16 : -1;
}

/* Decodes 64 digits, and a newline if there is one. Returns false for a file of another form. */
static bool secret_file_decode(const uint8_t *text, size_t len, uint8_t ret[SECRET_BYTES])
{
    if (len != HEX_LEN && !(len == HEX_LEN + 1 && text[HEX_LEN] == '\n'))
        return false;
    for (size_t i = 0; i < SECRET_BYTES; i++) {
        const int high = secret_file_digit(text[2 * i]), low = secret_file_digit(text[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        ret[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

static tenrec_status secret_file_parse(const char *path, const uint8_t *text, size_t len,
                                       struct secret **ret, tenrec_error *err)
{
    uint8_t decoded[SECRET_BYTES];
    tenrec_status st;

    if (secret_file_decode(text, len, decoded))
        st = secret_new(decoded, sizeof decoded, ret, err);
    else if (len < SECRET_MIN || len > SECRET_MAX)
        st = tenrec_fail(err, TENREC_ECONFIG,
                         "secret file '%s': it has %s%zu bytes, %d to %d were expected: make one "
                         "with 'tenrec secret new FILE'",
                         path, len > SECRET_MAX ? "more than " : "",
                         len > SECRET_MAX ? (size_t)SECRET_MAX : len, SECRET_MIN, SECRET_MAX);
    else
        st = secret_new(text, len, ret, err);
    crypto_wipe(decoded, sizeof decoded);
    return st;
}

/* Reads up to `room` bytes; -1 with errno. */
static ssize_t secret_file_read(int fd, uint8_t *to, size_t room)
{
    size_t len = 0;

    while (len < room) {
        const ssize_t n = read(fd, to + len, room - len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        if (n == 0)
            break;
        len += (size_t)n;
    }
    return (ssize_t)len;
}

tenrec_status secret_read_file(const char *path, struct secret **ret, tenrec_error *err)
{
    uint8_t text[SECRET_MAX + 1];
    struct stat found;
    tenrec_status st;
    ssize_t len;
    /* Non-blocking: the open of a pipe would wait for its writer. */
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

    if (fd < 0 || fstat(fd, &found) < 0) {
        st =
            tenrec_fail_errno(err, TENREC_ECONFIG, errno, "secret file '%s': cannot read it", path);
        if (fd >= 0)
            close(fd);
        return st;
    }
    st = private_file_check("secret file", path, &found, err);
    if (st == TENREC_OK) {
        len = secret_file_read(fd, text, sizeof text);
        st = len < 0 ? tenrec_fail_errno(err, TENREC_ECONFIG, errno,
                                         "secret file '%s': cannot read it", path)
                     : secret_file_parse(path, text, (size_t)len, ret, err);
        crypto_wipe(text, sizeof text);
    }
    close(fd);
    return st;
}

static bool secret_file_put(int fd, const void *data, size_t len)
{
    const char *at = data;

    while (len > 0) {
        const ssize_t n = write(fd, at, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        at += n;
        len -= (size_t)n;
    }
    return true;
}

/* A drawn secret as digits and a newline, any other byte for byte. */
static bool secret_file_print(int fd, const struct secret *s)
{
    static const char digits[] = "0123456789abcdef";
    char text[HEX_LEN + 1];
    size_t len;
    const uint8_t *bytes = secret_bytes(s, &len);
    bool ok;

    if (len != SECRET_BYTES)
        return secret_file_put(fd, bytes, len);
    for (size_t i = 0; i < SECRET_BYTES; i++) {
        text[2 * i] = digits[bytes[i] >> 4];
        text[2 * i + 1] = digits[bytes[i] & 15];
    }
    text[HEX_LEN] = '\n';
    ok = secret_file_put(fd, text, sizeof text);
    crypto_wipe(text, sizeof text);
    return ok;
}

tenrec_status secret_write_file(const struct secret *s, const char *path, tenrec_error *err)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOCTTY, FILE_MODE);
    struct file_limit held;
    int why = 0;

    if (fd < 0)
        return errno == EEXIST
                   ? tenrec_fail(err, TENREC_EEXIST,
                                 "secret file '%s': it already exists, and is kept", path)
                   : tenrec_fail_errno(err, TENREC_EOS, errno, "secret file '%s': cannot make it",
                                       path);
    file_limit_hold(&held);
    if (!secret_file_print(fd, s) || fsync(fd) < 0)
        why = errno;
    file_limit_release(&held);
    if (close(fd) < 0 && !why)
        why = errno;
    if (!why)
        return TENREC_OK;
    unlink(path); /* a part of a secret is none */
    return file_limit_fail(err, why, "secret file '%s': cannot write it", path);
}
