/* SPDX-License-Identifier: Apache-2.0 */
/* dtype.c - names and sizes of element types. */
#include <string.h>

#include "core/tensor/tensor.h"

/* DLPack's codes beyond those of types.h are the eight-bit floats. */
#define CODE_HANDLE 3
#define CODE_FLOAT8_FIRST 7
#define CODE_FLOAT8_LAST 14

struct name {
    struct tenrec_dtype dtype;
    const char *text;
};

static const struct name names[] = {
    { { TENREC_DTYPE_UINT, 8, 1 }, "uint8" },
    { { TENREC_DTYPE_UINT, 16, 1 }, "uint16" },
    { { TENREC_DTYPE_UINT, 32, 1 }, "uint32" },
    { { TENREC_DTYPE_UINT, 64, 1 }, "uint64" },
    { { TENREC_DTYPE_INT, 8, 1 }, "int8" },
    { { TENREC_DTYPE_INT, 16, 1 }, "int16" },
    { { TENREC_DTYPE_INT, 32, 1 }, "int32" },
    { { TENREC_DTYPE_INT, 64, 1 }, "int64" },
    { { TENREC_DTYPE_FLOAT, 16, 1 }, "float16" },
    { { TENREC_DTYPE_FLOAT, 32, 1 }, "float32" },
    { { TENREC_DTYPE_FLOAT, 64, 1 }, "float64" },
    { { TENREC_DTYPE_BFLOAT, 16, 1 }, "bfloat16" },
    { { TENREC_DTYPE_COMPLEX, 32, 1 }, "complex32" },
    { { TENREC_DTYPE_COMPLEX, 64, 1 }, "complex64" },
    { { TENREC_DTYPE_COMPLEX, 128, 1 }, "complex128" },
    { { TENREC_DTYPE_BOOL, 8, 1 }, "bool" },
    { { 7, 8, 1 }, "float8_e3m4" },
    { { 8, 8, 1 }, "float8_e4m3" },
    { { 9, 8, 1 }, "float8_e4m3b11fnuz" },
    { { 10, 8, 1 }, "float8_e4m3fn" },
    { { 11, 8, 1 }, "float8_e4m3fnuz" },
    { { 12, 8, 1 }, "float8_e5m2" },
    { { 13, 8, 1 }, "float8_e5m2fnuz" },
    { { 14, 8, 1 }, "float8_e8m0fnu" },
};

uint32_t dtype_bytes(struct tenrec_dtype dtype)
{
    if (dtype.code == CODE_HANDLE || dtype.code > CODE_FLOAT8_LAST)
        return 0;
    if (dtype.code >= CODE_FLOAT8_FIRST && dtype.bits != 8)
        return 0;
    if (dtype.bits == 0 || dtype.bits % 8)
        return 0;
    return (uint32_t)dtype.bits / 8 * dtype.lanes;
}

const char *tenrec_dtype_name(struct tenrec_dtype dtype)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].dtype.code == dtype.code && names[i].dtype.bits == dtype.bits &&
            names[i].dtype.lanes == dtype.lanes)
            return names[i].text;
    return "?";
}
