/* SPDX-License-Identifier: Apache-2.0 */
/* process_use.h - the descriptors of this process, and by heap_use its memory. */
#ifndef TENREC_TESTS_PROCESS_USE_H
#define TENREC_TESTS_PROCESS_USE_H

#include "../../tools/conformance/heap_use.h"
#include "../testing.h"

#include <dirent.h>
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
