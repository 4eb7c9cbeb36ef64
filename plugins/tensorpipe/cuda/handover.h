/* SPDX-License-Identifier: Apache-2.0 */
/* handover.h - memory of devices that agents of one process lend each other.
 *
 * What travels is a number, never an address: a peer that names what was not lent,
 * or was taken already, gets nothing. Of the process; of any thread. */
#ifndef TENSORPIPE_CUDA_HANDOVER_H
#define TENSORPIPE_CUDA_HANDOVER_H

#include "cuda/device.h"

enum handover_state { HANDOVER_OFFERED, HANDOVER_TAKEN, HANDOVER_RETURNED };

struct handover {
    struct handover *next; /* under the lock of handover.c, as state */
    enum handover_state state;
    uint64_t number, bytes;
    const void *data;
    struct device_event *event;
};

/* `bytes` at `data`, which are valid after `event`. Both belong to the lender until the handover
 * has ended. NULL: out of memory. */
struct handover *handover_offer(const void *data, uint64_t bytes, struct device_event *event);
/* Returns true if no borrower has the memory, or has it any more: then the handover is freed. */
bool handover_end(struct handover *l, bool withdraw);

/* The borrower's side. NULL: no memory of that number and length is offered. */
struct handover *handover_take(uint64_t number, uint64_t bytes);
void handover_return(struct handover *l);

#endif
