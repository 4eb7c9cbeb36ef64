/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/value/cbor.h"

unsigned char *cbor_put_long_head(unsigned char *at, enum cbor_major major, uint64_t n)
{
    if (n <= UINT32_MAX) {
        at[0] = CBOR_BYTE(major, CBOR_LOW_4);
        memcpy(at + 1, &(uint32_t){ htobe32((uint32_t)n) }, 4);
        return at + 5;
    }
    at[0] = CBOR_BYTE(major, CBOR_LOW_8);
    memcpy(at + 1, &(uint64_t){ htobe64(n) }, 8);
    return at + 9;
}

struct cbor_number cbor_long_number(const unsigned char *at, const unsigned char *end)
{
    const unsigned low = at[0] & CBOR_LOW_BITS;
    uint64_t eight;
    uint32_t four;

    at++;
    if (low == CBOR_LOW_4 && end - at >= 4) {
        memcpy(&four, at, 4);
        return (struct cbor_number){ at + 4, be32toh(four) };
    }
    if (low == CBOR_LOW_8 && end - at >= 8) {
        memcpy(&eight, at, 8);
        return (struct cbor_number){ at + 8, be64toh(eight) };
    }
    return (struct cbor_number){ NULL, 0 }; /* reserved or indefinite; or cut, of any length */
}
