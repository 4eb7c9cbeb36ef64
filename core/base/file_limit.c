/* SPDX-License-Identifier: Apache-2.0 */
#include "core/base/file.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>

/* Returns UINT64_MAX for none. */
static uint64_t limit_bytes(void)
{
    struct rlimit l;

    return getrlimit(RLIMIT_FSIZE, &l) == 0 && l.rlim_cur != RLIM_INFINITY ? l.rlim_cur
                                                                           : UINT64_MAX;
}

static tenrec_status limit_tell(uint64_t limit, tenrec_error *err)
{
    tenrec_status st;

    if (limit >= 1u << 20 && limit % (1u << 20) == 0)
        st = tenrec_fail(err, TENREC_EOS, "the limit of file sizes (ulimit -f) is %llu MiB",
                         (unsigned long long)limit >> 20);
    else if (limit % 1024 == 0)
        st = tenrec_fail(err, TENREC_EOS, "the limit of file sizes (ulimit -f) is %llu KiB",
                         (unsigned long long)limit >> 10);
    else
        st = tenrec_fail(err, TENREC_EOS, "the limit of file sizes (ulimit -f) is %llu bytes",
                         (unsigned long long)limit);
    if (err)
        err->os_errno = EFBIG;
    return st;
}

tenrec_status file_limit_check(uint64_t bytes, tenrec_error *err)
{
    const uint64_t limit = limit_bytes();

    return bytes <= limit ? TENREC_OK : limit_tell(limit, err);
}

void file_limit_hold(struct file_limit *l)
{
    sigset_t set, pending;

    l->held = limit_bytes() != UINT64_MAX;
    if (!l->held)
        return;
    sigemptyset(&set);
    sigaddset(&set, SIGXFSZ);
    sigpending(&pending);
    l->pending = sigismember(&pending, SIGXFSZ) == 1;
    pthread_sigmask(SIG_BLOCK, &set, &l->before);
}

void file_limit_release(struct file_limit *l)
{
    const struct timespec now = { 0, 0 };
    const int e = errno;
    sigset_t set;

    if (!l->held)
        return;
    sigemptyset(&set);
    sigaddset(&set, SIGXFSZ);
    if (!l->pending)
        (void)sigtimedwait(&set, NULL, &now); /* raised for this thread, by its own write */
    pthread_sigmask(SIG_SETMASK, &l->before, NULL);
    errno = e;
}

tenrec_status file_limit_fail(tenrec_error *err, int os_errno, const char *fmt, ...)
{
    char where[256];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(where, sizeof where, fmt, ap);
    va_end(ap);
    if (os_errno != EFBIG)
        return tenrec_fail_errno(err, TENREC_EOS, os_errno, "%s", where);
    limit_tell(limit_bytes(), err);
    tenrec_error_prefix(err, "%s", where);
    return TENREC_EOS;
}
