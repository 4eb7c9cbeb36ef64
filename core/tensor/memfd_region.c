/* SPDX-License-Identifier: Apache-2.0 */
#include "core/tensor/memfd_region.h"

#include "core/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

size_t memfd_region_page(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

/* Replaces `fd` by a read-only open file of the same memfd. Without /proc that is impossible, and
 * `fd` stays. */
static int make_read_only(int fd)
{
    char path[32];
    int reads;

    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    reads = open(path, O_RDONLY | O_CLOEXEC);
    if (reads < 0)
        return fd;
    fchmod(reads, S_IRUSR); /* prevents opening it for writing again */
    close(fd);
    return reads;
}

tenrec_status memfd_region_make(size_t bytes, enum memfd_region_access access,
                                struct memfd_region *ret, tenrec_error *err)
{
    const size_t mask = memfd_region_page() - 1;
    tenrec_status st;
    void *base;
    int fd;

    if (bytes == 0 || bytes > PTRDIFF_MAX - mask)
        return tenrec_fail(err, TENREC_ENOMEM, "no shared memory of %zu bytes", bytes);
    bytes = (bytes + mask) & ~mask;
    st = memory_file_new("tenrec", bytes, MFD_CLOEXEC, &fd, err);
    if (st != TENREC_OK) {
        tenrec_error_prefix(err, "cannot make shared memory of %zu bytes", bytes);
        return st;
    }
    if (fcntl(fd, F_ADD_SEALS, SEALS) < 0) {
        tenrec_fail_errno(err, TENREC_EOS, errno, "cannot seal shared memory");
        close(fd);
        return TENREC_EOS;
    }
    base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (base == MAP_FAILED) {
        close(fd);
        return tenrec_fail(err, TENREC_ENOMEM, "no memory to map %zu shared bytes", bytes);
    }
    if (access == REGION_READ)
        fd = make_read_only(fd);
    *ret = (struct memfd_region){ base, bytes, fd };
    return TENREC_OK;
}

/* Accepts a memfd, or a file like one, with a sealed size and with pages that the kernel itself
 * provides. Pages of a file system in user space could block us for ever, and huge pages of a pool
 * may be missing when they are touched. */
static tenrec_status memfd_region_check(int fd, struct stat *ret, tenrec_error *err)
{
    const int seals = fcntl(fd, F_GET_SEALS);
    struct statfs fs;

    if (seals < 0 || !(seals & F_SEAL_SHRINK))
        return tenrec_fail(err, TENREC_EPROTOCOL,
                           "shared memory of the peer is not sealed against shrinking");
    if (fstat(fd, ret) < 0 || fstatfs(fd, &fs) < 0)
        return tenrec_fail_errno(err, TENREC_EOS, errno, "cannot stat shared memory");
    if (!S_ISREG(ret->st_mode) || fs.f_type != TMPFS_MAGIC || ret->st_size <= 0)
        return tenrec_fail(err, TENREC_EPROTOCOL, "shared memory of the peer is not a memfd");
    return TENREC_OK;
}

tenrec_status memfd_region_map(int fd, enum memfd_region_access access, struct memfd_region *ret,
                               tenrec_error *err)
{
    const int protection = access == REGION_READ ? PROT_READ : PROT_READ | PROT_WRITE;
    const int kind = access == REGION_PRIVATE ? MAP_PRIVATE | MAP_NORESERVE : MAP_SHARED;
    struct stat st;
    tenrec_status status = memfd_region_check(fd, &st, err);
    void *base;

    if (status != TENREC_OK)
        return status;
    base = mmap(NULL, (size_t)st.st_size, protection, kind, fd, 0);
    if (base == MAP_FAILED && (errno == EACCES || errno == EPERM))
        return tenrec_fail(err, TENREC_EPROTOCOL, "shared memory of the peer cannot be %s",
                           access == REGION_WRITE ? "written" : "read");
    if (base == MAP_FAILED)
        return tenrec_fail_errno(err, TENREC_ENOMEM, errno, "cannot map %lld shared bytes",
                                 (long long)st.st_size);
    *ret = (struct memfd_region){ base, (size_t)st.st_size, fd };
    return TENREC_OK;
}

void memfd_region_restrict(struct memfd_region *r)
{
    r->fd = make_read_only(r->fd);
}

void memfd_region_discard(const struct memfd_region *r, size_t offset, size_t bytes)
{
    const size_t mask = memfd_region_page() - 1;
    const size_t first = (offset + mask) & ~mask, end = (offset + bytes) & ~mask;

    if (first < end)
        madvise(r->base + first, end - first, MADV_REMOVE);
}

tenrec_status memfd_region_forget(const struct memfd_region *r, size_t offset, size_t bytes,
                                  tenrec_error *err)
{
    const size_t mask = memfd_region_page() - 1;

    if (madvise(r->base + offset, (bytes + mask) & ~mask, MADV_DONTNEED) < 0)
        return tenrec_fail_errno(err, TENREC_EOS, errno, "cannot drop private pages");
    return TENREC_OK;
}

void memfd_region_close(struct memfd_region *r)
{
    if (r->base)
        munmap(r->base, r->bytes);
    if (r->base && r->fd >= 0)
        close(r->fd);
    *r = (struct memfd_region){ .fd = -1 };
}
