/* SPDX-License-Identifier: Apache-2.0 */
/* shm_ring.c - memory that two processes share, and markers in it. */
#include "transport/tp_shm/shm_ring.h"
#include "transport/transport_local.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

_Static_assert(sizeof(struct shm_ring_header) == 40, "the header of every TensorPipe peer");
_Static_assert(offsetof(struct shm_ring_header, marker) == 24, "the place of the markers");
_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2, "a lock would not be shared");

void shm_files_close(int *fd, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        if (fd[i] >= 0)
            close(fd[i]);
        fd[i] = -1;
    }
}

/* Both files; false: errno says why. */
static bool map_both(struct shm_ring *r, const int fd[SHM_FILES])
{
    void *header, *data;

    header = mmap(NULL, sizeof *r->header, PROT_READ | PROT_WRITE, MAP_SHARED, fd[SHM_HEADER], 0);
    if (header == MAP_FAILED)
        return false;
    data = mmap(NULL, (size_t)r->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd[SHM_DATA], 0);
    if (data == MAP_FAILED) {
        int e = errno;

        munmap(header, sizeof *r->header);
        errno = e;
        return false;
    }
    r->header = header;
    r->data = data;
    return true;
}

tenrec_status shm_ring_make(struct shm_ring *ret, enum shm_role role, uint64_t size,
                            int ret_fd[SHM_FILES], tenrec_error *err)
{
    struct shm_ring r = { .size = size, .role = role };
    int e, fd[SHM_FILES] = { -1, -1 };

    assert(size && (size & (size - 1)) == 0 && size <= SHM_RING_MAX);
    fd[SHM_HEADER] = local_memory_new("tenrec_shm", sizeof *r.header);
    fd[SHM_DATA] = local_memory_new("tenrec_shm", size);
    if (fd[SHM_HEADER] < 0 || fd[SHM_DATA] < 0 || !map_both(&r, fd)) {
        e = errno;
        shm_files_close(fd, SHM_FILES);
        return tenrec_fail_errno(err, e == ENOMEM ? TENREC_ENOMEM : TENREC_EOS, e,
                                 "cannot make a ring of %llu bytes in shared memory",
                                 (unsigned long long)size);
    }
    r.header->size = size;
    r.header->mask = size - 1;
    memcpy(ret_fd, fd, sizeof fd);
    *ret = r;
    return TENREC_OK;
}

/* The size of a file that really is in memory: a read of another one could
 * hang or fail. */
static tenrec_status size_of(int fd, const char *what, uint64_t *ret, tenrec_error *err)
{
    struct statfs fs;
    struct stat st;

    /* First, for it asks no file system: one in user space can block the calls below. */
    if (fcntl(fd, F_GET_SEALS) < 0)
        return tenrec_fail(err, TENREC_EPROTOCOL, "the %s of a ring is not a file in memory", what);
    if (fstat(fd, &st) < 0 || fstatfs(fd, &fs) < 0)
        return tenrec_fail_errno(err, TENREC_EOS, errno, "cannot look at the %s of a ring", what);
    if (!S_ISREG(st.st_mode) || fs.f_type != TMPFS_MAGIC)
        return tenrec_fail(err, TENREC_EPROTOCOL, "the %s of a ring is not a file in memory", what);
    *ret = (uint64_t)st.st_size;
    return TENREC_OK;
}

tenrec_status shm_ring_map(struct shm_ring *ret, enum shm_role role, const int fd[SHM_FILES],
                           tenrec_error *err)
{
    struct shm_ring r = { .role = role };
    uint64_t header_size = 0, size, mask;
    tenrec_status st;

    st = size_of(fd[SHM_HEADER], "header", &header_size, err);
    if (!st)
        st = size_of(fd[SHM_DATA], "data", &r.size, err);
    if (st)
        return st;
    if (header_size != sizeof *r.header)
        return tenrec_fail(err, TENREC_EPROTOCOL, "a ring's header of %llu bytes, expected %zu",
                           (unsigned long long)header_size, sizeof *r.header);
    if (r.size < sizeof(uint32_t) || (r.size & (r.size - 1)) || r.size > SHM_RING_MAX)
        return tenrec_fail(err, TENREC_EPROTOCOL,
                           "a ring of %llu bytes, expected a power of two up to %llu",
                           (unsigned long long)r.size, (unsigned long long)SHM_RING_MAX);
    if (!map_both(&r, fd))
        return tenrec_fail_errno(err, errno == ENOMEM ? TENREC_ENOMEM : TENREC_EOS, errno,
                                 "cannot map a ring of %llu bytes", (unsigned long long)r.size);
    size = r.header->size;
    mask = r.header->mask;
    if (size != r.size || mask != r.size - 1) {
        st = tenrec_fail(err, TENREC_EPROTOCOL,
                         "a ring's header says %llu bytes and mask %llx, its data has %llu",
                         (unsigned long long)size, (unsigned long long)mask,
                         (unsigned long long)r.size);
        shm_ring_unmap(&r);
        return st;
    }
    r.own = atomic_load(&r.header->marker[role]);
    *ret = r;
    return TENREC_OK;
}

void shm_ring_unmap(struct shm_ring *r)
{
    if (!r->header)
        return;
    munmap(r->header, sizeof *r->header);
    munmap(r->data, (size_t)r->size);
    r->header = NULL;
}

bool shm_ring_available(const struct shm_ring *r, uint64_t *ret)
{
    const enum shm_role theirs = r->role == SHM_CONSUMER ? SHM_PRODUCER : SHM_CONSUMER;
    /* Acquire: what the marker covers is seen, and what it frees is unused. */
    const uint64_t other = atomic_load_explicit(&r->header->marker[theirs], memory_order_acquire);
    const uint64_t between = r->role == SHM_CONSUMER ? other - r->own : r->own - other;

    *ret = r->role == SHM_CONSUMER ? between : r->size - between;
    return between <= r->size;
}

void shm_ring_get(const struct shm_ring *r, uint64_t offset, void *to, size_t len)
{
    size_t at = (size_t)((r->own + offset) & (r->size - 1)), first = (size_t)r->size - at;

    if (first > len)
        first = len;
    memcpy(to, r->data + at, first);
    memcpy((unsigned char *)to + first, r->data, len - first);
}

void shm_ring_put(const struct shm_ring *r, uint64_t offset, const void *from, size_t len)
{
    size_t at = (size_t)((r->own + offset) & (r->size - 1)), first = (size_t)r->size - at;

    if (first > len)
        first = len;
    memcpy(r->data + at, from, first);
    memcpy(r->data, (const unsigned char *)from + first, len - first);
}

void shm_ring_advance(struct shm_ring *r, uint64_t len)
{
    r->own += len;
    atomic_store_explicit(&r->header->marker[r->role], r->own, memory_order_release);
}
