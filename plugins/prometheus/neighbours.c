/* SPDX-License-Identifier: Apache-2.0 */
#include "prometheus.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define SUFFIX ".sock"

/* FNV-1a: the name of a folder for an address, which may hold any bytes. */
static uint64_t address_hash(const char *text)
{
    uint64_t h = 0xcbf29ce484222325u;

    for (; *text; text++)
        h = (h ^ (unsigned char)*text) * 0x100000001b3u;
    return h;
}

static tenrec_status folder_make(const char *path, tenrec_error *err)
{
    struct stat sb;

    if (mkdir(path, 0700) != 0 && errno != EEXIST)
        return tenrec_fail_errno(err, TENREC_EOS, errno, "cannot make '%s'", path);
    if (lstat(path, &sb) != 0)
        return tenrec_fail_errno(err, TENREC_EOS, errno, "cannot read '%s'", path);
    if (!S_ISDIR(sb.st_mode) || sb.st_uid != geteuid() || (sb.st_mode & 0077))
        return tenrec_fail(err, TENREC_EOS,
                           "'%s' is no folder of this user alone (mode 0700): remove it", path);
    return TENREC_OK;
}

tenrec_status neighbours_open(struct neighbours *n, const char *within, const char *address,
                              tenrec_error *err)
{
    static _Atomic unsigned opened;
    char path[sizeof n->folder + 8];
    tenrec_status st;

    snprintf(n->folder, sizeof n->folder, "%s/tenrec-metrics-%016llx", within,
             (unsigned long long)address_hash(address));
    st = folder_make(n->folder, err);
    if (st != TENREC_OK)
        return st;
    snprintf(path, sizeof path, "%s/lock", n->folder);
    n->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (n->lock < 0)
        return tenrec_fail_errno(err, TENREC_EOS, errno, "cannot open '%s'", path);
    n->own = (struct sockaddr_un){ .sun_family = AF_UNIX };
    snprintf(n->own.sun_path, sizeof n->own.sun_path, "%s/%ld-%u" SUFFIX, n->folder, (long)getpid(),
             atomic_fetch_add(&opened, 1));
    return TENREC_OK;
}

void neighbours_close(struct neighbours *n)
{
    unlink(n->own.sun_path);
    close(n->lock);
}

/* A lock of fcntl is the process's: the child of a fork does not keep it. */
static bool lock_set(const struct neighbours *n, short type)
{
    struct flock l = { .l_type = type, .l_whence = SEEK_SET };

    return fcntl(n->lock, F_SETLK, &l) == 0;
}

bool neighbours_lock(const struct neighbours *n)
{
    return lock_set(n, F_WRLCK);
}

void neighbours_unlock(const struct neighbours *n)
{
    lock_set(n, F_UNLCK);
}

void neighbours_each(const struct neighbours *n,
                     void (*fn)(void *arg, const struct sockaddr_un *at), void *arg)
{
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    const struct dirent *e;
    DIR *dir = opendir(n->folder);
    size_t len;

    while (dir && (e = readdir(dir))) {
        len = strlen(e->d_name);
        if (len <= strlen(SUFFIX) || strcmp(e->d_name + len - strlen(SUFFIX), SUFFIX) != 0 ||
            strlen(n->folder) + 1 + len >= sizeof at.sun_path)
            continue;
        snprintf(at.sun_path, sizeof at.sun_path, "%.78s/%.28s", n->folder, e->d_name);
        if (strcmp(at.sun_path, n->own.sun_path) != 0)
            fn(arg, &at);
    }
    if (dir)
        closedir(dir);
}
