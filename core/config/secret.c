/* SPDX-License-Identifier: Apache-2.0 */
/* secret.c - passwords in URLs, masked before a text is printed. */
#include "core/config/config.h"

#include "core/base/memory.h"

#include <stdlib.h>
#include <string.h>

#define MASK "***"
#define SCHEME_LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-._"

enum { SCRUB_MIN = 4 /* bytes; any text may contain a shorter secret by chance */ };

/* A part of a text, not terminated. */
struct password {
    const char *p;
    size_t len;
};

/* Returns the text behind the scheme of the first URL; NULL without a URL. *ret_whole: the
 * scheme ends with "://". */
static const char *secret_rest(const char *text, bool *ret_whole)
{
    const char *url = strstr(text, "://");
    const size_t scheme = strspn(text, SCHEME_LETTERS);

    *ret_whole = url != NULL;
    if (url)
        return url + 3;
    return scheme > 0 && text[scheme] == ':' ? text + scheme + 1 : NULL;
}

/* Returns true for paths and names: they hold no passwords but any character. */
static bool secret_is_path(const char *text)
{
    return strncmp(text, "file://", 7) == 0 || strncmp(text, "memory://", 9) == 0;
}

/* "user:PASSWORD@" up to the last @ of the text: a password may hold any character. Without
 * the colon, or without "://", all text before the @ may be the password. */
static struct password secret_before_at(const char *rest, const char *at, bool whole)
{
    const char *colon = whole ? memchr(rest, ':', (size_t)(at - rest)) : NULL;
    const char *p = colon ? colon + 1 : rest;

    return (struct password){ p, (size_t)(at - p) };
}

/* "host:PORT" with a port that is no number: the user may have forgotten the @. */
static struct password secret_in_port(const char *rest)
{
    const char *close = *rest == '[' ? strchr(rest, ']') : NULL;
    const char *from = close ? close : rest;
    const char *colon = memchr(from, ':', strcspn(from, "/?"));
    size_t digits;

    if (!colon)
        return (struct password){ NULL, 0 };
    digits = strspn(colon + 1, "0123456789");
    if (strcspn(colon + 1, "/? ,]}'\"") == digits)
        return (struct password){ NULL, 0 };
    return (struct password){ colon + 1, strlen(colon + 1) };
}

static struct password secret_find(const char *text)
{
    bool whole;
    const char *rest = secret_is_path(text) ? NULL : secret_rest(text, &whole);
    const char *at = rest ? strrchr(rest, '@') : NULL;

    if (at)
        return secret_before_at(rest, at, whole);
    return rest && whole ? secret_in_port(rest) : (struct password){ NULL, 0 };
}

bool secret_is_in(const char *text)
{
    return secret_find(text).p != NULL;
}

char *secret_mask(const char *text)
{
    const struct password s = secret_find(text);
    const size_t before = s.p ? (size_t)(s.p - text) : 0;
    char *out = s.p ? memory_new(strlen(text) - s.len + sizeof MASK, 1) : memory_text(text);

    if (!out || !s.p)
        return out;
    memcpy(out, text, before);
    memcpy(out + before, MASK, sizeof MASK - 1);
    memcpy(out + before + sizeof MASK - 1, s.p + s.len, strlen(s.p + s.len) + 1);
    return out;
}

/* Returns how many bytes at the end of `text` are a cut secret. */
static size_t secret_cut(const char *text, size_t len, struct password s)
{
    for (size_t n = s.len < len ? s.len : len; n > 0; n--)
        if (memcmp(text + len - n, s.p, n) == 0)
            return n;
    return 0;
}

void secret_scrub(tenrec_error *err, const char *url)
{
    const struct password s = secret_find(url);
    char from[sizeof err->text];
    size_t at = 0, len, n = 0;

    if (!err || s.len < SCRUB_MIN)
        return;
    len = strlen(err->text);
    memcpy(from, err->text, len + 1);
    if (len + 1 == sizeof from)
        len -= secret_cut(from, len, s);
    while (at < len && n + 1 < sizeof err->text) {
        const bool here = len - at >= s.len && memcmp(from + at, s.p, s.len) == 0;
        const int put = snprintf(err->text + n, sizeof err->text - n, "%.*s", here ? 3 : 1,
                                 here ? MASK : from + at);
        n += (size_t)put;
        at += here ? s.len : 1;
    }
    err->text[n < sizeof err->text ? n : sizeof err->text - 1] = '\0';
}
