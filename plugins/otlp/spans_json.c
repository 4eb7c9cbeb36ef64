/* SPDX-License-Identifier: Apache-2.0 */
#include "otlp.h"

#include "core/base/json.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { STATUS_ERROR = 2 }; /* of the protocol */

/* Of the field `flags` of a span, beside those of its context: whether its parent is known to be of
 * another process. */
enum { FLAG_KNOWN = 1 << 8, FLAG_REMOTE = 1 << 9 };

static void put_attribute(struct json *j, const char *key, const char *value)
{
    json_begin(j, NULL, '{');
    json_text(j, "key", key);
    json_begin(j, "value", '{');
    json_text(j, "stringValue", value);
    json_end(j, '{');
    json_end(j, '{');
}

static void put_id(struct json *j, const char *key, const uint8_t *id, size_t n)
{
    char text[2 * 16 + 1] = "";

    for (size_t i = 0; i < n && i < 16; i++)
        snprintf(text + 2 * i, 3, "%02x", id[i]);
    json_text(j, key, text);
}

static bool has_parent(const struct tenrec_span *s)
{
    static const uint8_t none[sizeof s->parent];

    return memcmp(s->parent, none, sizeof none) != 0;
}

static void put_parent(struct json *j, const struct tenrec_span *s)
{
    uint32_t flags = s->flags;

    if (has_parent(s)) {
        put_id(j, "parentSpanId", s->parent, sizeof s->parent);
        flags |= s->remote ? FLAG_KNOWN | FLAG_REMOTE : FLAG_KNOWN;
    }
    json_int(j, "flags", flags);
}

static void put_attributes(struct json *j, const struct tenrec_span *s)
{
    json_begin(j, "attributes", '[');
    put_attribute(j, "rpc.system.name", "tenrec");
    put_attribute(j, "rpc.method", s->function);
    if (s->peer)
        put_attribute(j, "server.address", s->peer);
    if (s->status != TENREC_OK)
        put_attribute(j, "error.type", tenrec_status_name((tenrec_status)s->status));
    json_end(j, '[');
}

/* unix_ns: what CLOCK_REALTIME is ahead of the times of the span */
static void put_span(struct json *j, const struct tenrec_span *s, uint64_t unix_ns)
{
    json_begin(j, NULL, '{');
    put_id(j, "traceId", s->trace_id, sizeof s->trace_id);
    put_id(j, "spanId", s->span_id, sizeof s->span_id);
    put_parent(j, s);
    json_text(j, "name", s->function);
    json_int(j, "kind", (int)s->kind);
    json_textf(j, "startTimeUnixNano", "%" PRIu64, s->start_ns + unix_ns);
    json_textf(j, "endTimeUnixNano", "%" PRIu64, s->end_ns + unix_ns);
    put_attributes(j, s);
    json_begin(j, "status", '{');
    if (s->status != TENREC_OK)
        json_int(j, "code", STATUS_ERROR);
    json_end(j, '{');
    json_end(j, '{');
}

static void put_resource(struct json *j, const struct tenrec_origin *t, const char *version)
{
    json_begin(j, "resource", '{');
    json_begin(j, "attributes", '[');
    put_attribute(j, "service.name", t->service);
    put_attribute(j, "service.instance.id", t->worker);
    put_attribute(j, "host.name", t->host);
    json_begin(j, NULL, '{');
    json_text(j, "key", "process.pid");
    json_begin(j, "value", '{');
    json_textf(j, "intValue", "%d", (int)t->process);
    json_end(j, '{');
    json_end(j, '{');
    put_attribute(j, "telemetry.sdk.name", "tenrec");
    put_attribute(j, "telemetry.sdk.language", "c");
    put_attribute(j, "telemetry.sdk.version", version);
    json_end(j, '[');
    json_end(j, '{');
}

static void put_scope(struct json *j, const char *version)
{
    json_begin(j, "scope", '{');
    json_text(j, "name", "tenrec");
    json_text(j, "version", version);
    json_end(j, '{');
}

static bool is_first_of_origin(const struct tenrec_span *first, const struct tenrec_span *s)
{
    for (; first != s; first = first->next)
        if (first->origin == s->origin)
            return false;
    return true;
}

/* All spans of the origin of `s`, which is the first. */
static void put_origin(struct json *j, const struct tenrec_span *s, uint64_t unix_ns,
                       const char *version)
{
    const struct tenrec_origin *origin = s->origin;

    json_begin(j, NULL, '{');
    put_resource(j, origin, version);
    json_begin(j, "scopeSpans", '[');
    json_begin(j, NULL, '{');
    put_scope(j, version);
    json_begin(j, "spans", '[');
    for (; s; s = s->next)
        if (s->origin == origin)
            put_span(j, s, unix_ns);
    json_end(j, '[');
    json_end(j, '{');
    json_end(j, '[');
    json_end(j, '{');
}

/* Read for each batch, so that a worker that runs for weeks follows the clock of its host. */
static uint64_t unix_ahead_ns(void)
{
    struct timespec here, there;

    clock_gettime(CLOCK_MONOTONIC, &here);
    clock_gettime(CLOCK_REALTIME, &there);
    return (uint64_t)(there.tv_sec - here.tv_sec) * 1000000000u + (uint64_t)there.tv_nsec -
           (uint64_t)here.tv_nsec;
}

char *spans_json(const struct tenrec_span *first, const char *version, size_t *ret_len)
{
    const uint64_t unix_ns = unix_ahead_ns();
    char *text = NULL;
    struct json j = { .to = open_memstream(&text, ret_len) };
    bool good;

    if (!j.to)
        return NULL;
    json_begin(&j, NULL, '{');
    json_begin(&j, "resourceSpans", '[');
    for (const struct tenrec_span *s = first; s; s = s->next)
        if (is_first_of_origin(first, s))
            put_origin(&j, s, unix_ns, version);
    json_end(&j, '[');
    json_end(&j, '{');
    good = !ferror(j.to);
    if (fclose(j.to) == 0 && good)
        return text;
    free(text);
    return NULL;
}
