/* SPDX-License-Identifier: Apache-2.0 */
/* expect.h - what a case demands. A demand that does not hold says so on stderr, and ends the
 * case, which is a process of its own. From any thread.
 *
 * Its text is for the author of a plugin without the source of the cases: it has the expected and
 * the actual value. The file and line of the demand come last. */
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

/* The same, with the time that has passed. */
#if defined(__GNUC__)
__attribute__((noreturn))
#endif
TENREC_PRINTF(3, 4) void expect_late(const char *file, int line, const char *fmt, ...);

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

/* These take a noun for the value, as printf does: "the id of answer %zu". */
TENREC_PRINTF(5, 6)
void expect_equal_at(const char *file, int line, long long is, long long want, const char *fmt,
                     ...);
TENREC_PRINTF(6, 7)
void expect_bytes_at(const char *file, int line, const void *is, const void *want, size_t n,
                     const char *fmt, ...);
TENREC_PRINTF(5, 6)
void expect_status_at(const char *file, int line, tenrec_status is, tenrec_status want,
                      const char *fmt, ...);
/* And these the name of the operation. */
void expect_ok_at(const char *file, int line, tenrec_status st, const tenrec_error *err,
                  const char *operation);
void expect_error_at(const char *file, int line, tenrec_status st, tenrec_status want,
                     const tenrec_error *err, const char *operation);
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
/* The text says what is wrong if the condition does not hold. */
#define expect(condition, ...)                                                                     \
    do {                                                                                           \
        if (!(condition))                                                                          \
            expect_fail(__VA_ARGS__);                                                              \
    } while (0)
/* What the command needs itself: no fault of the plugin. */
#define expect_here(condition)                                                                     \
    expect(condition, "this command cannot go on: %s does not hold", #condition)
/* Integers of any type. */
#define expect_equal(is, want, ...)                                                                \
    expect_equal_at(__FILE__, __LINE__, (long long)(is), (long long)(want), __VA_ARGS__)
#define expect_bytes(is, want, n, ...) expect_bytes_at(__FILE__, __LINE__, is, want, n, __VA_ARGS__)
#define expect_status(is, want, ...)                                                               \
    expect_status_at(__FILE__, __LINE__, (tenrec_status)(is), want, __VA_ARGS__)
/* An operation that must fail with `want`, and say why. */
#define expect_error(status, want, err, operation)                                                 \
    expect_error_at(__FILE__, __LINE__, status, want, err, operation)
#define expect_ok(status, err, operation) expect_ok_at(__FILE__, __LINE__, status, err, operation)
/* The text says how things stand when the time is over. */
#define expect_becomes(condition, ...)                                                             \
    do {                                                                                           \
        for (unsigned left_ = expect_ms(); !(condition); left_--) {                                \
            if (left_ == 0)                                                                        \
                expect_late(__FILE__, __LINE__, __VA_ARGS__);                                      \
            poll(NULL, 0, 1);                                                                      \
        }                                                                                          \
    } while (0)

#endif
