/* SPDX-License-Identifier: Apache-2.0 */
/* tenrec/error.h - statuses and error texts.
 *
 * A status gives the scope of a failure, and the text gives its cause. The first function that
 * knows the cause sets the text. Its callers only prefix the place. Errors need no allocation and
 * no thread-local state: the caller owns the tenrec_error, usually on its stack. All functions are
 * in this header, so that a plugin does not link against Tenrec.
 *
 * Results: a function that fails stores NULL, 0 or false through each of its `ret` parameters (-1
 * for a descriptor), and zeroes a struct that it would have filled. A former value is therefore
 * never dropped twice.
 */
#ifndef TENREC_ERROR_H
#define TENREC_ERROR_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Name, value, scope, meaning. The values are part of the ABI and of the wire. New statuses use
 * free numbers. */
/* clang-format off */
#define TENREC_STATUS_MAP(X)                                                   \
    X(OK,             0,  "",      "success")                                   \
    X(EINVAL,        -1,  "call",  "argument out of contract")                  \
    X(ENOMEM,        -2,  "call",  "out of memory")                             \
    X(ETIMEDOUT,     -3,  "call",  "no answer before the deadline")             \
    X(ECANCELED,     -4,  "call",  "canceled by its caller or by shutdown")     \
    X(EUNSUPPORTED,  -5,  "call",  "this backend or build cannot do that")      \
    X(EINJECTED,     -6,  "call",  "failure injected by a test")                \
    X(EAGAIN,        -7,  "call",  "queue is full, try again")                  \
    X(EREMOTE,       -8,  "call",  "the called function failed, and gave no status") \
    X(ENOFUNCTION,   -9,  "call",  "the callee has no function of that name")   \
    X(EWOULDBLOCK,  -10,  "call",  "may not block here")                        \
    X(ENOTFOUND,    -11,  "call",  "no such key or name")                       \
    X(EEXIST,       -12,  "call",  "already exists")                            \
    X(ETOOBIG,      -13,  "call",  "larger than the configured limit")          \
    X(EDEVICE,      -14,  "call",  "no device map has a target for the tensor") \
    X(EPERM,        -15,  "call",  "not permitted: no proof of membership, or a rule forbids it") \
    X(ESTALE,       -16,  "call",  "the region was revoked or dropped, or is of a former life") \
    X(EPEER_UNKNOWN,-20,  "peer",  "no such peer")                              \
    X(EPEER_LOST,   -21,  "peer",  "connection to the peer broke")              \
    X(ECONNECT,     -22,  "peer",  "cannot connect to the peer")                \
    X(EPROTOCOL,    -23,  "peer",  "protocol violation by the peer")            \
    X(ESHUTDOWN,    -30,  "agent", "worker is not running (any more)")          \
    X(EPLUGIN,      -40,  "agent", "plugin cannot be loaded")                   \
    X(EABI,         -41,  "agent", "plugin speaks another ABI")                 \
    X(ECONFIG,      -42,  "agent", "configuration is wrong")                    \
    X(EBUSY,        -43,  "agent", "still in use")                              \
    X(EGROUP,       -44,  "agent", "group members disagree or are missing")     \
    X(EOS,          -50,  "agent", "the operating system refused")
/* clang-format on */

typedef enum tenrec_status {
#define X(name, value, reaches, text) TENREC_##name = value,
    TENREC_STATUS_MAP(X)
#undef X
} tenrec_status;

enum tenrec_error_flags {
    /* The called function ran and returned this error. Without this flag the status is from a
     * runtime: a local timeout, an unknown function at the callee. */
    TENREC_ERROR_CALLEE = 1 << 0,
};

/* Never grows: callers have it on their stacks, and 512 bytes are enough. */
typedef struct tenrec_error {
    tenrec_status code;
    int32_t os_errno;      /* errno of the cause; 0: none */
    int32_t worker;        /* id of the worker that failed; -1: unknown */
    uint32_t flags;        /* enum tenrec_error_flags */
    char worker_name[128]; /* its name, or "" */
    char text[368];        /* always terminated; truncated if too long */
} tenrec_error;

