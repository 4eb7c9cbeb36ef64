/* SPDX-License-Identifier: Apache-2.0 */
/* lost.h - the callback by which waits in the store detect lost members of a static group. */
#ifndef TENREC_MEMBERSHIP_LOST_H
#define TENREC_MEMBERSHIP_LOST_H

#include <stdbool.h>
#include <stdint.h>

struct group_lost {
    /* Returns true if the member of that rank is known to be dead; may start a check of it.
     * `waited_ms`: since the wait began. */
    bool (*is_lost)(void *arg, int32_t rank, uint64_t waited_ms);
    void *arg;
};

#endif
