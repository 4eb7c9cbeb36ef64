/* SPDX-License-Identifier: Apache-2.0 */
#include "rule.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <sys/random.h>

#define HASH_NONFATAL_OOM 1 /* out of memory undoes the insertion, no exit */
#define uthash_nonfatal_oom(e) ((e)->count = -1)
#define HASH_FUNCTION(key, len, ret) ((ret) = counts_hash(key))
#include <uthash.h>

struct counts_entry {
    uint64_t key;
    int64_t count;
    UT_hash_handle hh; /* also links the entries, oldest first */
};

static uint64_t counts_mix(uint64_t h)
{
    h = (h ^ (h >> 32)) * 0xd6e8feb86659fd93u;
    return h ^ (h >> 32);
}

/* Peers choose keys, so the place of a key in the map depends on a number that they do not know. */
static unsigned counts_hash(const uint64_t *key)
{
    static _Atomic uint64_t salt;
    uint64_t s = atomic_load_explicit(&salt, memory_order_relaxed), none = 0;

    if (!s) {
        if (getrandom(&s, sizeof s, 0) != (ssize_t)sizeof s)
            s = (uintptr_t)&s;
        s |= 1;
        if (!atomic_compare_exchange_strong(&salt, &none, s))
            s = none; /* another thread's */
    }
    return (unsigned)counts_mix(counts_mix(*key ^ s) * s);
}

/* FNV-1a over words with a final mix: fast, and with 64 bits two of COUNTS_MAX
 * messages hardly ever share a count. */
static uint64_t hash_payload(const struct tenrec_msg *msg)
{
    const uint64_t len =
        msg->key_len && msg->key_len <= msg->payload_len ? msg->key_len : msg->payload_len;
    const unsigned char *p = msg->payload;
    uint64_t h = 0xcbf29ce484222325u ^ len;

    for (uint64_t i = 0; i < len; i += 8) {
        uint64_t word = 0;
        memcpy(&word, p + i, len - i < 8 ? (size_t)(len - i) : 8);
        h = (h ^ word) * 0x9e3779b97f4a7c15u;
        h ^= h >> 29;
    }
    return counts_mix(h);
}

uint64_t counts_key(enum counts_by by, const struct tenrec_msg *msg, tenrec_peer peer)
{
    switch (by) {
    case COUNTS_ALL:
        return 0;
    case COUNTS_PAYLOAD:
        return hash_payload(msg);
    case COUNTS_TYPE:
        return (uint32_t)msg->type;
    case COUNTS_DESTINATION:
        return (uint32_t)peer;
    case COUNTS_TYPE_AND_DESTINATION:
        return (uint64_t)(uint32_t)msg->type << 32 | (uint32_t)peer;
    }
    return 0;
}

int64_t counts_next(struct counts *c, uint64_t key, int64_t limit)
{
    struct counts_entry *e;

    HASH_FIND(hh, c->map, &key, sizeof key, e);
    if (e)
        return e->count < limit ? ++e->count : 0;
    e = malloc(sizeof *e);
    if (!e)
        return -1;
    *e = (struct counts_entry){ .key = key, .count = 1 };
    HASH_ADD(hh, c->map, key, sizeof e->key, e);
    if (e->count < 0) {
        free(e);
        return -1;
    }
    if (HASH_COUNT(c->map) > COUNTS_MAX) {
        struct counts_entry *oldest = c->map;
        HASH_DELETE(hh, c->map, oldest);
        free(oldest);
    }
    return 1;
}

unsigned counts_size(const struct counts *c)
{
    return HASH_COUNT(c->map);
}

void counts_finish(struct counts *c)
{
    struct counts_entry *e, *next;

    HASH_ITER(hh, c->map, e, next)
    {
        HASH_DELETE(hh, c->map, e);
        free(e);
    }
}
