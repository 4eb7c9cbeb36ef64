/* counts.h - how often each distinct message was failed already. */
#ifndef FAULTY_COUNTS_H
#define FAULTY_COUNTS_H

#include <stdint.h>
#include <tenrec/types.h>

/* What is counted by: a hash of the bytes that say what is called with which
 * arguments, or of the whole payload when its maker marked none. As in torch
 * neither the type nor the receiver takes part. */
uint64_t counts_key(const struct tenrec_msg *msg);

/* torch keeps every payload for ever. This map keeps 16 bytes of each, and at
 * most COUNTS_MAX of them: beyond, the oldest is forgotten, and a message like
 * it counts from the start again. */
#define COUNTS_MAX 65536

struct counts {
    struct counts_entry *map;
};

/* Counts `key` up to `limit`: its new number, or 0 when it was there already.
 * -1: out of memory. */
int64_t counts_next(struct counts *c, uint64_t key, int64_t limit);
unsigned counts_size(const struct counts *c);
void counts_finish(struct counts *c);

#endif
