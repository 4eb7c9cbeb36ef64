/* SPDX-License-Identifier: Apache-2.0 */
/* lost.h - how waits in the store learn of lost members of a static group. */
#ifndef TENREC_GROUP_LOST_H
#define TENREC_GROUP_LOST_H

#include <stdbool.h>
#include <stdint.h>

struct group_lost {
    /* Returns true if the member of that rank is known to be dead; may begin to find out. It
     * has been waited for so long. */
    bool (*is_lost)(void *arg, int32_t rank, uint64_t waited_ms);
    void *arg;
};

#endif
