/* SPDX-License-Identifier: Apache-2.0 */
/* list.c - one consistent read of keys of the store, and of its owner. */
#include "kubernetes.h"

#include <stdlib.h>
#include <string.h>

tenrec_status list_lost(tenrec_error *err)
{
    return tenrec_fail(err, TENREC_EPEER_LOST,
                       "the cluster has lost the store (it was removed, or its lease expired): "
                       "restart all workers");
}

static tenrec_status list_index(const struct kubernetes_store *s, struct list *l, tenrec_error *err)
{
    const json_t *items = json_object_get(l->answer, "items");
    json_t *item;
    size_t i;

    if (!json_is_array(items) || !*l->version || strlen(l->version) > 20 ||
        l->version[strspn(l->version, "0123456789")])
        return tenrec_fail(err, TENREC_EPROTOCOL, "the answer is not a list of a Kubernetes API");
    json_array_foreach(items, i, item)
    {
        const char *hash = object_of_meta(item, "labels", "tenrec-key");
        if (*hash && json_object_set(l->by_hash, hash, item) != 0)
            return tenrec_fail(err, TENREC_ENOMEM, "no memory for a list");
    }
    if (strcmp(object_meta(json_object_get(l->by_hash, KUBERNETES_OWNER), "uid"), s->uid) != 0)
        return list_lost(err);
    return TENREC_OK;
}

tenrec_status list_read(struct kubernetes_store *s, const char *const *keys, uint32_t n,
                        uint64_t deadline_ns, struct list *ret, tenrec_error *err)
{
    struct list l = { .by_hash = json_object() };
    char path[KUBERNETES_PATH] = "/configmaps";
    long status;
    tenrec_status st;

    object_selector(s, keys, n, path);
    st = l.by_hash ? kubernetes_ask(s, NULL, path, NULL, NULL, deadline_ns, &status, &l.answer, err)
                   : tenrec_fail(err, TENREC_ENOMEM, "no memory for a list");
    l.version = st == TENREC_OK ? object_meta(l.answer, "resourceVersion") : "";
    if (st == TENREC_OK && status == 404)
        st = tenrec_fail(err, TENREC_EPROTOCOL, "the answer is not from a Kubernetes API");
    if (st == TENREC_OK)
        st = list_index(s, &l, err);
    if (st == TENREC_OK)
        *ret = l;
    else
        list_drop(&l);
    return st;
}

void list_drop(struct list *l)
{
    json_decref(l->answer);
    json_decref(l->by_hash);
}

const json_t *list_find(const struct kubernetes_store *s, const struct list *l, const char *key)
{
    char hash[KUBERNETES_HASH];

    object_hash(s, key, hash);
    return json_object_get(l->by_hash, hash);
}

uint32_t list_missing(const struct kubernetes_store *s, const struct list *l,
                      const char *const *keys, uint32_t n, bool *ret_missing)
{
    uint32_t missing = 0;

    for (uint32_t i = 0; i < n; i++)
        missing += ret_missing[i] = !list_find(s, l, keys[i]);
    return missing;
}
