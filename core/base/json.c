/* SPDX-License-Identifier: Apache-2.0 */
#include "core/base/json.h"

#include "core/base/text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

enum { FORMATTED_MAX = 300 };

static void json_key(struct json *j, const char *key)
{
    if (j->comma)
        fputs(key ? "," : ",\n", j->to);
    j->comma = true;
    if (key)
        fprintf(j->to, "\"%s\":", key);
}

void json_begin(struct json *j, const char *key, char kind)
{
    json_key(j, key);
    fputc(kind, j->to);
    j->comma = false;
}

void json_end(struct json *j, char kind)
{
    fputc(kind == '{' ? '}' : ']', j->to);
    j->comma = true;
}

static void json_escape(FILE *to, const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const unsigned char c = (unsigned char)text[i];

        if (c < 0x20)
            fprintf(to, "\\u%04x", c);
        else if (c == '"' || c == '\\')
            fprintf(to, "\\%c", c);
        else
            fputc(c, to);
    }
}

void json_text(struct json *j, const char *key, const char *text)
{
    size_t left = strlen(text);

    json_key(j, key);
    fputc('"', j->to);
    while (left > 0) {
        const size_t good = utf8_span(text, left);

        json_escape(j->to, text, good);
        text += good;
        left -= good;
        if (left > 0) {
            fputs("\\ufffd", j->to);
            text++;
            left--;
        }
    }
    fputc('"', j->to);
}

void json_textf(struct json *j, const char *key, const char *fmt, ...)
{
    char text[FORMATTED_MAX];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    json_text(j, key, text);
}

void json_int(struct json *j, const char *key, int64_t n)
{
    json_key(j, key);
    fprintf(j->to, "%" PRId64, n);
}

void json_micros(struct json *j, const char *key, uint64_t ns)
{
    json_key(j, key);
    fprintf(j->to, "%" PRIu64 ".%03u", ns / 1000, (unsigned)(ns % 1000));
}
