/* SPDX-License-Identifier: Apache-2.0 */
/* gather.h - reads the texts of the neighbours at once, within one deadline. */
#ifndef PROMETHEUS_GATHER_H
#define PROMETHEUS_GATHER_H

#include "merge.h"
#include "neighbours.h"

#include <stdint.h>

struct gather {
    struct merge_text *text; /* owns, and each text */
    size_t n;
    unsigned missing; /* processes that did not answer in full before the deadline */
};

/* Removes the sockets of processes that have ended. Returns false without memory; gather_finish is
 * due all the same. */
bool gather_texts(const struct neighbours *from, uint32_t timeout_ms, struct gather *ret);
void gather_finish(struct gather *g);

#endif
