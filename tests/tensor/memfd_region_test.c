/* SPDX-License-Identifier: Apache-2.0 */
/* Regions: what others may do with them, and what is taken from others. */
#include "../testing.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "core/tensor/memfd_region.h"

enum { BYTES = 8 * 4096 };

static struct memfd_region make(enum memfd_region_access access)
{
    struct memfd_region r;
    tenrec_error err;

    assert_status(memfd_region_make(BYTES - 5, access, &r, &err), &err);
    assert_int_equal(r.bytes, BYTES);
    return r;
}

TEST(region_is_visible_in_another_process)
{
    struct memfd_region own = make(REGION_READ), other;
    tenrec_error err;

    own.base[BYTES - 1] = 'x';
    assert_status(memfd_region_map(dup(own.fd), REGION_READ, &other, &err), &err);
    assert_int_equal(other.bytes, BYTES);
    assert_int_equal(other.base[BYTES - 1], 'x');
    own.base[0] = 'y';
    assert_int_equal(other.base[0], 'y');
    memfd_region_close(&other);
    memfd_region_close(&own);
    memfd_region_close(&own);
}

TEST(region_cannot_be_written_by_readers)
{
    struct memfd_region own = make(REGION_READ), other;
    tenrec_error err;

    assert_int_equal(memfd_region_map(own.fd, REGION_WRITE, &other, &err), TENREC_EPROTOCOL);
    assert_text_has(err.text, "cannot be written");
    assert_true(write(own.fd, "x", 1) < 0);
    memfd_region_close(&own);
}

TEST(region_for_writers_can_be_written)
{
    struct memfd_region own = make(REGION_WRITE), other;
    tenrec_error err;

    assert_status(memfd_region_map(dup(own.fd), REGION_WRITE, &other, &err), &err);
    other.base[3] = 'z';
    assert_int_equal(own.base[3], 'z');
    memfd_region_restrict(&own);
    memfd_region_close(&other);
    assert_int_equal(memfd_region_map(own.fd, REGION_WRITE, &other, &err), TENREC_EPROTOCOL);
    memfd_region_close(&own);
}

TEST(region_cannot_be_cut)
{
    struct memfd_region own = make(REGION_WRITE);

    assert_true(ftruncate(own.fd, 4096) < 0);
    assert_true(ftruncate(own.fd, 100 * BYTES) < 0);
    memfd_region_close(&own);
}

TEST(region_gives_whole_pages_back)
{
    struct memfd_region own = make(REGION_READ);

    memset(own.base, 'a', BYTES);
    memfd_region_discard(&own, 4000, 4096 + 200); /* one whole page of it */
    assert_int_equal(own.base[4095], 'a');
    assert_int_equal(own.base[4096], 0);
    assert_int_equal(own.base[8191], 0);
    assert_int_equal(own.base[8192], 'a');
    memfd_region_close(&own);
}

TEST(region_is_refused_when_not_sealed)
{
    const int fd = memfd_create("cut", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    struct memfd_region r;
    tenrec_error err;

    assert_int_equal(ftruncate(fd, BYTES), 0);
    assert_int_equal(memfd_region_map(fd, REGION_READ, &r, &err), TENREC_EPROTOCOL);
    assert_text_has(err.text, "not sealed");
    close(fd);
}

TEST(region_is_refused_when_not_a_memfd)
{
    int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), line[2];
    struct memfd_region r;

    assert_int_equal(memfd_region_map(fd, REGION_READ, &r, NULL), TENREC_EPROTOCOL);
    close(fd);
    assert_int_equal(pipe(line), 0);
    assert_int_equal(memfd_region_map(line[0], REGION_READ, &r, NULL), TENREC_EPROTOCOL);
    close(line[0]);
    close(line[1]);
    assert_int_equal(memfd_region_map(-1, REGION_READ, &r, NULL), TENREC_EPROTOCOL);
}

TEST(region_is_refused_when_empty)
{
    const int fd = memfd_create("empty", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    struct memfd_region r;

    assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
    assert_int_equal(memfd_region_map(fd, REGION_READ, &r, NULL), TENREC_EPROTOCOL);
    close(fd);
    assert_int_equal(memfd_region_make(0, REGION_READ, &r, NULL), TENREC_ENOMEM);
    assert_int_equal(memfd_region_make(PTRDIFF_MAX, REGION_READ, &r, NULL), TENREC_ENOMEM);
}

TEST(region_reports_a_lack_of_descriptors)
{
    struct rlimit before, none;
    struct memfd_region r;
    tenrec_error err;
    tenrec_status st;

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = (struct rlimit){ 3, before.rlim_max };
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    st = memfd_region_make(BYTES, REGION_READ, &r, &err);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(st, TENREC_EOS);
    assert_int_equal(err.os_errno, EMFILE);
}
