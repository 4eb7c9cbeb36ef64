/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/link/link_record.h"

#include "core/base/fail.h"
#include "core/base/hash.h"

#include <string.h>
#include <tenrec/link.h>

/* Magic, the member's record and the secret as blobs, and a checksum of all before it. A record of
 * another version has another magic. */
#define MAGIC 0x314b4c54u /* "TLK1" */
#define SUM_BYTES 8

static uint64_t record_sum(const uint8_t *data, size_t len)
{
    static const struct siphash_key key = { { MAGIC, SUM_BYTES } };

    return siphash(&key, data, len);
}

void link_record_free(struct link_record *r)
{
    member_free(&r->member);
    secret_drop(r->secret);
    *r = (struct link_record){ .secret = NULL };
}

tenrec_status link_record_write(const struct link_record *r, void *ret, size_t *ret_len,
                                tenrec_error *err)
{
    struct store_value member;
    struct bytes b = { 0 };
    const void *secret = NULL;
    size_t secret_len = 0;
    tenrec_status st = TENREC_OK;

    if (r->secret)
        secret = secret_bytes(r->secret, &secret_len);
    member_pack(&r->member, &member);
    bytes_add_u32(&b, MAGIC);
    bytes_add_blob(&b, member.data, member.len);
    bytes_add_blob(&b, secret, secret_len);
    bytes_add_u64(&b, b.failed ? 0 : record_sum(b.data, b.len));
    if (b.failed || !member.data)
        st = tenrec_fail(err, TENREC_ENOMEM, "no memory for the record of a link");
    else if (b.len > TENREC_LINK_RECORD_MAX)
        st = tenrec_fail(err, TENREC_ETOOBIG,
                         "the record of worker '%s' takes %zu bytes, at most %d: its address has "
                         "%zu, and its secret %zu",
                         r->member.name, b.len, TENREC_LINK_RECORD_MAX, strlen(r->member.address),
                         secret_len);
    if (st == TENREC_OK) {
        memcpy(ret, b.data, b.len);
        *ret_len = b.len;
    }
    if (b.data)
        explicit_bzero(b.data, b.len);
    bytes_free(&b);
    free(member.data);
    return st;
}

static tenrec_status record_fail(size_t len, const char *why, tenrec_error *err)
{
    return tenrec_fail(err, TENREC_EPROTOCOL,
                       "%zu bytes are no record of a link: %s; pass what tenrec_link_bind gave",
                       len, why);
}

static tenrec_status record_take_secret(const void *bytes, size_t len, struct secret **ret,
                                        tenrec_error *err)
{
    if (len == 0)
        return TENREC_OK;
    return secret_new(bytes, len, ret, err);
}

tenrec_status link_record_read(const void *data, size_t len, struct link_record *ret,
                               tenrec_error *err)
{
    struct bytes_reader r = { .data = data, .len = len };
    struct store_value member;
    const uint8_t *secret;
    size_t secret_len;
    tenrec_status st;

    *ret = (struct link_record){ .secret = NULL };
    if (len > TENREC_LINK_RECORD_MAX)
        return record_fail(len, "they are too many", err);
    if (bytes_read_u32(&r) != MAGIC)
        return record_fail(len, "they begin otherwise, or are of another version", err);
    member.data = (void *)(uintptr_t)bytes_read_blob(&r, TENREC_LINK_RECORD_MAX, &member.len);
    secret = bytes_read_blob(&r, SECRET_MAX, &secret_len);
    if (r.bad || len - r.at != SUM_BYTES || record_sum(data, r.at) != bytes_read_u64(&r))
        return record_fail(len, "they are cut or changed", err);
    st = member_unpack(&member, &ret->member, err);
    if (st == TENREC_OK && (ret->member.world != 1 || !ret->member.token))
        st = record_fail(len, "they are of a worker that does not stand alone", err);
    if (st == TENREC_OK)
        st = record_take_secret(secret, secret_len, &ret->secret, err);
    if (st != TENREC_OK)
        link_record_free(ret);
    return st;
}

void link_record_seal(const void *data, size_t len, uint64_t token, uint8_t ret[LINK_SEAL_BYTES])
{
    const struct siphash_key key = { { token, ~token } };
    uint64_t seal = siphash(&key, data, len);

    for (int i = 0; i < LINK_SEAL_BYTES; i++)
        ret[i] = (uint8_t)(seal >> 8 * i);
}
