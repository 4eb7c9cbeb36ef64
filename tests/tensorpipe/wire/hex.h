/* SPDX-License-Identifier: Apache-2.0 */
/* hex.h - bytes written as hex in tests, blanks between them allowed. */
#ifndef WIRE_TEST_HEX_H
#define WIRE_TEST_HEX_H

#include "wire/nop.h"
#include <stdlib.h>

struct hex {
    size_t len;
    unsigned char data[4096];
};

static inline struct hex hex(const char *text)
{
    struct hex h = { .len = 0 };

    for (const char *c = text; *c; c++) {
        char two[3] = { c[0], c[1], '\0' };
        if (*c == ' ')
            continue;
        h.data[h.len++] = (unsigned char)strtoul(two, NULL, 16);
        c++;
    }
    return h;
}

/* A copy on the heap of exactly that length, so that a sanitizer sees a read
 * beyond it. The caller frees it. */
static inline void *hex_exact(const void *data, size_t len)
{
    void *copy = malloc(len > 0 ? len : 1);

    if (copy && len > 0)
        memcpy(copy, data, len);
    return copy;
}

#endif
