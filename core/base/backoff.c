/* SPDX-License-Identifier: Apache-2.0 */
#include "core/base/clock.h"

uint64_t backoff_next_us(struct backoff *p, uint64_t now_ns, uint64_t deadline_ns)
{
    uint64_t us = p->gap_us, left_us;

    if (deadline_ns != CLOCK_NEVER) {
        if (now_ns >= deadline_ns)
            return 0;
        left_us = (deadline_ns - now_ns + 999) / 1000;
        us = us < left_us ? us : left_us;
    }
    p->gap_us = p->gap_us * 2 < p->most_us ? p->gap_us * 2 : p->most_us;
    return us;
}

void backoff_us(uint64_t us)
{
    nanosleep(&(struct timespec){ .tv_sec = (time_t)(us / 1000000),
                                  .tv_nsec = (long)(us % 1000000) * 1000 },
              NULL);
}

bool backoff_take(struct backoff *p, uint64_t deadline_ns)
{
    const uint64_t us = backoff_next_us(p, clock_now_ns(), deadline_ns);

    if (us > 0)
        backoff_us(us);
    return us > 0;
}
