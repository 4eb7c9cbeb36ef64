/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz.h - what each fuzz target defines, and what all of them use. */
#ifndef TENREC_TESTS_FUZZ_H
#define TENREC_TESTS_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Reads `len` bytes as the reader under test would from outside; returns 0.
 * A finding is a crash, a sanitizer report or an endless loop. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* A finding that no sanitizer would see. */
static inline void fuzz_expect(bool holds)
{
    if (!holds)
        abort();
}

/* All of it must be readable: a sanitizer sees a byte that is not. */
static inline void fuzz_touch(const void *data, size_t len)
{
    const volatile uint8_t *at = data;

    if (len) {
        (void)at[0];
        (void)at[len / 2];
        (void)at[len - 1];
    }
}

/* An input that is taken from its front. */
struct fuzz_input {
    const uint8_t *at;
    size_t len;
};

/* The next `bytes` bytes as a number, little endian; those behind the end are 0. */
static inline uint64_t fuzz_take(struct fuzz_input *in, size_t bytes)
{
    uint64_t v = 0;

    if (bytes > in->len)
        bytes = in->len;
    for (size_t i = 0; i < bytes; i++)
        v |= (uint64_t)in->at[i] << 8 * i;
    in->at += bytes;
    in->len -= bytes;
    return v;
}

/* A byte that says how many follow, and these. */
static inline struct fuzz_input fuzz_take_bytes(struct fuzz_input *in)
{
    struct fuzz_input ret;
    size_t len = (size_t)fuzz_take(in, 1);

    if (len > in->len)
        len = in->len;
    ret = (struct fuzz_input){ in->at, len };
    in->at += len;
    in->len -= len;
    return ret;
}

#endif
