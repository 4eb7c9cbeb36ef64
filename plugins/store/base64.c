/* SPDX-License-Identifier: Apache-2.0 */
#include "base64.h"

#include <stdlib.h>
#include <string.h>

static const char base64_digits[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

char *base64_encode(const char *head, const void *data, size_t len)
{
    const size_t before = strlen(head), total = before + len;
    char *text = malloc(total / 3 * 4 + 5), *at = text;
    uint32_t bits = 0;

    if (!text)
        return NULL;
    for (size_t i = 0; i < total; i++) {
        bits = bits << 8 | (unsigned char)(i < before ? head[i] : ((const char *)data)[i - before]);
        if (i % 3 == 2)
            for (int shift = 18; shift >= 0; shift -= 6)
                *at++ = base64_digits[bits >> shift & 63];
    }
    if (total % 3 == 1) {
        *at++ = base64_digits[bits >> 2 & 63];
        *at++ = base64_digits[bits << 4 & 63];
    } else if (total % 3 == 2) {
        *at++ = base64_digits[bits >> 10 & 63];
        *at++ = base64_digits[bits >> 4 & 63];
        *at++ = base64_digits[bits << 2 & 63];
    }
    while ((at - text) % 4)
        *at++ = '=';
    *at = '\0';
    return text;
}

static int base64_digit(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

char *base64_decode(const char *text, size_t *ret_len)
{
    size_t len = strlen(text), n = 0;
    uint32_t bits = 0;
    char *data;

    *ret_len = 0;
    if (len % 4)
        return NULL;
    for (int i = 0; i < 2 && len && text[len - 1] == '='; i++)
        len--;
    data = malloc(len / 4 * 3 + 4);
    if (!data) {
        *ret_len = 1;
        return NULL;
    }
    for (size_t i = 0; i < len; i++) {
        const int digit = base64_digit(text[i]);
        if (digit < 0) {
            free(data);
            return NULL;
        }
        bits = bits << 6 | (uint32_t)digit;
        if (i % 4 != 0)
            data[n++] = (char)(bits >> (6 - i % 4 * 2) & 255);
    }
    data[n] = '\0';
    *ret_len = n;
    return data;
}
