/* SPDX-License-Identifier: Apache-2.0 */
/* quantity.c - numbers with a unit, read and printed. */
#include "core/config/value.h"

#include "core/base/memory.h"

#include <errno.h>
#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>

struct unit {
    const char *name;
    uint64_t factor;
};

/* Largest first: printing uses the first unit that divides. */
static const struct unit duration_units[] = {
    { "h", 3600000 },
    { "m", 60000 },
    { "s", 1000 },
    { "ms", 1 },
};

static const struct unit size_units[] = {
    { "GiB", (uint64_t)1 << 30 },
    { "MiB", (uint64_t)1 << 20 },
    { "KiB", (uint64_t)1 << 10 },
    { "GB", 1000000000 },
    { "MB", 1000000 },
    { "kB", 1000 },
    { "B", 1 },
};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Reads digits and moves *p behind them. Returns false without a digit, or if the
 * number overflows. */
static bool read_digits(const char **p, uint64_t *ret)
{
    uint64_t v = 0;

    if (!is_digit(**p))
        return false;
    for (; is_digit(**p); (*p)++) {
        if (__builtin_mul_overflow(v, (uint64_t)10, &v) ||
            __builtin_add_overflow(v, (uint64_t)(**p - '0'), &v))
            return false;
    }
    *ret = v;
    return true;
}

/* Computes whole.fraction * factor. Returns false when the result overflows or is no
 * whole number. */
static bool quantity_scale(uint64_t whole, const char *fraction, size_t digits, uint64_t factor,
                           uint64_t *ret)
{
    uint64_t v, part = 0, step = factor;

    if (__builtin_mul_overflow(whole, factor, &v))
        return false;
    for (size_t i = 0; i < digits; i++) {
        uint64_t d = (uint64_t)(fraction[i] - '0');
        if (d == 0) {
            step = step % 10 == 0 ? step / 10 : 0;
            continue;
        }
        /* The factors are small: d * step cannot overflow. */
        if (step == 0 || (d * step) % 10 != 0)
            return false;
        part += d * step / 10;
        step = step % 10 == 0 ? step / 10 : 0;
    }
    if (__builtin_add_overflow(v, part, &v) || v >= INT64_MAX)
        return false;
    *ret = v;
    return true;
}

tenrec_status quantity_duration(const char *text, bool plain_seconds, uint64_t *ret_ms,
                                tenrec_error *err)
{
    const char *p = text, *fraction = NULL;
    size_t digits = 0;
    uint64_t whole, factor = 0;

    if (strcmp(text, "none") == 0) {
        *ret_ms = UINT64_MAX;
        return TENREC_OK;
    }
    if (*p == '-')
        return tenrec_fail(err, TENREC_EINVAL,
                           "a duration cannot be negative, found '%s' ('none' means for ever)",
                           text);
    if (!read_digits(&p, &whole))
        return tenrec_fail(err, TENREC_EINVAL,
                           "expected a duration such as 250ms, 1.5s, 2m, 1h or none, found '%s'",
                           text);
    if (*p == '.' && is_digit(p[1])) {
        fraction = ++p;
        while (is_digit(*p))
            p++;
        digits = (size_t)(p - fraction);
    }
    for (size_t i = 0; i < COUNT(duration_units); i++) {
        if (strcmp(p, duration_units[i].name) == 0)
            factor = duration_units[i].factor;
    }
    if (*p == '\0' && plain_seconds)
        factor = 1000;
    if (factor == 0)
        return tenrec_fail(err, TENREC_EINVAL,
                           *p ? "a duration has the unit ms, s, m or h, found '%s'"
                              : "a duration needs a unit (ms, s, m, h), found '%s'",
                           text);
    if (!quantity_scale(whole, fraction, digits, factor, ret_ms))
        return tenrec_fail(err, TENREC_EINVAL,
                           "a duration is a whole number of milliseconds below 2^63, found '%s'",
                           text);
    return TENREC_OK;
}

