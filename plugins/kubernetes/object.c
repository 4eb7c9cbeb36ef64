/* SPDX-License-Identifier: Apache-2.0 */
/* object.c - ConfigMaps, their names, and the selectors that find them. */
#include "kubernetes.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* FNV-1a of 128 bits: a name cannot hold most keys. */
void object_hash(const struct kubernetes_store *s, const char *key, char ret[KUBERNETES_HASH])
{
    __extension__ typedef unsigned __int128 wide;
    const wide prime = ((wide)0x1000000 << 64) | 0x13b;
    wide h = ((wide)0x6c62272e07bb0142 << 64) | 0x62b821756295c58d;

    for (const char *p = s->id; *p; p++)
        h = (h ^ (unsigned char)*p) * prime;
    for (; *key; key++)
        h = (h ^ (unsigned char)*key) * prime;
    snprintf(ret, KUBERNETES_HASH, "%016" PRIx64 "%016" PRIx64, (uint64_t)(h >> 64), (uint64_t)h);
}

void object_selector(const struct kubernetes_store *s, const char *const *keys, uint32_t n,
                     char path[KUBERNETES_PATH])
{
    size_t at = strlen(path);
    char hash[KUBERNETES_HASH];

    at += (size_t)snprintf(path + at, KUBERNETES_PATH - at, "?labelSelector=tenrec-store%%3D%s",
                           s->id);
    if (n == 0 || n > KUBERNETES_KEYS)
        return;
    at += (size_t)snprintf(path + at, KUBERNETES_PATH - at,
                           "%%2Ctenrec-key%%20in%%20%%28" KUBERNETES_OWNER);
    for (uint32_t i = 0; i < n; i++) {
        object_hash(s, keys[i], hash);
        at += (size_t)snprintf(path + at, KUBERNETES_PATH - at, "%%2C%s", hash);
    }
    snprintf(path + at, KUBERNETES_PATH - at, "%%29");
}

static const char *object_text(const json_t *map, const char *name)
{
    const char *text = json_string_value(json_object_get(map, name));

    return text ? text : "";
}

const char *object_meta(const json_t *object, const char *name)
{
    return object_text(json_object_get(object, "metadata"), name);
}

const char *object_of_meta(const json_t *object, const char *map, const char *name)
{
    return object_text(json_object_get(json_object_get(object, "metadata"), map), name);
}

tenrec_status object_value(const json_t *object, char **ret, size_t *ret_len, tenrec_error *err)
{
    *ret = base64_decode(object_text(json_object_get(object, "binaryData"), "value"), ret_len);
    if (*ret)
        return TENREC_OK;
    return *ret_len ? tenrec_fail(err, TENREC_ENOMEM, "no memory for a value")
                    : tenrec_fail(err, TENREC_EPROTOCOL, "the server sent a malformed value");
}

json_t *object_new(const struct kubernetes_store *s, const char *key, const void *data, size_t len,
                   const char *version, const char *changes)
{
    char hash[KUBERNETES_HASH], name[STORE_PREFIX_MAX + KUBERNETES_HASH + 32],
        owner[STORE_PREFIX_MAX + 16];
    char *text = base64_encode("", key, strlen(key)), *value = base64_encode("", data, len);
    json_t *object = NULL;

    object_hash(s, key, hash);
    snprintf(owner, sizeof owner, "tenrec-%s", s->url.prefix);
    snprintf(name, sizeof name, "%s-%s", owner, hash);
    if (text && value)
        object =
            json_pack("{s:s,s:s,s:{s:s,s:{s:s,s:s},s:{s:s},s:[{s:s,s:s,s:s,s:s}]},s:{s:s,s:s}}",
                      "apiVersion", "v1", "kind", "ConfigMap", "metadata", "name", name, "labels",
                      "tenrec-store", s->id, "tenrec-key", hash, "annotations", "tenrec-changes",
                      changes, "ownerReferences", "apiVersion", "v1", "kind", "ConfigMap", "name",
                      owner, "uid", s->uid, "binaryData", "key", text, "value", value);
    free(text);
    free(value);
    if (object && *version &&
        json_object_set_new(json_object_get(object, "metadata"), "resourceVersion",
                            json_string(version)) != 0) {
        json_decref(object);
        object = NULL;
    }
    return object;
}
