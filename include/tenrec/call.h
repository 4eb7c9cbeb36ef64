/* SPDX-License-Identifier: Apache-2.0 */
/* tenrec/call.h - a call in one line.
 *
 *     int64_t sum;
 *     tenrec_call(w, "worker0", "add", err, "ii>i", 40, 2, &sum);
 *
 * In C++, tenrec/tenrec.hpp has the same as a member of its worker.
 */
#ifndef TENREC_CALL_H
#define TENREC_CALL_H

#include <tenrec/rpc.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* The type of a value that names the place of a result: u.bytes is the address, n the letter. */
#define TENREC_VALUE_RESULT 0x100u

/* The same as tenrec_call, with its operands as values.
 *
 * operand  n values: the type text, the arguments, and the places of the results
 * errors   as tenrec_call
 * threads  as tenrec_rpc_sync
 */
tenrec_status tenrec_worker_call(struct tenrec_worker *w, const char *to, const char *function,
                                 const struct tenrec_value *operand, size_t n, tenrec_error *err);

#ifndef __cplusplus

/* Calls `function` on `to`, waits for its result within the worker's timeout, and stores it.
 *
 * The text has the types of the arguments as in tenrec_value_unpack, and after `>` those of the
 * results: b bool *, i int64_t *, d double *, t and T struct tenrec_tensor ** (shares: drop
 * it), r struct tenrec_rref ** (shares), or v struct tenrec_value ** (owns: drop it), also for text
 * and bytes. Several results are the items of an array. Without `>` the result is discarded.
 *
 * At most 11 operands follow the text. The compiler makes a value of each by its C type, so an int
 * may be an argument of type i, d or b. A struct tenrec_value is passed unchanged; use one for
 * bytes. tenrec_rpc_sync takes more arguments, and options.
 *
 * results  0, false or NULL after an error
 * errors   EINVAL (an operand that the text does not describe; a result of another type), and those
 *          of tenrec_rpc_sync
 * threads  as tenrec_rpc_sync
 */
#define tenrec_call(w, to, function, err, ...)                                                     \
    tenrec_worker_call(                                                                            \
        w, to, function,                                                                           \
        (const struct tenrec_value[]){ TENREC_OPERANDS(TENREC_COUNT(__VA_ARGS__), __VA_ARGS__) },  \
        TENREC_COUNT(__VA_ARGS__), err)

/* What an operand becomes. A value that cannot be, of a type of its own, is refused by the call. */
static inline struct tenrec_value tenrec_operand_refused(const char *why)
{
    struct tenrec_value v = tenrec_value_of(TENREC_VALUE_NIL, 0);

    v.type = TENREC_VALUE_RESULT;
    v.u.text = why;
    return v;
}

static inline struct tenrec_value tenrec_operand_size(unsigned long long n)
{
    return n > INT64_MAX ? tenrec_operand_refused("is larger than an int64_t holds")
                         : tenrec_value_int((int64_t)n);
}

static inline struct tenrec_value tenrec_operand_text(const char *text)
{
    return text ? tenrec_value_text(text) : tenrec_operand_refused("is NULL");
}

static inline struct tenrec_value tenrec_operand_value(struct tenrec_value v)
{
    return v;
}

static inline struct tenrec_value tenrec_operand_result(void *ret, char letter)
{
    struct tenrec_value v = tenrec_value_of(TENREC_VALUE_NIL, (unsigned char)letter);

    v.type = TENREC_VALUE_RESULT;
    v.u.bytes = ret;
    return v;
}

static inline struct tenrec_value tenrec_result_bool(bool *ret)
{
    return tenrec_operand_result(ret, 'b');
}

static inline struct tenrec_value tenrec_result_int(int64_t *ret)
{
    return tenrec_operand_result(ret, 'i');
}

static inline struct tenrec_value tenrec_result_double(double *ret)
{
    return tenrec_operand_result(ret, 'd');
}

static inline struct tenrec_value tenrec_result_tensor(struct tenrec_tensor **ret)
{
    return tenrec_operand_result(ret, 't');
}

