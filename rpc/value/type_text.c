/* SPDX-License-Identifier: Apache-2.0 */
/* type_text.c - reading values by a type text. */
#include "rpc/value/type_text.h"

#include <limits.h>
#include <string.h>

#include <tenrec/region.h>
#include <tenrec/rref.h>

#include "core/tensor/tensor.h"
#include "rpc/value/value.h"

enum { ANY_TYPE = -1 };

/* The type of a letter; 0 for an unknown letter. */
static const short letter_type[UCHAR_MAX + 1] = {
    ['b'] = TENREC_VALUE_BOOL,   ['i'] = TENREC_VALUE_INT,
    ['d'] = TENREC_VALUE_DOUBLE, ['s'] = TENREC_VALUE_TEXT,
    ['y'] = TENREC_VALUE_BYTES,  ['t'] = TENREC_VALUE_TENSOR,
    ['T'] = TENREC_VALUE_TENSOR, ['r'] = TENREC_VALUE_RREF,
    ['o'] = TENREC_VALUE_OBJECT, ['v'] = ANY_TYPE,
    ['g'] = TENREC_VALUE_REGION,
};

/* The element types behind T: numpy's characters, and ml_dtypes' for bfloat16. */
static const struct {
    char letter;
    struct tenrec_dtype dtype;
} letter_dtype[] = {
    { '?', { TENREC_DTYPE_BOOL, 8, 1 } },     { 'B', { TENREC_DTYPE_UINT, 8, 1 } },
    { 'b', { TENREC_DTYPE_INT, 8, 1 } },      { 'h', { TENREC_DTYPE_INT, 16, 1 } },
    { 'i', { TENREC_DTYPE_INT, 32, 1 } },     { 'l', { TENREC_DTYPE_INT, 64, 1 } },
    { 'e', { TENREC_DTYPE_FLOAT, 16, 1 } },   { 'f', { TENREC_DTYPE_FLOAT, 32, 1 } },
    { 'd', { TENREC_DTYPE_FLOAT, 64, 1 } },   { 'E', { TENREC_DTYPE_BFLOAT, 16, 1 } },
    { 'F', { TENREC_DTYPE_COMPLEX, 64, 1 } }, { 'D', { TENREC_DTYPE_COMPLEX, 128, 1 } },
};

/* The end of a type that begins at `t`: behind its letter, and behind those of a tensor's elements
 * and shape. */
static const char *type_end(const char *t)
{
    if (*t != 'T' || !t[1])
        return t + 1;
    t += t[1] == '[' ? 1 : 2; /* a missing element type is refused when the type is read */
    if (*t == '[') {
        t += strcspn(t, "]");
        t += *t == ']';
    }
    return t;
}

/* Reads the shape between "[" and "]": lengths, and * for any. Returns false if malformed. */
static bool type_shape(const char *t, int64_t shape[TENREC_MAX_DIMS], int *ret_ndim)
{
    int n = 0;

    for (t++; *t != ']'; n++) {
        if (n == TENREC_MAX_DIMS || (n > 0 && *t++ != ','))
            return false;
        if (*t == '*') {
            shape[n] = -1;
            t++;
            continue;
        }
        if (*t < '0' || *t > '9')
            return false;
        for (shape[n] = 0; *t >= '0' && *t <= '9'; t++)
            if (shape[n] > INT32_MAX)
                return false;
            else
                shape[n] = shape[n] * 10 + (*t - '0');
    }
    *ret_ndim = n;
    return true;
}

static tenrec_status type_check_tensor(const struct tenrec_tensor *t, const char *type,
                                       tenrec_error *err)
{
    struct tensor_wanted wanted = { .ndim = -1 };
    int64_t shape[TENREC_MAX_DIMS];
    size_t i = 0;

    while (i < sizeof letter_dtype / sizeof *letter_dtype && letter_dtype[i].letter != type[1])
        i++;
    if (i == sizeof letter_dtype / sizeof *letter_dtype || !type[1])
        return tenrec_fail(err, TENREC_EINVAL,
                           "type text has '%.2s' (one of ? B b h i l e f d E F D expected after T)",
                           type);
    wanted.dtype = letter_dtype[i].dtype;
    if (type[2] == '[') {
        if (!type_shape(type + 2, shape, &wanted.ndim))
            return tenrec_fail(err, TENREC_EINVAL,
                               "type text has '%s' (a shape such as [4,*] expected)", type);
        wanted.shape = shape;
    }
    return tensor_check(t, &wanted, err);
}

