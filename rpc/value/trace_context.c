/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/value/trace.h"

#include <string.h>

enum {
    TEXT_LEN = TRACE_TEXT_SIZE - 1,
    AT_ID = 3, /* behind the version */
    AT_SPAN = AT_ID + 2 * TRACE_ID_SIZE + 1,
    AT_FLAGS = AT_SPAN + 2 * TRACE_SPAN_ID_SIZE + 1,
    QUOTED = 80, /* characters of a wrong text in an error */
    ID_RANDOM_BITS = 56,
};

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1; /* upper case is refused */
}

static bool is_zero(const uint8_t *bytes, unsigned n)
{
    uint8_t all = 0;

    for (unsigned i = 0; i < n; i++)
        all |= bytes[i];
    return all == 0;
}

/* Each character in the place of a dash or a digit. Returns the first wrong one, or TEXT_LEN. */
static unsigned first_wrong(const char *text)
{
    for (unsigned i = 0; i < TEXT_LEN; i++) {
        const bool dash = i == AT_ID - 1 || i == AT_SPAN - 1 || i == AT_FLAGS - 1;

        if (dash ? text[i] != '-' : hex_digit(text[i]) < 0)
            return i;
    }
    return TEXT_LEN;
}

/* The digits have been checked. */
static void read_hex(const char *text, size_t n, uint8_t *ret)
{
    for (size_t i = 0; i < n; i++)
        ret[i] =
            (uint8_t)((unsigned)hex_digit(text[2 * i]) << 4 | (unsigned)hex_digit(text[2 * i + 1]));
}

tenrec_status trace_context_parse(const char *text, struct trace_context *ret, tenrec_error *err)
{
    const size_t len = strlen(text);
    struct trace_context t;
    uint8_t version;
    unsigned wrong;

    if (len < TEXT_LEN)
        return tenrec_fail(err, TENREC_EINVAL,
                           "traceparent '%s' has %zu characters, expected %d: "
                           "VERSION-TRACE_ID-SPAN_ID-FLAGS",
                           text, len, TEXT_LEN);
    wrong = first_wrong(text);
    if (wrong < TEXT_LEN)
        return tenrec_fail(err, TENREC_EINVAL,
                           "traceparent '%.*s': character %u is '%c', expected %s", QUOTED, text,
                           wrong + 1, text[wrong],
                           wrong == AT_ID - 1 || wrong == AT_SPAN - 1 || wrong == AT_FLAGS - 1
                               ? "'-'"
                               : "a digit or a letter from a to f");
    read_hex(text, 1, &version);
    read_hex(text + AT_ID, sizeof t.trace_id, t.trace_id);
    read_hex(text + AT_SPAN, sizeof t.span_id, t.span_id);
    read_hex(text + AT_FLAGS, 1, &t.flags);
    if (version == 0xff)
        return tenrec_fail(err, TENREC_EINVAL, "traceparent '%.*s': there is no version ff", QUOTED,
                           text);
    if (len > TEXT_LEN && (version == 0 || text[TEXT_LEN] != '-'))
        return tenrec_fail(
            err, TENREC_EINVAL, "traceparent '%.*s' has %zu characters, expected %d%s", QUOTED,
            text, len, TEXT_LEN, version == 0 ? " in version 00" : ", or a '-' behind them");
    if (!trace_context_valid(&t))
        return tenrec_fail(err, TENREC_EINVAL, "traceparent '%.*s': the id of the %s is zero",
                           QUOTED, text, is_zero(t.trace_id, sizeof t.trace_id) ? "trace" : "span");
    t.flags &= version == 0 ? TRACE_KNOWN : TRACE_SAMPLED;
    *ret = t;
    return TENREC_OK;
}

void trace_hex(const uint8_t *bytes, size_t n, char *ret)
{
    static const char digit[] = "0123456789abcdef";

    for (size_t i = 0; i < n; i++) {
        ret[2 * i] = digit[bytes[i] >> 4];
        ret[2 * i + 1] = digit[bytes[i] & 15];
    }
}

void trace_context_print(const struct trace_context *t, char ret[TRACE_TEXT_SIZE])
{
    memcpy(ret, "00-", AT_ID);
    trace_hex(t->trace_id, sizeof t->trace_id, ret + AT_ID);
    ret[AT_SPAN - 1] = ret[AT_FLAGS - 1] = '-';
    trace_hex(t->span_id, sizeof t->span_id, ret + AT_SPAN);
    trace_hex(&t->flags, 1, ret + AT_FLAGS);
    ret[TEXT_LEN] = '\0';
}

bool trace_context_valid(const struct trace_context *t)
{
    return !is_zero(t->trace_id, sizeof t->trace_id) && !is_zero(t->span_id, sizeof t->span_id);
}

uint64_t trace_below(double ratio)
{
    return (uint64_t)(ratio * (double)(UINT64_C(1) << ID_RANDOM_BITS));
}

bool trace_context_root(struct trace_context *ret, uint64_t below)
{
    uint64_t high, low, span;

    if (!trace_random(&high) || !trace_random(&low) || !trace_random(&span))
        return false;
    memcpy(ret->trace_id, &high, sizeof high);
    memcpy(ret->span_id, &span, sizeof span);
    /* Big endian, as other libraries sample by the same digits. */
    for (unsigned i = 0; i < sizeof low; i++)
        ret->trace_id[sizeof high + i] = (uint8_t)(low >> (56 - 8 * i));
    ret->flags = TRACE_RANDOM;
    if ((low & ((UINT64_C(1) << ID_RANDOM_BITS) - 1)) < below)
        ret->flags |= TRACE_SAMPLED;
    return true;
}

void trace_context_step(struct trace_context *t)
{
    uint64_t span;

    if (trace_random(&span))
        memcpy(t->span_id, &span, sizeof span);
}
