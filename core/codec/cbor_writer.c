/* SPDX-License-Identifier: Apache-2.0 */
#include "codec/cbor_writer.h"

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
