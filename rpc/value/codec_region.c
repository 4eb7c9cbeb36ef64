/* SPDX-License-Identifier: Apache-2.0 */
/* codec_region.c - references to regions in payloads (docs/wire.md). */
#include "rpc/value/codec_walk.h"

#include <tenrec/region.h>

enum { REGION_NUMBERS = 7 };

/* Numbers of 64 bits travel as signed integers. */
static void region_numbers(const struct tenrec_region_ref *r, int64_t n[REGION_NUMBERS])
{
    n[0] = (int64_t)r->life;
    n[1] = (int64_t)r->number;
    n[2] = (int64_t)r->generation;
    n[3] = (int64_t)r->length;
    n[4] = (int64_t)r->rights;
    n[5] = (int64_t)r->key[0];
    n[6] = (int64_t)r->key[1];
}

static tenrec_status read_owner(struct cbor_reader *r, struct tenrec_region_ref *ret,
                                tenrec_error *err)
{
    struct cbor_item it;
    tenrec_status status = codec_expect(r, CBOR_KIND_TEXT, "owner of a region", &it, err);

    if (status)
        return status;
    if (it.n == 0 || it.n >= sizeof ret->owner || memchr(it.data, '\0', (size_t)it.n))
        return tenrec_fail(err, TENREC_EPROTOCOL, "owner of a region at byte %zu is not a name",
                           it.at);
    memcpy(ret->owner, it.data, (size_t)it.n);
    return TENREC_OK;
}

tenrec_status codec_read_region(struct cbor_reader *r, struct tenrec_region_ref *ret,
                                tenrec_error *err)
{
    int64_t n[REGION_NUMBERS] = { 0 };
    struct cbor_item it;
    tenrec_status status = codec_expect(r, CBOR_KIND_ARRAY, "region", &it, err);

    *ret = (struct tenrec_region_ref){ .size = sizeof *ret };
    if (!status && it.n != 1 + REGION_NUMBERS)
        return tenrec_fail(err, TENREC_EPROTOCOL, "region at byte %zu has %llu items, expected %d",
                           it.at, (unsigned long long)it.n, 1 + REGION_NUMBERS);
    if (!status)
        status = read_owner(r, ret, err);
    for (size_t i = 0; i < REGION_NUMBERS && !status; i++) {
        status = codec_expect(r, CBOR_KIND_INT, "number of a region", &it, err);
        n[i] = status ? 0 : it.integer;
    }
    if (!status && (n[4] < 0 || n[4] > UINT32_MAX))
        return tenrec_fail(err, TENREC_EPROTOCOL, "rights of a region at byte %zu: %lld", it.at,
                           (long long)n[4]);
    ret->life = (uint64_t)n[0];
    ret->number = (uint64_t)n[1];
    ret->generation = (uint64_t)n[2];
    ret->length = (uint64_t)n[3];
    ret->rights = (uint32_t)n[4];
    ret->key[0] = (uint64_t)n[5];
    ret->key[1] = (uint64_t)n[6];
    return status;
}

size_t codec_region_size(const struct tenrec_region_ref *r)
{
    const size_t owner = strlen(r->owner);
    int64_t n[REGION_NUMBERS];
    size_t size = cbor_head_size(CODEC_TAG_REGION) + cbor_head_size(1 + REGION_NUMBERS) +
                  cbor_head_size(owner) + owner;

    region_numbers(r, n);
    for (size_t i = 0; i < REGION_NUMBERS; i++)
        size += cbor_int_size(n[i]);
    return size;
}

void codec_put_region(struct cbor_writer *w, const struct tenrec_region_ref *r)
{
    int64_t n[REGION_NUMBERS];

    region_numbers(r, n);
    cbor_write_tag(w, CODEC_TAG_REGION);
    cbor_write_array(w, 1 + REGION_NUMBERS);
    cbor_write_text(w, r->owner, strlen(r->owner));
    for (size_t i = 0; i < REGION_NUMBERS; i++)
        cbor_write_int(w, n[i]);
}
