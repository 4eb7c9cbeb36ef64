/* SPDX-License-Identifier: Apache-2.0 */
#include "login.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static tenrec_status password_check(int fd, const char *path, tenrec_error *err)
{
    struct stat file;

    if (fstat(fd, &file) != 0 || !S_ISREG(file.st_mode))
        return tenrec_fail(err, TENREC_ECONFIG, "'password_file' \"%s\" is no regular file", path);
    if (file.st_uid != geteuid() && file.st_uid != 0)
        return tenrec_fail(err, TENREC_ECONFIG, "'password_file' \"%s\" belongs to user %u", path,
                           (unsigned)file.st_uid);
    if (file.st_mode & 077)
        return tenrec_fail(err, TENREC_ECONFIG,
                           "'password_file' \"%s\" is open to other users: chmod 600 it", path);
    return TENREC_OK;
}

static tenrec_status password_read(const char *path, char *ret, size_t room, tenrec_error *err)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    tenrec_status st;
    ssize_t n;

    if (fd < 0)
        return tenrec_fail_errno(err, TENREC_ECONFIG, errno, "cannot open 'password_file' \"%s\"",
                                 path);
    st = password_check(fd, path, err);
    n = st == TENREC_OK ? read(fd, ret, room) : 0;
    close(fd);
    if (st != TENREC_OK)
        return st;
    if (n < 0)
        return tenrec_fail_errno(err, TENREC_ECONFIG, errno, "cannot read 'password_file' \"%s\"",
                                 path);
    if ((size_t)n == room)
        return tenrec_fail(err, TENREC_ECONFIG,
                           "'password_file' \"%s\" is longer than a password may be, %zu bytes",
                           path, room - 1);
    ret[n] = '\0';
    ret[strcspn(ret, "\r\n")] = '\0';
    return *ret ? TENREC_OK
                : tenrec_fail(err, TENREC_ECONFIG, "'password_file' \"%s\" is empty", path);
}

tenrec_status login_read(const struct store_login *o, const struct store_url *url,
                         struct login *ret, tenrec_error *err)
{
    const bool from_file = !*url->password && *o->password_file;

    ret->user = *url->password ? url->user : o->user;
    ret->password = *url->password ? url->password : from_file ? ret->file : o->password;
    return from_file ? password_read(o->password_file, ret->file, sizeof ret->file, err)
                     : TENREC_OK;
}

tenrec_status login_check(const struct store_login *o, tenrec_error *err)
{
    if (*o->password && *o->password_file)
        return tenrec_fail(err, TENREC_ECONFIG,
                           "options 'password' and 'password_file' exclude each other");
    if (*o->user && !*o->password && !*o->password_file)
        return tenrec_fail(err, TENREC_ECONFIG,
                           "option 'user' is set, but no 'password' or 'password_file'");
    if (!*o->cert_file != !*o->key_file)
        return tenrec_fail(err, TENREC_ECONFIG, "option '%s' is set, but no '%s'",
                           *o->cert_file ? "cert_file" : "key_file",
                           *o->cert_file ? "key_file" : "cert_file");
    return TENREC_OK;
}
