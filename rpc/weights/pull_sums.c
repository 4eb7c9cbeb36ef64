/* SPDX-License-Identifier: Apache-2.0 */
/* pull_sums.c - the checksums of a pull, which are computed while its bytes are still in the
 * caches. */
#include "rpc/weights/pull.h"

#include "core/base/memory.h"

#include <stdlib.h>
#include <string.h>

static bool sums_compares(const struct piece *have, const struct piece *want)
{
    return have->bytes > 0 && strcmp(have->name, want->name) == 0 && piece_is_in(have, want);
}

/* Returns how many there are; ret: has room for all, or is NULL. */
static size_t sums_list(const struct pull *p, struct pull_sum *ret)
{
    uint64_t begin = 0;
    size_t n = 0;

    for (size_t k = 0; k < p->n; begin += p->h->piece[k++].bytes)
        for (size_t i = 0; i < p->n_have; i++) {
            if (!sums_compares(&p->have[i], &p->h->piece[k]))
                continue;
            if (ret)
                ret[n] = (struct pull_sum){ .have = &p->have[i],
                                            .want = &p->h->piece[k],
                                            .tensor = p->h->memory[k].tensor,
                                            .begin = begin };
            n++;
        }
    return n;
}

tenrec_status sums_make(struct pull_sums *s, const struct pull *p, tenrec_error *err)
{
    const size_t n = sums_list(p, NULL);

    *s = (struct pull_sums){ .sum = memory_new(n + 1, sizeof *s->sum) };
    if (!s->sum)
        return memory_fail(err);
    s->n = sums_list(p, s->sum);
    return TENREC_OK;
}

void sums_finish(struct pull_sums *s)
{
    for (size_t i = 0; i < s->n; i++)
        piece_sum_drop(&s->sum[i].sum);
    free(s->sum);
    tenrec_tensor_drop(s->copy);
    *s = (struct pull_sums){ 0 };
}

/* The memory of the wanted box in the host; NULL: a box on a device that has not arrived whole. */
static tenrec_status sum_memory(struct pull_sums *s, const struct pull_sum *one, uint64_t arrived,
                                const void **ret, tenrec_error *err)
{
    const bool copies = tenrec_tensor_desc(one->tensor)->device.kind != TENREC_CPU;
    tenrec_status st = TENREC_OK;

    *ret = NULL;
    if (copies && arrived < one->want->bytes)
        return TENREC_OK;
    if (copies && s->copied != one->want) {
        tenrec_tensor_drop(s->copy);
        s->copied = one->want;
        st = piece_tensor_in_host(one->tensor, &s->copy, err);
    }
    if (st == TENREC_OK)
        *ret = tenrec_tensor_data(copies ? s->copy : one->tensor);
    return st;
}

/* `arrived`: bytes from the begin of the wanted box on. */
static tenrec_status sum_add(struct pull_sums *s, struct pull_sum *one, uint64_t arrived,
                             tenrec_error *err)
{
    const void *memory;
    tenrec_status st = sum_memory(s, one, arrived, &memory, err);

    if (!memory)
        return st;
    if (!one->sum.hash && !piece_sum_begin(&one->sum))
        return memory_fail(err);
    if (!piece_sum_add(&one->sum, one->have, one->want, memory, arrived))
        return TENREC_OK;
    one->over = true;
    if (piece_sum_end(&one->sum) != one->have->checksum && !s->wrong)
        s->wrong = one->want;
    return TENREC_OK;
}

tenrec_status sums_add(struct pull_sums *s, uint64_t arrived, tenrec_error *err)
{
    tenrec_status st = TENREC_OK;

    for (size_t i = s->first; i < s->n && s->sum[i].begin < arrived && st == TENREC_OK; i++)
        if (!s->sum[i].over)
            st = sum_add(s, &s->sum[i], arrived - s->sum[i].begin, err);
    while (s->first < s->n && s->sum[s->first].over)
        s->first++;
    return st;
}