tenrec_status quantity_size(const char *text, uint64_t *ret_bytes, tenrec_error *err)
{
    const char *p = text;
    uint64_t whole, factor = 0;

    if (!read_digits(&p, &whole))
        return tenrec_fail(err, TENREC_EINVAL,
                           "expected a size such as 512, 64KiB, 1MiB or 2GB, found '%s'", text);
    for (size_t i = 0; i < COUNT(size_units); i++) {
        if (strcmp(p, size_units[i].name) == 0)
            factor = size_units[i].factor;
    }
    if (*p == '\0')
        factor = 1;
    if (factor == 0)
        return tenrec_fail(err, TENREC_EINVAL,
                           "a size has the unit KiB, MiB, GiB, kB, MB, GB or none, found '%s'",
                           text);
    if (!quantity_scale(whole, NULL, 0, factor, ret_bytes))
        return tenrec_fail(err, TENREC_EINVAL, "a size is below 2^63 bytes, found '%s'", text);
    return TENREC_OK;
}

tenrec_status quantity_int(const char *text, int64_t *ret, tenrec_error *err)
{
    const char *digits = text + (*text == '-' || *text == '+');
    bool hex = digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X');
    char *end = NULL;
    long long v;

    /* strtoll alone would also accept spaces, and a second sign after "0x". */
    if (hex ? !strchr("0123456789abcdefABCDEF", digits[2]) || !digits[2] : !is_digit(digits[0]))
        return tenrec_fail(err, TENREC_EINVAL, "expected an integer, found '%s'", text);
    errno = 0;
    v = strtoll(text, &end, hex ? 16 : 10);
    if (*end)
        return tenrec_fail(err, TENREC_EINVAL, "expected an integer, found '%s'", text);
    if (errno == ERANGE)
        return tenrec_fail(err, TENREC_EINVAL, "integer '%s' does not fit in 64 bits", text);
    *ret = v;
    return TENREC_OK;
}

tenrec_status quantity_double(const char *text, double *ret, tenrec_error *err)
{
    locale_t c, old;
    char *end = NULL;
    double v;

    if (strspn(text, "0123456789+-.eE") != strlen(text))
        return tenrec_fail(err, TENREC_EINVAL, "expected a number, found '%s'", text);
    c = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0);
    if (!c)
        return memory_fail(err);
    old = uselocale(c);
    v = strtod(text, &end);
    uselocale(old);
    freelocale(c);
    if (end == text || *end || !isfinite(v))
        return tenrec_fail(err, TENREC_EINVAL, "expected a number, found '%s'", text);
    *ret = v;
    return TENREC_OK;
}

static const char *quantity_print(uint64_t v, const struct unit *unit, size_t n, char *buf)
{
    while (n > 1 && (v == 0 || v % unit->factor != 0)) {
        unit++;
        n--;
    }
    snprintf(buf, QUANTITY_TEXT_MAX, "%" PRIu64 "%s", v / unit->factor, unit->name);
    return buf;
}

const char *quantity_print_duration(uint64_t ms, char buf[QUANTITY_TEXT_MAX])
{
    if (ms == UINT64_MAX)
        snprintf(buf, QUANTITY_TEXT_MAX, "none");
    else if (ms == 0)
        snprintf(buf, QUANTITY_TEXT_MAX, "0s");
    else /* "60s" reads better than "1m" */
        quantity_print(ms, ms % 60000 == 0 && ms < 300000 ? &duration_units[2] : duration_units,
                       ms % 60000 == 0 && ms < 300000 ? 2 : COUNT(duration_units), buf);
    return buf;
}

const char *quantity_print_size(uint64_t bytes, char buf[QUANTITY_TEXT_MAX])
{
    /* Sizes are printed in powers of 1024 only. */
    if (bytes == 0 || bytes % 1024 != 0)
        snprintf(buf, QUANTITY_TEXT_MAX, "%" PRIu64, bytes);
    else
        quantity_print(bytes, size_units, 3, buf);
    return buf;
}
