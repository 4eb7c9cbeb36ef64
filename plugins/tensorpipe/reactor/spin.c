/* SPDX-License-Identifier: Apache-2.0 */
#include "reactor/reactor.h"

#define MISSES_MAX 3    /* in a row before spinning is left off for a while */
#define BACKOFF_MIN 16  /* waits without spinning, doubled each time ... */
#define BACKOFF_MAX 512 /* ... up to this */

void spin_ended(struct spin *s, bool paid_off)
{
    if (paid_off) {
        s->misses = s->backoff = 0;
        return;
    }
    if (++s->misses < MISSES_MAX)
        return;
    s->backoff = s->backoff ? 2 * s->backoff : BACKOFF_MIN;
    if (s->backoff > BACKOFF_MAX)
        s->backoff = BACKOFF_MAX;
    s->skip = s->backoff;
}
