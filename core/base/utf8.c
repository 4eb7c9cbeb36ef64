/* SPDX-License-Identifier: Apache-2.0 */
#include "core/base/text.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define EIGHT_HIGH_BITS UINT64_C(0x8080808080808080)

static bool utf8_follows(unsigned char c)
{
    return (c & 0xc0) == 0x80;
}

/* Bytes of the character at `s`; 0 if the character is malformed or cut. */
static size_t utf8_char_size(const unsigned char *s, size_t n)
{
    if (s[0] < 0x80)
        return 1;
    if (s[0] < 0xc2 || s[0] > 0xf4)
        return 0;
    if (s[0] < 0xe0)
        return n >= 2 && utf8_follows(s[1]) ? 2 : 0;
    if (s[0] < 0xf0) {
        if (n < 3 || !utf8_follows(s[1]) || !utf8_follows(s[2]))
            return 0;
        if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f))
            return 0;
        return 3;
    }
    if (n < 4 || !utf8_follows(s[1]) || !utf8_follows(s[2]) || !utf8_follows(s[3]))
        return 0;
    if ((s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
        return 0;
    return 4;
}

static bool utf8_eight_ascii(const unsigned char *s)
{
    uint64_t eight;

    memcpy(&eight, s, sizeof eight);
    return !(eight & EIGHT_HIGH_BITS);
}

/* For texts of less than eight bytes; some bytes may be checked twice. */
static bool utf8_short_ascii(const unsigned char *s, size_t n)
{
    uint32_t first, last;

    if (n == 0)
        return true;
    if (n < 4)
        return (s[0] | s[n / 2] | s[n - 1]) < 0x80;
    memcpy(&first, s, sizeof first);
    memcpy(&last, s + n - sizeof last, sizeof last);
    return !((first | last) & (uint32_t)EIGHT_HIGH_BITS);
}

size_t utf8_span(const void *text, size_t n)
{
    const unsigned char *s = text;
    size_t at = 0, step;

    if (n < 8 && utf8_short_ascii(s, n))
        return n;
    /* Nearly all text is ASCII; the last load overlaps bytes that are checked already. */
    while (n - at >= 8 && utf8_eight_ascii(s + at))
        at += 8;
    if (at > 0 && n - at < 8 && utf8_eight_ascii(s + n - 8))
        return n;
    while (at < n) {
        if (n - at >= 8 && utf8_eight_ascii(s + at)) {
            at += 8;
            continue;
        }
        if (s[at] < 0x80) {
            at++;
            continue;
        }
        step = utf8_char_size(s + at, n - at);
        if (!step)
            return at;
        at += step;
    }
    return n;
}

size_t utf8_clean(const void *text, size_t n, char *to, size_t room)
{
    const unsigned char *s = text;
    size_t at = 0, len = 0;

    while (at < n) {
        size_t step = utf8_char_size(s + at, n - at);
        bool bad = !step || (s[at] < 0x20 && s[at] != '\n' && s[at] != '\t') || s[at] == 0x7f;

        if (bad)
            step = 1;
        if (len + step >= room)
            break;
        if (bad)
            to[len] = '?';
        else
            memcpy(to + len, s + at, step);
        at += step;
        len += step;
    }
    to[len] = '\0';
    return len;
}
