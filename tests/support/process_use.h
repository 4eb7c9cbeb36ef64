/* SPDX-License-Identifier: Apache-2.0 */
/* process_use.h - the descriptors and the memory of this process. */
#ifndef TENREC_TESTS_PROCESS_USE_H
#define TENREC_TESTS_PROCESS_USE_H

#include "../testing.h"

#include <dirent.h>
#include <malloc.h>
#include <sys/resource.h>

/* Open descriptors, and the one that counts them. */
static inline unsigned process_descriptors(void)
{
    DIR *d = opendir("/proc/self/fd");
    unsigned n = 0;

    assert_non_null(d);
    for (struct dirent *e = readdir(d); e; e = readdir(d))
        n += e->d_name[0] != '.';
    closedir(d);
    return n;
}

/* Bytes that are allocated; those in the caches of the allocator count. Under a sanitizer a number
 * that does not change. */
static inline size_t process_memory(void)
{
    const struct mallinfo2 m = mallinfo2();

    return m.uordblks + m.hblkhd;
}

/* Returns true if this process may open `n` descriptors, and raises its limit for that. */
static inline bool process_may_open(rlim_t n)
{
    struct rlimit limit;

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    if (limit.rlim_cur < n && limit.rlim_max >= n) {
        limit.rlim_cur = n;
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    }
    return limit.rlim_cur >= n;
}

#endif