static tenrec_status type_check_one(const struct tenrec_value *v, const char *what, size_t number,
                                    const char *type, tenrec_error *err)
{
    const int want = letter_type[(unsigned char)*type];

    if (want == 0)
        return tenrec_fail(err, TENREC_EINVAL,
                           "type text has '%c' (one of b i d s y t T r o g v and | expected)",
                           *type);
    if (want == ANY_TYPE || v->type == (uint32_t)want ||
        (want == TENREC_VALUE_DOUBLE && v->type == TENREC_VALUE_INT)) {
        if (want == TENREC_VALUE_TEXT && v->n && memchr(v->u.text, '\0', v->n))
            return tenrec_fail(err, TENREC_EINVAL, "%s %zu is text with a zero byte in it", what,
                               number);
        if (*type == 'T' && type_check_tensor(v->u.tensor, type, err) != TENREC_OK) {
            tenrec_error_prefix(err, "%s %zu", what, number);
            return TENREC_EINVAL;
        }
        return TENREC_OK;
    }
    return tenrec_fail(err, TENREC_EINVAL, "%s %zu is %s, expected %s", what, number,
                       tenrec_value_type_name(v->type), tenrec_value_type_name((uint32_t)want));
}

static tenrec_status type_check_count(size_t n, const char *what, size_t least, size_t most,
                                      tenrec_error *err)
{
    if (n >= least && n <= most)
        return TENREC_OK;
    if (least == most)
        return tenrec_fail(err, TENREC_EINVAL, "takes %zu %s%s, got %zu", most, what,
                           most == 1 ? "" : "s", n);
    return tenrec_fail(err, TENREC_EINVAL, "takes %zu to %zu %ss, got %zu", least, most, what, n);
}

tenrec_status values_check(const struct tenrec_value *v, size_t n, const char *what,
                           const char *types, const char *end, tenrec_error *err)
{
    size_t most = 0, least = SIZE_MAX;
    tenrec_status status;

    for (const char *t = types; t < end; t = *t == '|' ? t + 1 : type_end(t)) {
        if (*t == '|')
            least = most;
        else
            most++;
    }
    status = type_check_count(n, what, least < most ? least : most, most, err);
    for (size_t i = 0; i < n && !status; i++, types = type_end(types)) {
        types += *types == '|';
        status = type_check_one(&v[i], what, i + 1, types, err);
    }
    return status;
}

char value_next_type(const char **types)
{
    const char *t = *types + (**types == '|');

    *types = type_end(t);
    return *t == 'T' ? 't' : *t;
}

static void value_store(const struct tenrec_value *v, char letter, va_list *ap)
{
    switch (letter) {
    case 'b':
        *va_arg(*ap, bool *) = v->u.boolean;
        break;
    case 'i':
        *va_arg(*ap, int64_t *) = v->u.integer;
        break;
    case 'd':
        *va_arg(*ap, double *) = v->type == TENREC_VALUE_INT ? (double)v->u.integer : v->u.number;
        break;
    case 's':
        *va_arg(*ap, const char **) = v->u.text;
        break;
    case 'y':
        *va_arg(*ap, const void **) = v->u.bytes;
        *va_arg(*ap, size_t *) = (size_t)v->n;
        break;
    case 't':
        *va_arg(*ap, struct tenrec_tensor **) = v->u.tensor;
        break;
    case 'r':
        *va_arg(*ap, struct tenrec_rref **) = v->u.rref;
        break;
    case 'o':
        *va_arg(*ap, struct tenrec_object **) = v->u.object;
        break;
    case 'g':
        *va_arg(*ap, const struct tenrec_region_ref **) = v->u.region;
        break;
    default:
        *va_arg(*ap, const struct tenrec_value **) = v;
    }
}

tenrec_status values_vget(const struct tenrec_value *v, size_t n, tenrec_error *err,
                          const char *types, va_list ap)
{
    /* All values are checked before the first is stored. */
    tenrec_status status = values_check(v, n, "argument", types, types + strlen(types), err);
    va_list to;

    if (status)
        return status;
    va_copy(to, ap); /* a parameter may be a pointer, of another type than its address */
    for (size_t i = 0; i < n; i++)
        value_store(&v[i], value_next_type(&types), &to);
    va_end(to);
    return TENREC_OK;
}

tenrec_status tenrec_value_unpack(const struct tenrec_value *v, size_t n, tenrec_error *err,
                                  const char *types, ...)
{
    tenrec_status status;
    va_list ap;

    va_start(ap, types);
    status = values_vget(v, n, err, types, ap);
    va_end(ap);
    return status;
}
