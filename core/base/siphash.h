/* SPDX-License-Identifier: Apache-2.0 */
/* siphash.h - SipHash-2-4: a keyed hash for bytes from strangers, which cannot make them
 * collide without the key. */
#ifndef TENREC_BASE_SIPHASH_H
#define TENREC_BASE_SIPHASH_H

#include <stddef.h>
#include <stdint.h>

struct siphash_key {
    uint64_t k[2];
};

/* Draws a key from the kernel. */
struct siphash_key siphash_draw(void);

uint64_t siphash(const struct siphash_key *key, const void *data, size_t len);

#endif
