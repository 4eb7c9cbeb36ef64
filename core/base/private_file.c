/* SPDX-License-Identifier: Apache-2.0 */
#include "core/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

tenrec_status private_file_check(const char *what, const char *path, const struct stat *st,
                                 tenrec_error *err)
{
    const mode_t refused = st->st_uid == 0 ? S_IWGRP | S_IXGRP | S_IRWXO : S_IRWXG | S_IRWXO;

    if (!S_ISREG(st->st_mode))
        return tenrec_fail(err, TENREC_ECONFIG, "%s '%s': it is no regular file", what, path);
    if (st->st_uid != geteuid() && st->st_uid != 0)
        return tenrec_fail(err, TENREC_ECONFIG,
                           "%s '%s': it belongs to user %u, this process to user %u: "
                           "chown it",
                           what, path, (unsigned)st->st_uid, (unsigned)geteuid());
    if (st->st_mode & refused)
        return tenrec_fail(err, TENREC_ECONFIG,
                           "%s '%s': others may read or write it (mode %03o): chmod 600 "
                           "'%s'",
                           what, path, (unsigned)(st->st_mode & 0777), path);
    return TENREC_OK;
}

/* ---- files ---------------------------------------------------------------------- */

tenrec_status private_file_open(const char *path, enum private_file_name name, int *ret_fd,
                                tenrec_error *err)
{
    const int how = name == PRIVATE_FILE_NEW ? O_EXCL | O_NOFOLLOW : O_TRUNC;
    const int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | how, 0600);

    if (fd < 0)
        return tenrec_fail_errno(err, TENREC_EOS, errno, "cannot write '%s'", path);
    *ret_fd = fd;
    return TENREC_OK;
}

/* Returns 0 or an errno. */
static int private_file_put(int fd, const char *data, size_t len)
{
    while (len > 0) {
        const ssize_t n = write(fd, data, len);

        if (n < 0 && errno != EINTR)
            return errno;
        data += n > 0 ? n : 0;
        len -= n > 0 ? (size_t)n : 0;
    }
    return 0;
}

tenrec_status private_file_write(const char *path, enum private_file_name name, const void *data,
                                 size_t len, tenrec_error *err)
{
    struct file_limit held;
    int fd = -1, why;
    tenrec_status st = private_file_open(path, name, &fd, err);

    if (st != TENREC_OK)
        return st;
    file_limit_hold(&held);
    why = private_file_put(fd, data, len);
    file_limit_release(&held);
    if (close(fd) < 0 && !why)
        why = errno;
    if (!why)
        return TENREC_OK;
    if (name == PRIVATE_FILE_NEW)
        unlink(path);
    return file_limit_fail(err, why, "cannot write '%s'", path);
}

/* ---- folders -------------------------------------------------------------------- */

enum { FIRST_IN_TMP = 2, FOLDERS = FIRST_IN_TMP + 16 };

/* Writes the path of folder `i`. Returns false if there is none. */
static bool folder_path(unsigned i, char ret[TENREC_PRIVATE_FOLDER_MAX])
{
    const char *named = i == 0 ? secure_getenv("XDG_RUNTIME_DIR") : NULL;
    const unsigned user = (unsigned)geteuid();
    int n = 0;

    if (i == 0)
        n = named && *named == '/' ? snprintf(ret, TENREC_PRIVATE_FOLDER_MAX, "%s", named) : 0;
    else if (i == 1)
        n = snprintf(ret, TENREC_PRIVATE_FOLDER_MAX, "/run/user/%u", user);
    else if (i == FIRST_IN_TMP)
        n = snprintf(ret, TENREC_PRIVATE_FOLDER_MAX, "/tmp/tenrec-%u", user);
    else
        n = snprintf(ret, TENREC_PRIVATE_FOLDER_MAX, "/tmp/tenrec-%u-%u", user, i - FIRST_IN_TMP);
    return n > 0 && n < TENREC_PRIVATE_FOLDER_MAX;
}

static bool folder_is_own(const char *path)
{
    struct stat st;

    return lstat(path, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid() &&
           (st.st_mode & 0777) == 0700;
}

tenrec_status private_folder(char ret[TENREC_PRIVATE_FOLDER_MAX], tenrec_error *err)
{
    for (unsigned i = 0; i < FOLDERS; i++) {
        if (!folder_path(i, ret))
            continue;
        if (i >= FIRST_IN_TMP && mkdir(ret, 0700) < 0 && errno != EEXIST)
            return tenrec_fail_errno(err, TENREC_EOS, errno, "cannot make '%s'", ret);
        if (folder_is_own(ret))
            return TENREC_OK;
    }
    return tenrec_fail(err, TENREC_EOS,
                       "'/tmp/tenrec-%u' and the names after it are no folders of this user alone "
                       "(mode 0700): remove them, or set XDG_RUNTIME_DIR to one that is",
                       (unsigned)geteuid());
}
