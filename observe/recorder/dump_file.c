/* SPDX-License-Identifier: Apache-2.0 */
#include "observe/recorder/reporter.h"

#include "core/base/clock.h"
#include "core/base/file.h"
#include "observe/recorder/dump.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool dump_file_due(uint64_t now_ns)
{
    static _Atomic uint64_t next_ns;
    uint64_t next = atomic_load(&next_ns);

    return now_ns >= next && atomic_compare_exchange_strong(
                                 &next_ns, &next, now_ns + DUMP_PAUSE_S * UINT64_C(1000000000));
}

/* The names of workers hold letters, digits, '_', ':' and '-', none of them special in a path. */
static bool dump_file_path(const char *folder, const char *worker, char ret[static DUMP_PATH_MAX])
{
    char when[32];
    struct timespec now;
    struct tm tm;
    int n;

    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &tm);
    strftime(when, sizeof when, "%Y%m%dT%H%M%S", &tm);
    n = snprintf(ret, DUMP_PATH_MAX, "%s/tenrec-%s-%d-%s.%03ldZ.json", folder, worker,
                 (int)getpid(), when, now.tv_nsec / 1000000);
    return n > 0 && n < DUMP_PATH_MAX;
}

tenrec_status dump_file_write(const char *folder, const char *worker,
                              char ret[static DUMP_PATH_MAX], tenrec_error *err)
{
    struct dump d;
    tenrec_status st;

    if (!dump_file_path(folder, worker, ret))
        return tenrec_fail(err, TENREC_EOS, "the path of a file in '%.200s' is too long", folder);
    st = dump_make(&d, NULL, false, err);
    if (st == TENREC_OK)
        st = private_file_write(ret, PRIVATE_FILE_NEW, d.trace, d.trace_len, err);
    dump_finish(&d);
    return st;
}
