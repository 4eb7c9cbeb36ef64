/* SPDX-License-Identifier: Apache-2.0 */
#include "observe/recorder/ring.h"

#include "core/base/fail.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

static _Alignas(64) struct ring_slot ring[RING_SIZE];
static _Alignas(64) _Atomic uint64_t written; /* events so far */
static _Atomic uint64_t forked;               /* of those, of the parent before the fork */

/* Odd, without a pattern: each changed bit changes the upper half of the sum. */
static const uint64_t factor[RING_WORDS] = {
    UINT64_C(0x9e3779b97f4a7c15), UINT64_C(0xbf58476d1ce4e5b9), UINT64_C(0x94d049bb133111eb),
    UINT64_C(0xd6e8feb86659fd93), UINT64_C(0xa0761d6478bd642f), UINT64_C(0xe7037ed1a0b428db),
    UINT64_C(0x8ebc6af09c88c6e3),
};

/* Never 0 for an empty slot: `number` is from 1. */
static uint64_t ring_check(uint64_t number, const uint64_t word[static RING_WORDS])
{
    uint64_t sum = number * UINT64_C(0x589965cc75374cc3);

    for (int i = 0; i < RING_WORDS; i++)
        sum += (word[i] ^ word[i] >> 32) * factor[i];
    return sum;
}

void ring_slot_write(struct ring_slot *s, uint64_t number, const struct ring_event *e)
{
    uint64_t word[RING_WORDS];

    memcpy(word, e, sizeof word);
    for (int i = 0; i < RING_WORDS; i++)
        atomic_store_explicit(&s->word[i], word[i], memory_order_relaxed);
    atomic_store_explicit(&s->word[RING_WORDS], ring_check(number, word), memory_order_relaxed);
}

bool ring_slot_read(struct ring_slot *s, uint64_t number, struct ring_event *ret)
{
    uint64_t word[RING_WORDS];

    for (int i = 0; i < RING_WORDS; i++)
        word[i] = atomic_load_explicit(&s->word[i], memory_order_relaxed);
    memcpy(ret, word, sizeof word);
    return atomic_load_explicit(&s->word[RING_WORDS], memory_order_relaxed) ==
           ring_check(number, word);
}

void ring_set_text(struct ring_event *e, const char *text)
{
    const size_t n = strnlen(text, RING_TEXT + 1);

    memset(e->text, 0, sizeof e->text);
    if (unlikely(n > RING_TEXT))
        text += strlen(text) - RING_TEXT;
    memcpy(e->text, text, n > RING_TEXT ? RING_TEXT : n);
}

uint64_t ring_add(const struct ring_event *e)
{
    const uint64_t number = atomic_fetch_add_explicit(&written, 1, memory_order_relaxed) + 1;

    ring_slot_write(&ring[number % RING_SIZE], number, e);
    __builtin_prefetch(&ring[(number + 1) % RING_SIZE], 1);
    return number;
}

void ring_forked(void)
{
    atomic_store(&forked, atomic_load(&written));
}

size_t ring_read(struct ring_read *ret, size_t *ret_lost)
{
    const uint64_t last = atomic_load(&written), before = atomic_load(&forked);
    uint64_t first = last > RING_SIZE ? last - RING_SIZE + 1 : 1;
    size_t n = 0;

    if (first <= before)
        first = before + 1;
    for (uint64_t number = first; number <= last; number++) {
        ret[n].number = number;
        if (ring_slot_read(&ring[number % RING_SIZE], number, &ret[n].event))
            n++;
    }
    *ret_lost = (size_t)(last + 1 - first) - n;
    return n;
}
