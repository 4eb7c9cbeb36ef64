/* SPDX-License-Identifier: Apache-2.0 */
#include "core/base/file.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 0x0008U /* since Linux 6.3, of which some refuse a call without it */
#endif

tenrec_status memory_file_new(const char *name, size_t bytes, unsigned flags, int *ret,
                              tenrec_error *err)
{
    const unsigned all = flags | MFD_ALLOW_SEALING;
    tenrec_status st = file_limit_check(bytes, err);
    int fd = -1;

    if (st == TENREC_OK) {
        fd = memfd_create(name, all | MFD_NOEXEC_SEAL);
        if (fd < 0 && errno == EINVAL)
            fd = memfd_create(name, all);
        if (fd < 0 || ftruncate(fd, (off_t)bytes) < 0)
            st = tenrec_fail_errno(err, TENREC_EOS, errno, "memfd_create");
    }
    if (st == TENREC_OK)
        *ret = fd;
    else if (fd >= 0)
        close(fd);
    return st;
}
