/* SPDX-License-Identifier: Apache-2.0 */
/* ring_folder.c - the sockets of rings as files in a folder.
 *
 * A name is unique and random, its file of mode 0600. The file of a process that was killed
 * stays: a connection to it is refused. */
#include "transport/ring/transport_ring.h"
#include "transport/transport_local.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define PREFIX "tenrec_"
#define DIGITS 16
#define NAME_LEN (sizeof PREFIX - 1 + DIGITS)
#define PATH_LEN (sizeof((struct sockaddr_un *)0)->sun_path - 1) /* of a socket, at most */
#define FOLDER_LEN (PATH_LEN - 1 - NAME_LEN)                     /* 83, as in plugin.c */

/* Returns true if no other user can move the files in `at`: the folder itself, or one above it. */
static tenrec_status folder_check_owner(const char *folder, const char *at, tenrec_error *err)
{
    struct stat st;

    if (stat(at, &st) < 0)
        return tenrec_fail_errno(err, TENREC_ECONFIG, errno, "shm_dir \"%s\": cannot read %s",
                                 folder, at);
    if (!S_ISDIR(st.st_mode))
        return tenrec_fail(err, TENREC_ECONFIG, "shm_dir \"%s\": expected a folder", folder);
    if (st.st_uid != geteuid() && st.st_uid != 0)
        return tenrec_fail(
            err, TENREC_ECONFIG,
            "shm_dir \"%s\": %s belongs to user %u, who could replace the sockets in "
            "it; expected a folder of user %u or of root",
            folder, at, (unsigned)st.st_uid, (unsigned)geteuid());
    if ((st.st_mode & (S_IWGRP | S_IWOTH)) && !(st.st_mode & S_ISVTX))
        return tenrec_fail(err, TENREC_ECONFIG,
                           "shm_dir \"%s\": other users may replace the sockets in %s; chmod go-w, "
                           "or chmod +t",
                           folder, at);
    return TENREC_OK;
}

/* The folder with all above it, up to the root. */
static tenrec_status folder_check(const char *folder, tenrec_error *err)
{
    char at[PATH_MAX];
    tenrec_status st;
    size_t len;

    if (!realpath(folder, at))
        return tenrec_fail_errno(err, TENREC_ECONFIG, errno,
                                 "shm_dir \"%s\": expected a folder that exists; make or mount it "
                                 "first",
                                 folder);
    st = folder_check_owner(folder, at, err);
    if (st == TENREC_OK && faccessat(AT_FDCWD, at, W_OK | X_OK, AT_EACCESS) < 0)
        st = tenrec_fail_errno(err, TENREC_ECONFIG, errno,
                               "shm_dir \"%s\": user %u cannot make a socket in it", folder,
                               (unsigned)geteuid());
    for (len = strlen(at); st == TENREC_OK && len > 1;) {
        while (at[len - 1] != '/')
            len--;
        len -= len > 1; /* the root keeps its slash */
        at[len] = '\0';
        st = folder_check_owner(folder, at, err);
    }
    return st;
}

tenrec_status ring_folder_check_path(const char *folder, tenrec_error *err)
{
    if (*folder != '/')
        return tenrec_fail(err, TENREC_ECONFIG, "shm_dir \"%s\": expected an absolute path",
                           folder);
    if (strlen(folder) > FOLDER_LEN)
        return tenrec_fail(err, TENREC_ECONFIG,
                           "shm_dir \"%s\": a path of %zu bytes; expected at most %zu, since that "
                           "of a Unix socket in it has at most %zu",
                           folder, strlen(folder), FOLDER_LEN, PATH_LEN);
    return TENREC_OK;
}

tenrec_status ring_folder_listen(const struct tp_options *o, int *ret_fd,
                                 char ret_address[TRANSPORT_TEXT_MAX], tenrec_error *err)
{
    union transport_address name = { .local = { .sun_family = AF_UNIX } }, at;
    tenrec_status st = folder_check(o->shm_dir, err);
    uint64_t number;
    int e;

    if (st != TENREC_OK)
        return st;
    if (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number)
        return tenrec_fail_errno(err, TENREC_EOS, errno, "no random name for a Unix socket");
    snprintf(name.local.sun_path, sizeof name.local.sun_path, PREFIX "%016" PRIx64, number);
    ring_folder_join(o->shm_dir, &name, &at);
    e = local_open(&at.local, sizeof at.local, ret_fd);
    if (e)
        return tenrec_fail_errno(err, TENREC_EOS, e, "cannot listen at %s", at.local.sun_path);
    snprintf(ret_address, TRANSPORT_TEXT_MAX, "%s", name.local.sun_path);
    return TENREC_OK;
}

/* Nothing but such a name: a peer must not lead out of the folder. */
static bool folder_has_named(const char *text, size_t len)
{
    if (len != NAME_LEN || memcmp(text, PREFIX, sizeof PREFIX - 1) != 0)
        return false;
    for (size_t i = sizeof PREFIX - 1; i < len; i++)
        if ((text[i] < '0' || text[i] > '9') && (text[i] < 'a' || text[i] > 'f'))
            return false;
    return true;
}

tenrec_status ring_folder_parse(const char *text, size_t len, union transport_address *ret,
                                tenrec_error *err)
{
    if (!folder_has_named(text, len))
        return tenrec_fail(err, TENREC_EINVAL,
                           "address \"%.*s\": expected the name of a socket in shm_dir, " PREFIX
                           " and %d hexadecimal digits",
                           (int)(len < 80 ? len : 80), text, DIGITS);
    *ret = (union transport_address){ .local = { .sun_family = AF_UNIX } };
    memcpy(ret->local.sun_path, text, len);
    return TENREC_OK;
}

void ring_folder_join(const char *folder, const union transport_address *name,
                      union transport_address *ret)
{
    *ret = (union transport_address){ .local = { .sun_family = AF_UNIX } };
    snprintf(ret->local.sun_path, sizeof ret->local.sun_path, "%.*s/%.*s", (int)FOLDER_LEN, folder,
             (int)NAME_LEN, name->local.sun_path);
}
