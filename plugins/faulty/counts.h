/* SPDX-License-Identifier: Apache-2.0 */
/* counts.h - how often each distinct message was hit already. */
#ifndef FAULTY_COUNTS_H
#define FAULTY_COUNTS_H

#include <stdint.h>
#include <tenrec/types.h>

/* Which messages share a count. */
enum counts_by {
    COUNTS_ALL,     /* all that a rule means */
    COUNTS_PAYLOAD, /* of the same bytes, as in torch: neither type nor receiver counts */
    COUNTS_TYPE,
    COUNTS_DESTINATION,
    COUNTS_TYPE_AND_DESTINATION,
};

/* The words of an option, in this order without the first, and with it. */
#define COUNTS_WORDS "payload|type|destination|type_and_destination"
#define COUNTS_WORDS_ALL "all|" COUNTS_WORDS

/* What `word`, one of these, means. */
enum counts_by counts_by(const char *word);

/* What `msg` to (or from) `peer` is counted under. Of a payload it is a hash
 * of the bytes that say what is called with which arguments, or of all bytes
 * when its maker marked none. */
uint64_t counts_key(enum counts_by by, const struct tenrec_msg *msg, tenrec_peer peer);

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
