/* SPDX-License-Identifier: Apache-2.0 */
/* thin.h - which calls of a thread the ring keeps: where short ones follow each other at once, one
 * in THIN_KEEPS, so that the ring reaches back further than some milliseconds, and a call costs
 * less. All others are kept: the failed, the long, and the first after a pause. */
#ifndef TENREC_RECORDER_THIN_H
#define TENREC_RECORDER_THIN_H

#include <stdbool.h>
#include <stdint.h>
#include <tenrec/types.h>

enum { THIN_KEEPS = 8, THIN_SHORT_NS = 20000, THIN_PAUSE_NS = 20000 };

/* Of a thread, and of one side of calls. */
struct thin {
    uint64_t last_ns; /* the end of the call before */
    uint32_t left;    /* calls that are left out before the next */
};

/* A call has ended. */
static inline bool thin_keeps(struct thin *t, uint64_t begun_ns, uint64_t ended_ns,
                              tenrec_status status)
{
    const bool at_once = begun_ns < t->last_ns + THIN_PAUSE_NS;
    const bool is_short = ended_ns < begun_ns + THIN_SHORT_NS;

    t->last_ns = ended_ns;
    if (at_once && is_short && status == TENREC_OK && t->left > 0) {
        t->left--;
        return false;
    }
    t->left = THIN_KEEPS - 1;
    return true;
}

#endif
