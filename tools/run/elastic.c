/* SPDX-License-Identifier: Apache-2.0 */
#include "run/workers.h"

/* A worker that fails at once must not keep the machine busy, so its restarts are
 * delayed more and more; a failure after a long life starts from the first gap. */
#define FIRST_GAP_NS UINT64_C(100000000)
#define MOST_GAP_NS UINT64_C(5000000000)
#define LONG_LIFE_NS UINT64_C(30000000000)

void elastic_ended_well(struct elastic *e, struct elastic_slot *s)
{
    s->done = true;
    e->done++;
}

static uint64_t gap_of(struct elastic_slot *s, uint64_t now_ns)
{
    uint64_t gap = FIRST_GAP_NS;

    if (now_ns - s->started_ns >= LONG_LIFE_NS)
        s->in_a_row = 0;
    for (unsigned i = 0; i < s->in_a_row && gap < MOST_GAP_NS; i++)
        gap *= 2;
    s->in_a_row++;
    return gap < MOST_GAP_NS ? gap : MOST_GAP_NS;
}

enum elastic_next elastic_failed(struct elastic *e, struct elastic_slot *s, int running,
                                 uint64_t now_ns)
{
    if (s->life < e->plan->restarts) {
        s->again_ns = now_ns + gap_of(s, now_ns);
        e->waiting++;
        return ELASTIC_AGAIN;
    }
    e->lost++;
    /* Slots that are done count: their work is complete. */
    return running + e->waiting + e->done < e->plan->min ? ELASTIC_IS_OVER : ELASTIC_GO_ON;
}

void elastic_again(struct elastic *e, struct elastic_slot *s)
{
    s->again_ns = 0;
    s->life++;
    e->waiting--;
}