static inline struct tenrec_value tenrec_result_rref(struct tenrec_rref **ret)
{
    return tenrec_operand_result(ret, 'r');
}

static inline struct tenrec_value tenrec_result_value(struct tenrec_value **ret)
{
    return tenrec_operand_result(ret, 'v');
}

/* clang-format off */
#define TENREC_OPERAND(x)                                                     \
    _Generic((x),                                                             \
        bool: tenrec_value_bool,                                              \
        char: tenrec_value_int,                                               \
        signed char: tenrec_value_int,                                        \
        short: tenrec_value_int,                                              \
        int: tenrec_value_int,                                                \
        long: tenrec_value_int,                                               \
        long long: tenrec_value_int,                                          \
        unsigned char: tenrec_value_int,                                      \
        unsigned short: tenrec_value_int,                                     \
        unsigned: tenrec_value_int,                                           \
        unsigned long: tenrec_operand_size,                                   \
        unsigned long long: tenrec_operand_size,                              \
        float: tenrec_value_double,                                           \
        double: tenrec_value_double,                                          \
        char *: tenrec_operand_text,                                          \
        const char *: tenrec_operand_text,                                    \
        struct tenrec_tensor *: tenrec_value_tensor,                          \
        struct tenrec_rref *: tenrec_value_rref,                              \
        struct tenrec_object *: tenrec_value_object,                          \
        struct tenrec_region_ref *: tenrec_value_region,                      \
        const struct tenrec_region_ref *: tenrec_value_region,                \
        struct tenrec_value: tenrec_operand_value,                            \
        bool *: tenrec_result_bool,                                           \
        int64_t *: tenrec_result_int,                                         \
        double *: tenrec_result_double,                                       \
        struct tenrec_tensor **: tenrec_result_tensor,                        \
        struct tenrec_rref **: tenrec_result_rref,                            \
        struct tenrec_value **: tenrec_result_value)(x)

#define TENREC_COUNT(...) TENREC_COUNT_OF(__VA_ARGS__, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
#define TENREC_COUNT_OF(a, b, c, d, e, f, g, h, i, j, k, l, n, ...) n
#define TENREC_OPERANDS(n, ...) TENREC_OPERANDS_OF(n, __VA_ARGS__)
#define TENREC_OPERANDS_OF(n, ...) TENREC_OPERANDS_##n(__VA_ARGS__)
#define TENREC_OPERANDS_1(x) TENREC_OPERAND(x)
#define TENREC_OPERANDS_2(x, ...) TENREC_OPERAND(x), TENREC_OPERANDS_1(__VA_ARGS__)
#define TENREC_OPERANDS_3(x, ...) TENREC_OPERAND(x), TENREC_OPERANDS_2(__VA_ARGS__)
#define TENREC_OPERANDS_4(x, ...) TENREC_OPERAND(x), TENREC_OPERANDS_3(__VA_ARGS__)
#define TENREC_OPERANDS_5(x, ...) TENREC_OPERAND(x), TENREC_OPERANDS_4(__VA_ARGS__)
#define TENREC_OPERANDS_6(x, ...) TENREC_OPERAND(x), TENREC_OPERANDS_5(__VA_ARGS__)
#define TENREC_OPERANDS_7(x, ...) TENREC_OPERAND(x), TENREC_OPERANDS_6(__VA_ARGS__)
#define TENREC_OPERANDS_8(x, ...) TENREC_OPERAND(x), TENREC_OPERANDS_7(__VA_ARGS__)
#define TENREC_OPERANDS_9(x, ...) TENREC_OPERAND(x), TENREC_OPERANDS_8(__VA_ARGS__)
#define TENREC_OPERANDS_10(x, ...) TENREC_OPERAND(x), TENREC_OPERANDS_9(__VA_ARGS__)
#define TENREC_OPERANDS_11(x, ...) TENREC_OPERAND(x), TENREC_OPERANDS_10(__VA_ARGS__)
#define TENREC_OPERANDS_12(x, ...) TENREC_OPERAND(x), TENREC_OPERANDS_11(__VA_ARGS__)
/* clang-format on */

#endif /* C */

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
