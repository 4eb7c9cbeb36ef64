/* SPDX-License-Identifier: Apache-2.0 */
#include "value.h"

#include <string.h>

/* Sizes as on each 64-bit Linux: long is that of numpy's int64. */
static const struct element {
    struct tenrec_dtype dtype;
    const char *format; /* native, one for each type; NULL: none */
} element_all[] = {
    { { TENREC_DTYPE_BOOL, 8, 1 }, "?" },      { { TENREC_DTYPE_INT, 8, 1 }, "b" },
    { { TENREC_DTYPE_INT, 16, 1 }, "h" },      { { TENREC_DTYPE_INT, 32, 1 }, "i" },
    { { TENREC_DTYPE_INT, 64, 1 }, "l" },      { { TENREC_DTYPE_UINT, 8, 1 }, "B" },
    { { TENREC_DTYPE_UINT, 16, 1 }, "H" },     { { TENREC_DTYPE_UINT, 32, 1 }, "I" },
    { { TENREC_DTYPE_UINT, 64, 1 }, "L" },     { { TENREC_DTYPE_FLOAT, 16, 1 }, "e" },
    { { TENREC_DTYPE_FLOAT, 32, 1 }, "f" },    { { TENREC_DTYPE_FLOAT, 64, 1 }, "d" },
    { { TENREC_DTYPE_COMPLEX, 64, 1 }, "Zf" }, { { TENREC_DTYPE_COMPLEX, 128, 1 }, "Zd" },
    { { TENREC_DTYPE_BFLOAT, 16, 1 }, NULL },
};

#define ELEMENTS (sizeof element_all / sizeof element_all[0])

static int element_kind(const char *format)
{
    if (format[0] == 'Z' && strlen(format) == 2 && strchr("fd", format[1]))
        return TENREC_DTYPE_COMPLEX;
    if (strlen(format) != 1)
        return -1;
    if (strchr("bhilqn", format[0]))
        return TENREC_DTYPE_INT;
    if (strchr("BHILQNc", format[0]))
        return TENREC_DTYPE_UINT;
    if (strchr("efd", format[0]))
        return TENREC_DTYPE_FLOAT;
    return format[0] == '?' ? TENREC_DTYPE_BOOL : -1;
}

bool element_of_format(const char *format, Py_ssize_t bytes, struct tenrec_dtype *ret)
{
    const char *type = format ? format : "B";
    int kind;

    if (strchr("@=<", *type) || (strchr(">!|", *type) && bytes == 1))
        type += *type != '\0';
    kind = element_kind(type);
    for (size_t i = 0; i < ELEMENTS; i++)
        if (element_all[i].dtype.code == kind && element_all[i].dtype.bits == bytes * 8) {
            *ret = element_all[i].dtype;
            return true;
        }
    PyErr_Format(PyExc_TypeError,
                 "elements of the format '%s' (%zd bytes each) cannot be sent, expected bool, "
                 "integers, floats or complex numbers in the byte order of this machine",
                 format ? format : "B", bytes);
    return false;
}

const char *element_format(struct tenrec_dtype dtype)
{
    for (size_t i = 0; i < ELEMENTS; i++)
        if (memcmp(&element_all[i].dtype, &dtype, sizeof dtype) == 0)
            return element_all[i].format;
    return NULL;
}

bool element_of_name(const char *name, struct tenrec_dtype *ret)
{
    for (size_t i = 0; i < ELEMENTS; i++)
        if (strcmp(tenrec_dtype_name(element_all[i].dtype), name) == 0) {
            *ret = element_all[i].dtype;
            return true;
        }
    PyErr_Format(PyExc_ValueError,
                 "no element type is called '%s', expected one such as float32, bfloat16, int64, "
                 "uint8, bool or complex64",
                 name);
    return false;
}
