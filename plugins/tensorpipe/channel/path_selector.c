/* SPDX-License-Identifier: Apache-2.0 */
#include "channel/path_selector.h"

#define CLASS_SHIFT 19 /* the first class ends at twice this power of two */
#define MIB ((uint64_t)1 << 20)
#define FIRST 4  /* both in turns; the first time, memory is not there yet */
#define AGAIN 32 /* messages before the other way has its turn, at least */
#define EARLY_TURNS                                                                                \
    3 /* of a way that is less than twice as slow, after FIRST messages, 2 * FIRST ... */
#define AGAIN_MAX 4096 /* and at most */

static unsigned path_class(uint64_t len)
{
    unsigned k = 0;

    for (len >>= CLASS_SHIFT + 1; len && k < PATH_CLASSES - 1; len >>= 1)
        k++;
    return k;
}

/* How often the worse way has its turn: as seldom as makes that cost a thirtieth. Sooner at
 * first: whatever disturbed both of its tries would else cost half the speed for long. */
static uint64_t path_turn(const uint64_t *ns, enum copier best, unsigned turns)
{
    const uint64_t n = AGAIN * (ns[!best] - ns[best]) / ns[best];

    if (n < AGAIN)
        return FIRST << turns;
    return n > AGAIN_MAX ? AGAIN_MAX : n;
}

enum copier path_choose(struct path_selector *w, uint64_t len, bool timed)
{
    const unsigned class = path_class(len);
    const uint64_t *ns = w->of[class].ns;
    const enum copier best = ns[BY_BOTH] && ns[BY_BOTH] < ns[BY_RECEIVER] ? BY_BOTH : BY_RECEIVER;

    if (!timed)
        return best;
    if (w->of[class].tried < FIRST)
        return w->of[class].tried % 2 ? BY_BOTH : BY_RECEIVER;
    if (++w->of[class].n < path_turn(ns, best, w->of[class].turns))
        return best;
    w->of[class].n = 0;
    if (w->of[class].turns < EARLY_TURNS)
        w->of[class].turns++;
    return best == BY_BOTH ? BY_RECEIVER : BY_BOTH;
}

void path_note(struct path_selector *w, enum copier way, uint64_t len, uint64_t ns)
{
    const unsigned class = path_class(len);
    uint64_t *kept = &w->of[class].ns[way];
    uint64_t now = (uint64_t)((double)ns * (double)MIB / (double)len) + 1;

    if (w->of[class].tried < FIRST)
        w->of[class].tried++;
    /* One that was held up by something else says little. */
    if (*kept && now > 2 * *kept)
        now = 2 * *kept;
    *kept = *kept && now > *kept ? (*kept + now) / 2 : now;
}
