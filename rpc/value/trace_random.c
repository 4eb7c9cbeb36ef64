/* SPDX-License-Identifier: Apache-2.0 */
/* trace_random.c - the generator xoroshiro128++ of Blackman and Vigna, one for each thread. */
#include "core/base/fail.h"
#include "rpc/value/trace.h"

#include <errno.h>
#include <stdatomic.h>
#include <sys/random.h>

static _Atomic uint32_t renewed = 1;

static _Thread_local struct {
    uint64_t s[2];
    uint32_t seeded; /* the value of `renewed` at that time; 0: never */
} own;

static inline uint64_t rotate(uint64_t x, int bits)
{
    return x << bits | x >> (64 - bits);
}

/* Out of the way of trace_random: once in each thread. */
static __attribute__((noinline)) bool random_seed(uint32_t now)
{
    ssize_t n;

    do
        n = getrandom(own.s, sizeof own.s, 0);
    while (n < 0 && errno == EINTR);
    own.s[0] |= 1; /* all zeros would stay zeros */
    own.seeded = n == (ssize_t)sizeof own.s ? now : 0;
    return own.seeded != 0;
}

bool trace_random(uint64_t *ret)
{
    const uint32_t now = atomic_load_explicit(&renewed, memory_order_relaxed);
    uint64_t a, b;

    if (unlikely(own.seeded != now) && !random_seed(now))
        return false;
    do {
        a = own.s[0];
        b = own.s[1];
        *ret = rotate(a + b, 17) + a;
        b ^= a;
        own.s[0] = rotate(a, 49) ^ b ^ (b << 21);
        own.s[1] = rotate(b, 28);
    } while (*ret == 0);
    return true;
}

void trace_random_renew(void)
{
    if (atomic_fetch_add(&renewed, 1) == UINT32_MAX)
        atomic_store(&renewed, 1);
}
