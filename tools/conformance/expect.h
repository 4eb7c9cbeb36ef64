/* SPDX-License-Identifier: Apache-2.0 */
/* expect.h - what a case demands. A demand that does not hold says so on stderr, and ends the
 * case, which is a process of its own. From any thread. */
#ifndef TENREC_TOOLS_CONFORMANCE_EXPECT_H
#define TENREC_TOOLS_CONFORMANCE_EXPECT_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <tenrec/error.h>

/* How the process of a case ends. A plugin that ends it, by exit(0) say, is not ok. */
enum { CASE_FAILED = 1, CASE_OK = 76, CASE_NOT_OFFERED = 77, CASE_UNUSABLE = 78 };

#if defined(__GNUC__)
__attribute__((noreturn))
#endif
TENREC_PRINTF(3, 4) void expect_failed(const char *file, int line, const char *fmt, ...);

/* Ends the case: the backend has no `what`, which is optional. */
#if defined(__GNUC__)
__attribute__((noreturn))
#endif
void expect_not_offered(const char *what);

/* Ends the case: there is no backend to be checked, which breaks no rule. */
#if defined(__GNUC__)
__attribute__((noreturn))
#endif
void expect_unusable(const tenrec_error *why);

void expect_equal_at(const char *file, int line, const char *text, long long is, long long want);
void expect_bytes_at(const char *file, int line, const char *text, const void *is, const void *want,
                     size_t n);
void expect_ok_at(const char *file, int line, const char *text, tenrec_status st,
                  const tenrec_error *err);
void expect_error_at(const char *file, int line, const char *text, tenrec_status st,
                     tenrec_status want, const tenrec_error *err);
/* How long a demand may take to come true, and how often slower this machine is said to be. */
void expect_within(unsigned ms, unsigned times);
unsigned expect_ms(void); /* expect_becomes looks once in each of them */
/* As much longer as this machine is slower. */
unsigned expect_slow(unsigned ms);

/* The demands that follow check this rule alone of the case's; NULL: all of them. */
void expect_of(const char *rule);
/* The same for a demand of another thread that does not hold: later calls change nothing. */
void expect_of_last(const char *rule);
enum { EXPECT_RULE_MAX = 8 }; /* "AG-13" and a NUL */
/* Memory of that size in which expect_of stores the rule, for another process. */
void expect_share(char *rule);

#define expect_fail(...) expect_failed(__FILE__, __LINE__, __VA_ARGS__)
#define expect(condition)                                                                          \
    do {                                                                                           \
        if (!(condition))                                                                          \
            expect_fail("%s does not hold", #condition);                                           \
    } while (0)
/* Integers of any type. */
#define expect_equal(is, want)                                                                     \
    expect_equal_at(__FILE__, __LINE__, #is, (long long)(is), (long long)(want))
#define expect_bytes(is, want, n) expect_bytes_at(__FILE__, __LINE__, #is, is, want, n)
/* A call that must fail with `want`, and say why. */
#define expect_error(status, want, err)                                                            \
    expect_error_at(__FILE__, __LINE__, #status, status, want, err)
#define expect_ok(status, err) expect_ok_at(__FILE__, __LINE__, #status, status, err)
#define expect_becomes(condition)                                                                  \
    do {                                                                                           \
        for (unsigned left_ = expect_ms(); !(condition); left_--) {                                \
            if (left_ == 0)                                                                        \
                expect_fail("%s does not come true", #condition);                                  \
            poll(NULL, 0, 1);                                                                      \
        }                                                                                          \
    } while (0)

#endif
