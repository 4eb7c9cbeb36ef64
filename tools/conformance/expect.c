/* SPDX-License-Identifier: Apache-2.0 */
#include "conformance/expect.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define TEXT_MAX 600

static unsigned within_ms, slower;
static char *shared_rule;
static atomic_bool is_decided;

void expect_within(unsigned ms, unsigned times)
{
    within_ms = ms * times;
    slower = times;
}

unsigned expect_ms(void)
{
    return within_ms;
}

unsigned expect_slow(unsigned ms)
{
    return ms * slower;
}

void expect_share(char *rule)
{
    shared_rule = rule;
}

void expect_of(const char *rule)
{
    if (shared_rule && !atomic_load(&is_decided))
        snprintf(shared_rule, EXPECT_RULE_MAX, "%s", rule ? rule : "");
}

void expect_of_last(const char *rule)
{
    if (shared_rule && !atomic_exchange(&is_decided, true))
        snprintf(shared_rule, EXPECT_RULE_MAX, "%s", rule);
}

/* Prints the text with its position behind it, and ends the process. */
static _Noreturn void expect_end(const char *file, int line, const char *text)
{
    const char *name = strrchr(file, '/');

    fflush(stdout);
    fprintf(stderr, "%s (%s:%d)\n", text, name ? name + 1 : file, line);
    fflush(stderr);
    _exit(CASE_FAILED);
}

#define TEXT_OF(fmt)                                                                               \
    char text[TEXT_MAX];                                                                           \
    va_list ap;                                                                                    \
    va_start(ap, fmt);                                                                             \
    vsnprintf(text, sizeof text, fmt, ap);                                                         \
    va_end(ap)

void expect_failed(const char *file, int line, const char *fmt, ...)
{
    TEXT_OF(fmt);
    expect_end(file, line, text);
}

void expect_late(const char *file, int line, const char *fmt, ...)
{
    TEXT_OF(fmt);
    expect_failed(file, line, "%s, after %u ms", text, within_ms);
}

void expect_not_offered(const char *what)
{
    fprintf(stderr, "%s\n", what);
    fflush(stderr);
    _exit(CASE_NOT_OFFERED);
}

void expect_unusable(const tenrec_error *why)
{
    fprintf(stderr, "%s", why->text);
    fflush(stderr);
    _exit(CASE_UNUSABLE);
}

void expect_equal_at(const char *file, int line, long long is, long long want, const char *fmt, ...)
{
    TEXT_OF(fmt);
    if (is != want)
        expect_failed(file, line, "%s is %lld, expected %lld", text, is, want);
}

void expect_bytes_at(const char *file, int line, const void *is, const void *want, size_t n,
                     const char *fmt, ...)
{
    size_t at = 0;

    TEXT_OF(fmt);
    while (at < n && ((const char *)is)[at] == ((const char *)want)[at])
        at++;
    if (at < n)
        expect_failed(file, line, "%s has other bytes than were sent, from byte %zu of %zu on",
                      text, at, n);
}

void expect_status_at(const char *file, int line, tenrec_status is, tenrec_status want,
                      const char *fmt, ...)
{
    TEXT_OF(fmt);
    if (is != want)
        expect_failed(file, line, "%s is %s, expected %s", text, tenrec_status_name(is),
                      tenrec_status_name(want));
}

void expect_ok_at(const char *file, int line, tenrec_status st, const tenrec_error *err,
                  const char *operation)
{
    if (st != TENREC_OK)
        expect_failed(file, line, "%s fails: %s", operation, err->text);
}

void expect_error_at(const char *file, int line, tenrec_status st, tenrec_status want,
                     const tenrec_error *err, const char *operation)
{
    if (st != want)
        expect_failed(file, line, "%s returns %s%s%s, expected %s", operation,
                      tenrec_status_name(st), st == TENREC_OK ? "" : ": ",
                      st == TENREC_OK ? "" : err->text, tenrec_status_name(want));
    if (!err->text[0])
        expect_failed(file, line, "%s returns %s without a text", operation,
                      tenrec_status_name(st));
}
