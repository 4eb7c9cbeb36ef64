/* SPDX-License-Identifier: Apache-2.0 */
#include "secret/private_file.h"

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
