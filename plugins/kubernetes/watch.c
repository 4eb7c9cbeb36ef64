/* SPDX-License-Identifier: Apache-2.0 */
/* watch.c - a watch of keys that are missing, from the version of the list that showed it. */
#include "kubernetes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOOK_S 20 /* then the keys are read again: a connection may be silent */

struct watch {
    json_t *missing; /* hashes of keys */
    bool heard;      /* there is something to read */
};

/* An ERROR, above all that the version is too old (410 Gone), is answered with a read as well. */
static bool watch_hear(void *arg, const json_t *line)
{
    struct watch *w = arg;
    const char *type = json_string_value(json_object_get(line, "type"));
    const json_t *object = json_object_get(line, "object");
    const char *hash = object_of_meta(object, "labels", "tenrec-key");

    if (!type || strcmp(type, "ERROR") == 0) {
        w->heard = type && json_integer_value(json_object_get(object, "code")) == 410;
        return false;
    }
    if (strcmp(type, "DELETED") == 0)
        w->heard = strcmp(hash, KUBERNETES_OWNER) == 0;
    else if (strcmp(type, "BOOKMARK") != 0)
        json_object_del(w->missing, hash);
    w->heard |= json_object_size(w->missing) == 0;
    return !w->heard;
}

enum http_end watch_wait(struct kubernetes_store *s, const char *const *keys, uint32_t n,
                         const bool *missing, const char *version, uint64_t deadline_ns,
                         tenrec_error *err)
{
    const uint64_t look_ns = clock_deadline_ms((uint64_t)LOOK_S * 1000);
    struct watch w = { .missing = json_object() };
    char path[KUBERNETES_PATH] = "/configmaps", hash[KUBERNETES_HASH];
    bool ok = w.missing != NULL;
    enum http_end end;
    size_t at;

    for (uint32_t i = 0; i < n && ok; i++)
        if (missing[i]) {
            object_hash(s, keys[i], hash);
            ok = json_object_set_new(w.missing, hash, json_true()) == 0;
        }
    if (!ok) {
        json_decref(w.missing);
        tenrec_fail(err, TENREC_ENOMEM, "no memory for a watch");
        return HTTP_NEVER;
    }
    object_selector(s, keys, n, path);
    at = strlen(path);
    snprintf(path + at, sizeof path - at, "&watch=1&resourceVersion=%.40s&timeoutSeconds=%d",
             version, LOOK_S);
    end = kubernetes_follow(s, path, watch_hear, &w, look_ns < deadline_ns ? look_ns : deadline_ns,
                            err);
    json_decref(w.missing);
    if (end == HTTP_LATE)
        return HTTP_OK;
    return end == HTTP_OK && !w.heard ? HTTP_AGAIN : end;
}
