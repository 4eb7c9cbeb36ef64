/* SPDX-License-Identifier: Apache-2.0 */
/* watch.c - a watch of keys that are missing, from the revision after that of the read. */
#include "etcd.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define LOOK_MS 5000 /* poll interval, for a member that is stopped or has lost its leader */

struct watch {
    uint32_t n, n_set;           /* keys, and how many of them were set */
    bool is_set[WATCH_KEYS + 1]; /* by the number of the watch, which begins at 1 */
    bool heard;                  /* there is something to read */
};

/* A watch that is cancelled (its revision is compacted, the permission is missing, ...) is answered
 * with a read, too. */
static bool watch_hear(void *arg, const json_t *line)
{
    struct watch *w = arg;
    const json_t *result = json_object_get(line, "result");
    const int64_t id = answer_number(result, "watch_id");

    if (!result || json_is_true(json_object_get(result, "canceled"))) {
        w->heard = result && json_object_get(result, "compact_revision");
        return false;
    }
    if (json_array_size(json_object_get(result, "events")) == 0)
        return true; /* created */
    if (id >= 1 && id <= w->n && !w->is_set[id]) {
        w->is_set[id] = true;
        w->n_set++;
    }
    w->heard = w->n_set == w->n || id == w->n + 1; /* the identity of the store is gone */
    return !w->heard;
}

/* Adds "{...}\n" to a body; several requests are one stream. Takes the part. */
static bool watch_add(char **body, json_t *part)
{
    char *text = part ? json_dumps(part, JSON_COMPACT) : NULL, *longer = NULL;
    const size_t before = strlen(*body);

    json_decref(part);
    if (text && (longer = realloc(*body, before + strlen(text) + 2)) != NULL) {
        sprintf(longer + before, "%s\n", text);
        *body = longer;
    }
    free(text);
    return longer != NULL;
}

static json_t *watch_request(const char *key, int64_t revision, uint32_t id, const char *without)
{
    char from[24];

    snprintf(from, sizeof from, "%" PRId64, revision + 1);
    return json_pack("{s:{s:s,s:s,s:i,s:[s]}}", "create_request", "key", key, "start_revision",
                     from, "watch_id", (int)id, "filters", without);
}

static char *watch_body(struct watch *w, struct etcd_store *s, const char *const *keys, uint32_t n,
                        const bool *missing, int64_t revision)
{
    char *body = calloc(1, 1);
    bool ok = body != NULL;

    for (uint32_t i = 0; i < n && w->n < WATCH_KEYS && ok; i++)
        if (missing[i]) {
            char *key = txn_key(s, keys[i]);
            ok = key && watch_add(&body, watch_request(key, revision, ++w->n, "NODELETE"));
            free(key);
        }
    if (ok && watch_add(&body, watch_request(s->meta, revision, w->n + 1, "NOPUT")))
        return body;
    free(body);
    return NULL;
}

enum http_end watch_wait(struct etcd_store *s, const char *const *keys, uint32_t n,
                         const bool *missing, int64_t revision, uint64_t deadline_ns,
                         tenrec_error *err)
{
    const uint64_t look_ns = clock_deadline_ms(LOOK_MS);
    struct watch w = { 0 };
    char *body = watch_body(&w, s, keys, n, missing, revision);
    const struct http_request r = { .body = body, .fn = watch_hear, .arg = &w };
    enum http_end end;

    if (!body) {
        tenrec_fail(err, TENREC_ENOMEM, "no memory for a watch");
        return HTTP_NEVER;
    }
    end = etcd_follow(s, "watch", &r, look_ns < deadline_ns ? look_ns : deadline_ns, err);
    free(body);
    if (end == HTTP_LATE)
        return HTTP_OK;
    return end == HTTP_OK && !w.heard ? HTTP_AGAIN : end;
}
