/* SPDX-License-Identifier: Apache-2.0 */
#include "conformance/expect.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

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

void expect_failed(const char *file, int line, const char *fmt, ...)
{
    const char *name = strrchr(file, '/');
    va_list ap;

    fflush(stdout);
    fprintf(stderr, "%s:%d: ", name ? name + 1 : file, line);
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
    fflush(stderr);
    _exit(CASE_FAILED);
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

void expect_equal_at(const char *file, int line, const char *text, long long is, long long want)
{
    if (is != want)
        expect_failed(file, line, "%s is %lld, expected %lld", text, is, want);
}

void expect_bytes_at(const char *file, int line, const char *text, const void *is, const void *want,
                     size_t n)
{
    size_t at = 0;

    while (at < n && ((const char *)is)[at] == ((const char *)want)[at])
        at++;
    if (at < n)
        expect_failed(file, line, "%s has other bytes than were sent, from byte %zu of %zu on",
                      text, at, n);
}

void expect_ok_at(const char *file, int line, const char *text, tenrec_status st,
                  const tenrec_error *err)
{
    if (st != TENREC_OK)
        expect_failed(file, line, "%s fails: %s", text, err->text);
}

void expect_error_at(const char *file, int line, const char *text, tenrec_status st,
                     tenrec_status want, const tenrec_error *err)
{
    if (st != want)
        expect_failed(file, line, "%s is %s%s%s, expected %s", text, tenrec_status_name(st),
                      st == TENREC_OK ? "" : ": ", st == TENREC_OK ? "" : err->text,
                      tenrec_status_name(want));
    if (!err->text[0])
        expect_failed(file, line, "%s is %s without a text", text, tenrec_status_name(st));
}
