/* SPDX-License-Identifier: Apache-2.0 */
/* counts.h - the number of hits of each distinct message. */
#ifndef FAULTY_COUNTS_H
#define FAULTY_COUNTS_H

#include <stdint.h>
#include <tenrec/message.h>

/* Which messages share a count; in the order of COUNTS_WORDS_ALL. */
enum counts_by {
    COUNTS_ALL,     /* all that a rule matches */
    COUNTS_PAYLOAD, /* those of the same bytes, of any type and to any receiver, as in torch */
    COUNTS_TYPE,
    COUNTS_DESTINATION,
    COUNTS_TYPE_AND_DESTINATION,
};

/* The values of the options: without the first, and with it. */
#define COUNTS_WORDS "payload|type|destination|type_and_destination"
#define COUNTS_WORDS_ALL "all|" COUNTS_WORDS

/* Returns the key that counts `msg` to (or from) `peer`. COUNTS_PAYLOAD hashes
 * the bytes that name the function and its arguments (key_len), or all bytes
 * when key_len is 0. */
uint64_t counts_key(enum counts_by by, const struct tenrec_msg *msg, tenrec_peer peer);

/* torch keeps every payload for ever. This map keeps 16 bytes of each, and at
 * most COUNTS_MAX of them: beyond that it drops the oldest, whose count then
 * starts at 0 again. */
#define COUNTS_MAX 65536

struct counts {
    struct counts_entry *map;
};

/* Increments the count of `key`. Returns the new count, 0 if it had reached
 * `limit`, -1 when out of memory. */
int64_t counts_next(struct counts *c, uint64_t key, int64_t limit);
unsigned counts_size(const struct counts *c);
void counts_finish(struct counts *c);

#endif