#if defined(__GNUC__)
#define TENREC_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
/* Errors are rare, so their code is optimized for size and kept apart from that of calls. */
#define TENREC_COLD __attribute__((cold))
#else
#define TENREC_PRINTF(fmt, args)
#define TENREC_COLD
#endif

/* Each object file has its own copy of these functions, so a plugin needs no library. A library
 * with many files keeps one copy: it compiles all files with -DTENREC_ERROR_INLINE=inline, and one
 * more file that only includes this header, with `extern inline`. */
#ifndef TENREC_ERROR_INLINE
#define TENREC_ERROR_INLINE static inline
#endif

/* Short name of a status ("ETIMEDOUT"); "?" for an unknown number. */
TENREC_ERROR_INLINE const char *tenrec_status_name(tenrec_status code)
{
    switch (code) {
#define X(name, value, reaches, text)                                                              \
    case TENREC_##name:                                                                            \
        return #name;
        TENREC_STATUS_MAP(X)
#undef X
    }
    return "?";
}

/* The meaning of a status, one phrase. */
TENREC_ERROR_INLINE const char *tenrec_status_text(tenrec_status code)
{
    switch (code) {
#define X(name, value, reaches, text)                                                              \
    case TENREC_##name:                                                                            \
        return text;
        TENREC_STATUS_MAP(X)
#undef X
    }
    return "unknown status";
}

/* Length of the UTF-8 character at `p` (terminated); 0 if the bytes are malformed or a control
 * character (C0, DEL, C1). */
TENREC_ERROR_INLINE size_t tenrec_text_character(const unsigned char *p)
{
    const unsigned char lead = p[0];
    size_t more = lead < 0xe0 ? 1 : lead < 0xf0 ? 2 : 3;

    if (lead < 0x80)
        return lead >= 0x20 && lead != 0x7f;
    if (lead < 0xc2 || lead > 0xf4)
        return 0;
    for (size_t i = 1; i <= more; i++)
        if ((p[i] & 0xc0) != 0x80) /* ends at the NUL, too */
            return 0;
    if ((lead == 0xc2 && p[1] < 0xa0) || (lead == 0xe0 && p[1] < 0xa0) ||
        (lead == 0xed && p[1] >= 0xa0) || (lead == 0xf0 && p[1] < 0x90) ||
        (lead == 0xf4 && p[1] >= 0x90))
        return 0;
    return more + 1;
}

/* Copies `from` to `to`, at most room - 1 bytes: \n, \t, \r and \xHH stand for
 * bytes that would end a line, steer a terminal, or are no UTF-8, but for those in
 * `keep`. An escaped text passes unchanged. */
TENREC_COLD
TENREC_ERROR_INLINE void tenrec_text_escape(char *to, size_t room, const char *from,
                                            const char *keep)
{
    const char *const digits = "0123456789abcdef";
    size_t used = 0;

    while (*from) {
        const unsigned char c = (unsigned char)*from;
        const size_t n =
            strchr(keep, *from) ? 1 : tenrec_text_character((const unsigned char *)from);
        const char name = c == '\n' ? 'n' : c == '\t' ? 't' : c == '\r' ? 'r' : '\0';
        const char hex[4] = { '\\', 'x', digits[c >> 4], digits[c & 15] };
        const char line[2] = { '\\', name };
        const size_t len = n ? n : name ? sizeof line : sizeof hex;

        if (used + len >= room)
            break;
        memcpy(to + used, n ? from : name ? line : hex, len);
        used += len;
        from += n ? n : 1;
    }
    to[used] = '\0';
}

/* The text of an exception, such as Python's, has lines; any other error is one line. */
TENREC_ERROR_INLINE const char *tenrec_text_kept(tenrec_status code)
{
    return code == TENREC_EREMOTE ? "\n\t" : "";
}

