/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/ring/ring.h"

#include <stdint.h>

#ifdef __SSE2__
#include <emmintrin.h>

#define LINE 64

void copy_past_caches(void *restrict to, const void *restrict from, size_t len)
{
    unsigned char *d = to;
    const unsigned char *s = from;
    size_t odd = (size_t)(-(uintptr_t)d & (LINE - 1));

    if (len < 4 * (size_t)LINE) {
        memcpy(d, s, len);
        return;
    }
    memcpy(d, s, odd);
    for (d += odd, s += odd, len -= odd; len >= LINE; d += LINE, s += LINE, len -= LINE) {
        const __m128i a = _mm_loadu_si128((const __m128i *)(const void *)s);
        const __m128i b = _mm_loadu_si128((const __m128i *)(const void *)(s + 16));
        const __m128i c = _mm_loadu_si128((const __m128i *)(const void *)(s + 32));
        const __m128i e = _mm_loadu_si128((const __m128i *)(const void *)(s + 48));

        _mm_stream_si128((__m128i *)(void *)d, a);
        _mm_stream_si128((__m128i *)(void *)(d + 16), b);
        _mm_stream_si128((__m128i *)(void *)(d + 32), c);
        _mm_stream_si128((__m128i *)(void *)(d + 48), e);
    }
    /* They are not ordered with other stores by themselves. */
    _mm_sfence();
    memcpy(d, s, len);
}

#else

void copy_past_caches(void *restrict to, const void *restrict from, size_t len)
{
    memcpy(to, from, len);
}

#endif
