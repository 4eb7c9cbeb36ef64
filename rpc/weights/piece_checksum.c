/* SPDX-License-Identifier: Apache-2.0 */
/* piece_checksum.c - checksums of boxes: XXH3 of the elements in their order, so that they are the
 * same in any memory. */
#include "rpc/weights/piece.h"

#include "core/tensor/tensor.h"

#ifdef TENREC_HAVE_XXH_DISPATCH /* takes the widest instructions of the processor */
#include <xxh_x86dispatch.h>
#else
#include <xxhash.h>
#endif

uint64_t piece_hash(const void *data, size_t n, uint64_t seed)
{
    return XXH3_64bits_withSeed(data, n, seed);
}

bool piece_is_in(const struct piece *p, const struct piece *in)
{
    for (uint32_t d = 0; d < p->ndim; d++)
        if (p->at[d] < in->at[d] || p->at[d] + p->extent[d] > in->at[d] + in->extent[d])
            return false;
    return true;
}

bool piece_sum_begin(struct piece_sum *s)
{
    s->hash = XXH3_createState();
    return s->hash && XXH3_64bits_reset(s->hash) == XXH_OK;
}

void piece_sum_drop(struct piece_sum *s)
{
    XXH3_freeState(s->hash);
    s->hash = NULL;
}

/* Bytes of `p` that are side by side in the memory of `in`: a run covers dimension *ret_outer and
 * those behind it. */
static uint64_t sum_run_bytes(const struct piece *p, const struct piece *in, uint32_t *ret_outer)
{
    uint64_t bytes = dtype_bytes(p->dtype);
    uint32_t d = p->ndim;

    while (d > 0) {
        bytes *= (uint64_t)p->extent[--d];
        if (p->extent[d] != in->extent[d])
            break;
    }
    *ret_outer = d;
    return bytes;
}

/* The offset of a run in the memory of `in`. */
static uint64_t sum_run_offset(const struct piece *p, const struct piece *in, uint32_t outer,
                               uint64_t run)
{
    uint64_t at = 0, stride = dtype_bytes(p->dtype);

    for (uint32_t d = p->ndim; d-- > 0;) {
        uint64_t i = (uint64_t)(p->at[d] - in->at[d]);
        if (d < outer) {
            i += run % (uint64_t)p->extent[d];
            run /= (uint64_t)p->extent[d];
        }
        at += i * stride;
        stride *= (uint64_t)in->extent[d];
    }
    return at;
}

bool piece_sum_add(struct piece_sum *s, const struct piece *p, const struct piece *in,
                   const void *memory, uint64_t arrived)
{
    uint32_t outer;
    const uint64_t run = sum_run_bytes(p, in, &outer);

    while (s->done < p->bytes) {
        const uint64_t begun = s->done % run;
        const uint64_t at = sum_run_offset(p, in, outer, s->done / run) + begun;
        uint64_t n = run - begun;
        if (at >= arrived)
            return false;
        if (n > arrived - at)
            n = arrived - at;
        XXH3_64bits_update(s->hash, (const char *)memory + at, n);
        s->done += n;
    }
    return true;
}

uint64_t piece_sum_end(struct piece_sum *s)
{
    const uint64_t sum = XXH3_64bits_digest(s->hash);

    piece_sum_drop(s);
    return sum;
}

bool piece_checksum(const struct piece *p, const void *memory, uint64_t *ret)
{
    struct piece_sum s = { 0 };

    *ret = 0;
    if (p->bytes == 0)
        return true;
    if (!piece_sum_begin(&s)) {
        piece_sum_drop(&s);
        return false;
    }
    piece_sum_add(&s, p, p, memory, p->bytes);
    *ret = piece_sum_end(&s);
    return true;
}