/* Sets *err (may be NULL; the text is escaped) and returns `code`, so that a failing function can
 * end with `return tenrec_fail(err, TENREC_EINVAL, "...")`. */
TENREC_COLD
TENREC_PRINTF(3, 0)
TENREC_ERROR_INLINE tenrec_status tenrec_vfail(tenrec_error *err, tenrec_status code,
                                               const char *fmt, va_list ap)
{
    char raw[sizeof((tenrec_error *)0)->text];

    if (err) {
        vsnprintf(raw, sizeof raw, fmt, ap); /* may print err->text */
        tenrec_text_escape(err->text, sizeof err->text, raw, tenrec_text_kept(code));
        err->code = code;
        err->os_errno = 0;
        err->worker = -1;
        err->flags = 0;
        err->worker_name[0] = '\0';
    }
    return code;
}

TENREC_COLD
TENREC_PRINTF(3, 4)
TENREC_ERROR_INLINE tenrec_status tenrec_fail(tenrec_error *err, tenrec_status code,
                                              const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    tenrec_vfail(err, code, fmt, ap);
    va_end(ap);
    return code;
}

/* The same with the errno that caused it; the text gets ": strerror". */
TENREC_COLD
TENREC_PRINTF(4, 5)
TENREC_ERROR_INLINE tenrec_status tenrec_fail_errno(tenrec_error *err, tenrec_status code,
                                                    int os_errno, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    tenrec_vfail(err, code, fmt, ap);
    va_end(ap);
    if (err) {
        size_t n = strlen(err->text);
        snprintf(err->text + n, sizeof err->text - n, ": %s", strerror(os_errno));
        err->os_errno = os_errno;
    }
    return code;
}

#ifdef __clang_analyzer__
/* The analyzer does not enter functions with "..." and would not know their return value. */
#define tenrec_fail(err, code, ...) (tenrec_fail(err, code, __VA_ARGS__), (code))
#define tenrec_fail_errno(err, code, os_errno, ...)                                                \
    (tenrec_fail_errno(err, code, os_errno, __VA_ARGS__), (code))
#endif

/* Puts "where: " before the text of the error. */
TENREC_COLD
TENREC_PRINTF(2, 3)
TENREC_ERROR_INLINE void tenrec_error_prefix(tenrec_error *err, const char *fmt, ...)
{
    char raw[sizeof((tenrec_error *)0)->text], old[sizeof raw];
    size_t n, room, len;
    va_list ap;

    if (!err)
        return;
    memcpy(old, err->text, sizeof old);
    va_start(ap, fmt);
    vsnprintf(raw, sizeof raw, fmt, ap);
    va_end(ap);
    tenrec_text_escape(err->text, sizeof err->text, raw, "");
    n = strlen(err->text);
    if (n + 3 > sizeof err->text)
        return; /* the place fills it all */
    memcpy(err->text + n, ": ", 2);
    room = sizeof err->text - (n + 2) - 1;
    len = strlen(old);
    if (len > room)
        for (len = room; len > 0 && ((unsigned char)old[len] & 0xc0) == 0x80;)
            len--; /* no part of a character stays */
    memcpy(err->text + n + 2, old, len);
    err->text[n + 2 + len] = '\0';
}

/* Prints the error as a line of stderr: "program: text", with the name of the worker that failed if
 * the text lacks it. Returns 1, the exit status of a program that failed. */
TENREC_COLD
TENREC_ERROR_INLINE int tenrec_error_print(const tenrec_error *err, const char *program)
{
    const bool named = strstr(err->text, err->worker_name) != NULL; /* also if it is "" */
    char worker[4 * sizeof err->worker_name];

    tenrec_text_escape(worker, sizeof worker, err->worker_name, "");
    fprintf(stderr, "%s: %s%s%s\n", program, named ? "" : worker, named ? "" : ": ", err->text);
    return 1;
}

#ifdef __cplusplus
}
#endif

#endif
