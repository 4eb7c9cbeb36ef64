/* SPDX-License-Identifier: Apache-2.0 */
/* step.c - lists of steps: reading them, and a mutator that keeps them whole.
 *
 * libFuzzer's own mutations shift bytes, after which every later step means something
 * else. These insert, remove, repeat and swap whole steps and change one field of one
 * step; libFuzzer's mutations, with the dictionary, are applied to the data of a step. */
#include "step.h"
#include "fuzz.h"

#include <string.h>

#define LIST_MAX 512

bool step_next(struct fuzz_steps *steps, struct fuzz_step *ret)
{
    const uint8_t *at = steps->at;
    size_t len;

    if (steps->left < STEP_HEAD)
        return false;
    len = (size_t)(at[2] | at[3] << 8) % (STEP_DATA_MAX + 1);
    if (len > steps->left - STEP_HEAD)
        len = steps->left - STEP_HEAD;
    *ret = (struct fuzz_step){ .op = at[0],
                               .who = at[1],
                               .arg = (uint32_t)at[4] | (uint32_t)at[5] << 8 |
                                      (uint32_t)at[6] << 16 | (uint32_t)at[7] << 24,
                               .data = at + STEP_HEAD,
                               .len = len };
    steps->at += STEP_HEAD + len;
    steps->left -= STEP_HEAD + len;
    return true;
}

#ifdef TENREC_FUZZER

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed);
size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t a_len, const uint8_t *b, size_t b_len,
                                 uint8_t *out, size_t max_len, unsigned int seed);

static uint32_t step_random(uint32_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 17;
    *seed ^= *seed << 5;
    return *seed;
}

/* Where each step begins, and behind them the end. Returns their number. */
static size_t step_places(const uint8_t *data, size_t size, size_t place[LIST_MAX + 1])
{
    struct fuzz_steps steps = { data, size };
    struct fuzz_step s;
    size_t n = 0;

    while (n < LIST_MAX) {
        place[n] = (size_t)(steps.at - data);
        if (!step_next(&steps, &s))
            break;
        n++;
    }
    return n;
}

/* Replaces bytes [from, to) by `len` others. Returns the new size. */
static size_t step_splice(uint8_t *data, size_t size, size_t max, size_t from, size_t to,
                          const uint8_t *with, size_t len)
{
    if (size - (to - from) + len > max)
        return size;
    memmove(data + from + len, data + to, size - to);
    if (len)
        memcpy(data + from, with, len);
    return size - (to - from) + len;
}

static size_t step_insert(uint8_t *data, size_t size, size_t max, size_t at, uint32_t *seed)
{
    uint8_t fresh[STEP_HEAD] = { (uint8_t)step_random(seed), (uint8_t)(step_random(seed) % 8) };
    uint32_t arg = step_random(seed);

    /* Small arguments are the sensible ones more often. */
    if (step_random(seed) % 2)
        arg &= step_random(seed) & step_random(seed);
    memcpy(fresh + 4, &arg, sizeof arg);
    return step_splice(data, size, max, at, at, fresh, sizeof fresh);
}

static void step_change_head(uint8_t *head, uint32_t *seed)
{
    const uint32_t r = step_random(seed);

    switch (r % 8) {
    case 0:
        head[0] = (uint8_t)(r >> 8);
        break;
    case 1:
        head[1] = (uint8_t)(r >> 8) % 16;
        break;
    case 2:
        head[4 + (r >> 8) % 4] = (uint8_t)(r >> 16);
        break;
    default:
        head[4 + (r >> 8) % 4] ^= (uint8_t)(1u << (r >> 16) % 8);
    }
}

/* The data of the step at [from, to), by libFuzzer. */
static size_t step_change_data(uint8_t *data, size_t size, size_t max, size_t from, size_t to)
{
    uint8_t bytes[STEP_DATA_MAX];
    size_t len = to - from - STEP_HEAD;
    const size_t was = size;

    memcpy(bytes, data + from + STEP_HEAD, len);
    len = LLVMFuzzerMutate(bytes, len, len + 64 < STEP_DATA_MAX ? len + 64 : STEP_DATA_MAX);
    size = step_splice(data, size, max, from + STEP_HEAD, to, bytes, len);
    if (size != was || len == to - from - STEP_HEAD) {
        data[from + 2] = (uint8_t)len;
        data[from + 3] = (uint8_t)(len >> 8);
    }
    return size;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
    size_t place[LIST_MAX + 1], n = step_places(data, size, place), i, j;
    uint8_t copy[STEP_HEAD + STEP_DATA_MAX];
    uint32_t random = seed | 1;

    size = place[n];
    if (n == 0)
        return step_insert(data, size, max_size, size, &random);
    i = step_random(&random) % n;
    j = step_random(&random) % (n + 1);
    switch (step_random(&random) % 8) {
    case 0:
        return step_insert(data, size, max_size, place[j], &random);
    case 1:
        return n > 1 ? step_splice(data, size, max_size, place[i], place[i + 1], NULL, 0) : size;
    case 2: /* repeats one somewhere else */
        memcpy(copy, data + place[i], place[i + 1] - place[i]);
        return step_splice(data, size, max_size, place[j], place[j], copy, place[i + 1] - place[i]);
    case 3:
    case 4:
        return step_change_data(data, size, max_size, place[i], place[i + 1]);
    default:
        step_change_head(data + place[i], &random);
        return size;
    }
}

/* The beginning of one list and the end of the other. */
size_t LLVMFuzzerCustomCrossOver(const uint8_t *a, size_t a_len, const uint8_t *b, size_t b_len,
                                 uint8_t *out, size_t max_len, unsigned int seed)
{
    size_t place_a[LIST_MAX + 1], place_b[LIST_MAX + 1], head, from, tail;
    size_t n_a = step_places(a, a_len, place_a), n_b = step_places(b, b_len, place_b);
    uint32_t random = seed | 1;

    head = place_a[step_random(&random) % (n_a + 1)];
    from = place_b[step_random(&random) % (n_b + 1)];
    tail = place_b[n_b] - from;
    if (head > max_len)
        head = 0;
    if (tail > max_len - head)
        tail = 0;
    memcpy(out, a, head);
    memcpy(out + head, b + from, tail);
    return head + tail;
}

#endif
