/* SPDX-License-Identifier: Apache-2.0 */
#include "observe/metrics/otlp_json.h"

#include "core/base/clock.h"
#include "core/base/utf8.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenrec/rpc.h>
#include <time.h>

enum { STATUS_ERROR = 2 }; /* of the protocol */

/* Of the field `flags` of a span, beside those of its context: whether its parent is known to be of
 * another process. */
enum { FLAG_KNOWN = 1 << 8, FLAG_REMOTE = 1 << 9 };

static void put_plain(FILE *to, const char *text, size_t n)
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

/* Bytes that are not UTF-8 become replacement characters: names of functions may have them. */
static void put_text(FILE *to, const char *text)
{
    size_t left = strlen(text);

    fputc('"', to);
    while (left > 0) {
        const size_t good = utf8_span(text, left);

        put_plain(to, text, good);
        text += good;
        left -= good;
        if (left > 0) {
            fputs("\\ufffd", to);
            text++;
            left--;
        }
    }
    fputc('"', to);
}

static void put_attribute(FILE *to, const char *key, const char *value, bool first)
{
    fprintf(to, "%s{\"key\":\"%s\",\"value\":{\"stringValue\":", first ? "" : ",", key);
    put_text(to, value);
    fputs("}}", to);
}

static void put_id(FILE *to, const char *key, const uint8_t *id, unsigned n)
{
    char text[2 * TRACE_ID_SIZE];

    trace_hex(id, n, text);
    fprintf(to, "\"%s\":\"%.*s\",", key, (int)(2 * n), text);
}

static bool has_parent(const struct trace_span *s)
{
    static const uint8_t none[TRACE_SPAN_ID_SIZE];

    return memcmp(s->parent, none, sizeof none) != 0;
}

/* unix_ns: what CLOCK_REALTIME is ahead of the times of the span */
static void put_span(FILE *to, const struct trace_span *s, uint64_t unix_ns)
{
    uint32_t flags = s->own.flags;

    fputc('{', to);
    put_id(to, "traceId", s->own.trace_id, TRACE_ID_SIZE);
    put_id(to, "spanId", s->own.span_id, TRACE_SPAN_ID_SIZE);
    if (has_parent(s)) {
        put_id(to, "parentSpanId", s->parent, TRACE_SPAN_ID_SIZE);
        flags |= s->remote ? FLAG_KNOWN | FLAG_REMOTE : FLAG_KNOWN;
    }
    fprintf(to, "\"flags\":%u,\"name\":", flags);
    put_text(to, s->function);
    fprintf(to,
            ",\"kind\":%d,\"startTimeUnixNano\":\"%" PRIu64 "\",\"endTimeUnixNano\":\"%" PRIu64
            "\",\"attributes\":[",
            (int)s->kind, s->start_ns + unix_ns, s->end_ns + unix_ns);
    put_attribute(to, "rpc.system.name", "tenrec", true);
    put_attribute(to, "rpc.method", s->function, false);
    if (s->peer)
        put_attribute(to, "server.address", s->peer, false);
    if (s->status != TENREC_OK)
        put_attribute(to, "error.type", tenrec_status_name(s->status), false);
    if (s->status != TENREC_OK)
        fprintf(to, "],\"status\":{\"code\":%d}}", STATUS_ERROR);
    else
        fputs("],\"status\":{}}", to);
}

static void put_resource(FILE *to, const struct trace_export *t)
{
    fputs("{\"resource\":{\"attributes\":[", to);
    put_attribute(to, "service.name", t->service, true);
    put_attribute(to, "service.instance.id", t->worker, false);
    put_attribute(to, "host.name", t->host, false);
    fprintf(to, ",{\"key\":\"process.pid\",\"value\":{\"intValue\":\"%d\"}}", (int)t->process);
    put_attribute(to, "telemetry.sdk.name", "tenrec", false);
    put_attribute(to, "telemetry.sdk.language", "c", false);
    put_attribute(to, "telemetry.sdk.version", tenrec_version_text(), false);
    fputs("]},\"scopeSpans\":[{\"scope\":{\"name\":\"tenrec\",\"version\":", to);
    put_text(to, tenrec_version_text());
    fputs("},\"spans\":[", to);
}

static bool is_first_of_sink(const struct trace_span *first, const struct trace_span *s)
{
    for (; first != s; first = first->next)
        if (first->sink == s->sink)
            return false;
    return true;
}

/* All spans of the sink of `s`, which is the first. */
static void put_sink(FILE *to, const struct trace_span *s, uint64_t unix_ns)
{
    const struct trace_sink *sink = s->sink;

    put_resource(to, (const struct trace_export *)(const void *)sink);
    put_span(to, s, unix_ns);
    for (s = s->next; s; s = s->next) {
        if (s->sink != sink)
            continue;
        fputc(',', to);
        put_span(to, s, unix_ns);
    }
    fputs("]}]}", to);
}

/* Read for each batch, so that a worker that runs for weeks follows the clock of its host. */
static uint64_t unix_ahead_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_REALTIME, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec - clock_now_ns();
}

char *otlp_json(const struct trace_span *first, size_t *ret_len)
{
    const uint64_t unix_ns = unix_ahead_ns();
    const char *between = "";
    char *text = NULL;
    FILE *to = open_memstream(&text, ret_len);
    bool good;

    if (!to)
        return NULL;
    fputs("{\"resourceSpans\":[", to);
    for (const struct trace_span *s = first; s; s = s->next) {
        if (!is_first_of_sink(first, s))
            continue;
        fputs(between, to);
        between = ",";
        put_sink(to, s, unix_ns);
    }
    fputs("]}", to);
    good = !ferror(to);
    if (fclose(to) == 0 && good)
        return text;
    free(text);
    return NULL;
}
