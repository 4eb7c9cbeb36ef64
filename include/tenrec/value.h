/* SPDX-License-Identifier: Apache-2.0 */
/* tenrec/value.h - arguments and results of calls.
 *
 * A value is a plain struct that you may build on the stack:
 *
 *     struct tenrec_value args[] = { tenrec_value_int(2), tenrec_value_text("x"),
 *                                    tenrec_value_tensor(t) };
 *
 * It borrows the memory to which it points. Calls encode it at once (tensors are shared, not
 * copied), so it need not outlive the call. A value from Tenrec is borrowed from the future, call
 * or result that holds it.
 */
#ifndef TENREC_VALUE_H
#define TENREC_VALUE_H

#include <stdbool.h>
#include <tenrec/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

enum tenrec_value_type {
    TENREC_VALUE_NIL,
    TENREC_VALUE_BOOL,
    TENREC_VALUE_INT,
    TENREC_VALUE_DOUBLE,
    TENREC_VALUE_TEXT,
    TENREC_VALUE_BYTES,
    TENREC_VALUE_ARRAY,
    TENREC_VALUE_MAP,
    TENREC_VALUE_TENSOR,
    TENREC_VALUE_RREF,   /* see tenrec/rref.h */
    TENREC_VALUE_OBJECT, /* likewise */
    TENREC_VALUE_REGION, /* see tenrec/region.h */
};

struct tenrec_value;
struct tenrec_entry; /* of a map */
struct tenrec_rref;
struct tenrec_object;
struct tenrec_region_ref;

/* A value of a call. Never grows: programs build values and arrays of values on their stacks. A
 * new type of value uses `n` and the space of the union. */
struct tenrec_value {
    uint32_t type;  /* enum tenrec_value_type */
    uint32_t flags; /* zero; a value with any other flags is refused (EINVAL) */
    uint64_t n;     /* bytes of a text or bytes, items of an array or map */
    union {
        bool boolean;
        int64_t integer;
        double number;
        const char *text; /* UTF-8; given out with a NUL behind it */
        const void *bytes;
        const struct tenrec_value *array;
        const struct tenrec_entry *map;
        struct tenrec_tensor *tensor;
        struct tenrec_rref *rref;
        struct tenrec_object *object;
        const struct tenrec_region_ref *region;
        uint64_t room[2]; /* for future types */
    } u;
};

/* An item of a map. Never grows: maps are arrays of it. */
struct tenrec_entry {
    const char *key; /* NUL terminated UTF-8 */
    struct tenrec_value value;
};

static inline struct tenrec_value tenrec_value_of(enum tenrec_value_type type, uint64_t n)
{
    struct tenrec_value v;

    memset(&v, 0, sizeof v);
    v.type = (uint32_t)type;
    v.n = n;
    return v;
}

static inline struct tenrec_value tenrec_value_nil(void)
{
    return tenrec_value_of(TENREC_VALUE_NIL, 0);
}

static inline struct tenrec_value tenrec_value_bool(bool b)
{
    struct tenrec_value v = tenrec_value_of(TENREC_VALUE_BOOL, 0);
    v.u.boolean = b;
    return v;
}

static inline struct tenrec_value tenrec_value_int(int64_t i)
{
    struct tenrec_value v = tenrec_value_of(TENREC_VALUE_INT, 0);
    v.u.integer = i;
    return v;
}

static inline struct tenrec_value tenrec_value_double(double d)
{
    struct tenrec_value v = tenrec_value_of(TENREC_VALUE_DOUBLE, 0);
    v.u.number = d;
    return v;
}

static inline struct tenrec_value tenrec_value_text(const char *text)
{
    struct tenrec_value v = tenrec_value_of(TENREC_VALUE_TEXT, strlen(text));
    v.u.text = text;
    return v;
}

static inline struct tenrec_value tenrec_value_bytes(const void *bytes, size_t n)
{
    struct tenrec_value v = tenrec_value_of(TENREC_VALUE_BYTES, n);
    v.u.bytes = bytes;
    return v;
}

static inline struct tenrec_value tenrec_value_array(const struct tenrec_value *items, size_t n)
{
    struct tenrec_value v = tenrec_value_of(TENREC_VALUE_ARRAY, n);
    v.u.array = items;
    return v;
}

static inline struct tenrec_value tenrec_value_map(const struct tenrec_entry *entries, size_t n)
{
    struct tenrec_value v = tenrec_value_of(TENREC_VALUE_MAP, n);
    v.u.map = entries;
    return v;
}

static inline struct tenrec_value tenrec_value_tensor(struct tenrec_tensor *t)
{
    struct tenrec_value v = tenrec_value_of(TENREC_VALUE_TENSOR, 0);
    v.u.tensor = t;
    return v;
}

static inline struct tenrec_value tenrec_value_rref(struct tenrec_rref *r)
{
    struct tenrec_value v = tenrec_value_of(TENREC_VALUE_RREF, 0);
    v.u.rref = r;
    return v;
}

static inline struct tenrec_value tenrec_value_object(struct tenrec_object *o)
{
    struct tenrec_value v = tenrec_value_of(TENREC_VALUE_OBJECT, 0);
    v.u.object = o;
    return v;
}

static inline struct tenrec_value tenrec_value_region(const struct tenrec_region_ref *ref)
{
    struct tenrec_value v = tenrec_value_of(TENREC_VALUE_REGION, 0);
    v.u.region = ref;
    return v;
}

/* "an integer", "text", ...: for error texts. */
const char *tenrec_value_type_name(uint32_t type);

/* Reads and checks arguments, or the items of an array, by a short type text:
 * b bool, i int64_t, d double (takes an int too), s const char * (refuses a text with a zero byte),
 * y bytes (const void *, size_t), t struct tenrec_tensor *,
 * r struct tenrec_rref *, o struct tenrec_object *, g const struct tenrec_region_ref *,
 * v const struct tenrec_value *. The types after `|` are optional: the variables of absent
 * arguments are not written.
 *
 * T is a t that tenrec_tensor_expect has checked. The element type follows it, in numpy's letters
 * (? bool, B uint8, b int8, h int16, i int32, l int64, e float16, f float32, d float64, E
 * bfloat16, F complex64, D complex128), and optionally the shape, with * for any length:
 * "Tf[4,*]".
 *
 *     int64_t a; struct tenrec_tensor *t;
 *     tenrec_value_unpack(args, n, err, "iTf", &a, &t);
 *     const float *x = tenrec_tensor_data(t);
 *
 * ret      pointers are borrowed from the values
 * errors   EINVAL: "argument 2 is text, expected an integer", "takes 2
 *          arguments, got 1", "argument 1: the tensor is int32 of [4], expected float32"
 */
tenrec_status tenrec_value_unpack(const struct tenrec_value *v, size_t n, tenrec_error *err,
                                  const char *types, ...);

/* The value of `key` in a map; NULL if `map` is not a map or has no such key. */
const struct tenrec_value *tenrec_value_find(const struct tenrec_value *map, const char *key);

/* Makes a deep copy in one block (tensors, references and objects are shared), and frees it.
 *
 * ret      owns: drop it
 * errors   ENOMEM, EINVAL (unknown type or flags, nested deeper than 64)
 */
tenrec_status tenrec_value_copy(const struct tenrec_value *v, struct tenrec_value **ret,
                                tenrec_error *err);
void tenrec_value_drop(struct tenrec_value *v); /* NULL is allowed */

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
