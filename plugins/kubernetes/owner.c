/* SPDX-License-Identifier: Apache-2.0 */
/* owner.c - the ConfigMap that owns the others: it has the identity of the store, and the time of
 * the last renewal, by the clock of a host. A cluster deletes nothing by itself after a time: a
 * worker that opens a store whose lease has passed deletes it and makes another. */
#include "kubernetes.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define VANISH_MS 100000 /* for an owner that is being deleted */

static uint64_t owner_now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void owner_path(const struct kubernetes_store *s, char ret[KUBERNETES_PATH])
{
    snprintf(ret, KUBERNETES_PATH, "/configmaps/tenrec-%s", s->url.prefix);
}

static uint64_t owner_number(const json_t *object, const char *map, const char *name)
{
    const char *text =
        map ? object_of_meta(object, map, name)
            : json_string_value(json_object_get(json_object_get(object, "data"), name));

    return text ? strtoull(text, NULL, 10) : 0;
}

/* What owns the pod of this process becomes the owner of the store: a reference to it, or an empty
 * list for a process outside of the cluster, or without the right to read its pod. */
static json_t *owner_of_pod(struct kubernetes_store *s, uint64_t deadline_ns)
{
    const char *pod = secure_getenv("HOSTNAME");
    char path[KUBERNETES_PATH];
    json_t *body = NULL, *ref, *owners = json_array();
    long status = 0;

    if (!owners || !pod || !secure_getenv("KUBERNETES_SERVICE_HOST") || strlen(pod) > 253 ||
        pod[strspn(pod, "abcdefghijklmnopqrstuvwxyz0123456789.-")])
        return owners;
    snprintf(path, sizeof path, "/pods/%s", pod);
    if (kubernetes_ask(s, NULL, path, NULL, NULL, deadline_ns, &status, &body, NULL) != TENREC_OK)
        return owners;
    ref = json_array_get(json_object_get(json_object_get(body, "metadata"), "ownerReferences"), 0);
    if (status == 200 && ref)
        ref = json_pack("{s:O,s:O,s:O,s:O}", "apiVersion", json_object_get(ref, "apiVersion"),
                        "kind", json_object_get(ref, "kind"), "name", json_object_get(ref, "name"),
                        "uid", json_object_get(ref, "uid"));
    else
        ref = NULL;
    if (ref)
        json_array_append_new(owners, ref);
    json_decref(body);
    return owners;
}

/* Takes the store as it is. *ret: it lives; otherwise its lease has expired. */
static tenrec_status owner_take(struct kubernetes_store *s, const json_t *object, bool *ret,
                                tenrec_error *err)
{
    const json_t *id = json_object_get(json_object_get(object, "data"), "id");
    const char *text = json_string_value(id);

    if (!text || strlen(text) != 16 || text[strspn(text, "0123456789abcdef")] ||
        strlen(object_meta(object, "uid")) >= sizeof s->uid || !*object_meta(object, "uid"))
        return tenrec_fail(err, TENREC_ECONFIG,
                           "the ConfigMap \"tenrec-%s\" is not of a store: choose another name",
                           s->url.prefix);
    s->keeper.lease_ms = owner_number(object, NULL, "lease");
    snprintf(s->id, sizeof s->id, "%s", text);
    snprintf(s->uid, sizeof s->uid, "%s", object_meta(object, "uid"));
    *ret = !*object_meta(object, "deletionTimestamp") &&
           (!s->keeper.lease_ms ||
            owner_now_ms() <
                owner_number(object, "annotations", "tenrec-renewed") + s->keeper.lease_ms);
    return TENREC_OK;
}

/* *ret: the store was made by this process; another was faster otherwise. */
static tenrec_status owner_make(struct kubernetes_store *s, uint64_t wanted_ms,
                                uint64_t deadline_ns, bool *ret, tenrec_error *err)
{
    char name[STORE_PREFIX_MAX + 16], lease[24], now[24];
    json_t *object, *answer = NULL;
    long status = 0;
    bool lost = false;
    tenrec_status st;

    snprintf(name, sizeof name, "tenrec-%s", s->url.prefix);
    snprintf(lease, sizeof lease, "%" PRIu64, wanted_ms);
    snprintf(now, sizeof now, "%" PRIu64, owner_now_ms());
    object = json_pack("{s:s,s:s,s:{s:s,s:{s:s,s:s},s:{s:s},s:o},s:{s:s,s:s}}", "apiVersion", "v1",
                       "kind", "ConfigMap", "metadata", "name", name, "labels", "tenrec-store",
                       s->client, "tenrec-key", KUBERNETES_OWNER, "annotations", "tenrec-renewed",
                       now, "ownerReferences", owner_of_pod(s, deadline_ns), "data", "id",
                       s->client, "lease", lease);
    if (!object)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for a store");
    st = kubernetes_ask(s, NULL, "/configmaps", object, &lost, deadline_ns, &status, &answer, err);
    json_decref(object);
    if (st == TENREC_OK && status == 404)
        st = tenrec_fail(err, TENREC_ECONFIG, "there is no namespace of that name");
    *ret = false;
    if (st == TENREC_OK && status == 200)
        st = owner_take(s, answer, ret, err);
    json_decref(answer);
    return st;
}

/* Deletes the owner as it was seen; the cluster deletes the keys after it. */
static tenrec_status owner_delete(struct kubernetes_store *s, const char *version,
                                  uint64_t deadline_ns, tenrec_error *err)
{
    char path[KUBERNETES_PATH];
    json_t *answer = NULL,
           *body = json_pack("{s:s,s:s,s:s,s:{s:s,s:s}}", "apiVersion", "v1", "kind",
                             "DeleteOptions", "propagationPolicy", "Background", "preconditions",
                             "uid", s->uid, "resourceVersion", version);
    bool lost = false;
    long status;
    tenrec_status st;

    owner_path(s, path);
    st = body ? kubernetes_ask(s, "DELETE", path, body, &lost, deadline_ns, &status, &answer, err)
              : tenrec_fail(err, TENREC_ENOMEM, "no memory for a request");
    json_decref(body);
    json_decref(answer);
    return st;
}

/* Sets the time of the last renewal, unless another process has just done so.
 * *ret: the store exists. */
static tenrec_status owner_renew(struct kubernetes_store *s, uint64_t deadline_ns, bool *ret,
                                 tenrec_error *err)
{
    char path[KUBERNETES_PATH], now[24];
    json_t *patch, *answer = NULL;
    uint64_t renewed;
    long status = 0;
    tenrec_status st;

    owner_path(s, path);
    *ret = true;
    st = kubernetes_ask(s, NULL, path, NULL, NULL, deadline_ns, &status, &answer, err);
    if (st == TENREC_OK)
        *ret = status == 200 && strcmp(object_meta(answer, "uid"), s->uid) == 0;
    renewed = owner_number(answer, "annotations", "tenrec-renewed");
    json_decref(answer);
    if (st != TENREC_OK || !*ret || !s->keeper.lease_ms ||
        owner_now_ms() < renewed + s->keeper.lease_ms / 6)
        return st;
    snprintf(now, sizeof now, "%" PRIu64, owner_now_ms());
    /* The uid is a condition. */
    patch = json_pack("{s:{s:s,s:{s:s}}}", "metadata", "uid", s->uid, "annotations",
                      "tenrec-renewed", now);
    st = patch ? kubernetes_ask(s, "PATCH", path, patch, NULL, deadline_ns, &status, &answer, err)
               : tenrec_fail(err, TENREC_ENOMEM, "no memory for a request");
    json_decref(patch);
    if (st != TENREC_OK)
        return st;
    json_decref(answer);
    *ret = status == 200 || status == 409; /* the next renewal will tell */
    return TENREC_OK;
}

/* *ret: found or made. */
static tenrec_status owner_look(struct kubernetes_store *s, uint64_t wanted_ms,
                                uint64_t deadline_ns, bool *ret, tenrec_error *err)
{
    char path[KUBERNETES_PATH];
    json_t *object;
    long status = 0;
    tenrec_status st;

    owner_path(s, path);
    st = kubernetes_ask(s, NULL, path, NULL, NULL, deadline_ns, &status, &object, err);
    if (st != TENREC_OK)
        return st;
    *ret = false;
    if (status != 200) {
        json_decref(object);
        return owner_make(s, wanted_ms, deadline_ns, ret, err);
    }
    st = owner_take(s, object, ret, err);
    if (st == TENREC_OK && !*ret)
        st = owner_delete(s, object_meta(object, "resourceVersion"), deadline_ns, err);
    json_decref(object);
    if (st == TENREC_OK && *ret)
        st = owner_renew(s, deadline_ns, ret, err);
    return st;
}

tenrec_status owner_find(struct kubernetes_store *s, uint64_t wanted_ms, uint64_t deadline_ns,
                         tenrec_error *err)
{
    struct backoff gap = { ASKER_GAP_US, VANISH_MS };
    bool found = false;
    tenrec_status st = TENREC_OK;

    while (st == TENREC_OK && !found) {
        st = owner_look(s, wanted_ms, deadline_ns, &found, err);
        if (st == TENREC_OK && !found && !backoff_take(&gap, deadline_ns))
            st = tenrec_fail(err, TENREC_ETIMEDOUT, "a store that has expired is not deleted");
    }
    return st;
}

tenrec_status owner_keep(void *store, tenrec_error *err)
{
    bool exists;
    tenrec_status st = owner_renew(store, clock_deadline_ms(KEEPER_CALL_MS), &exists, err);

    return st == TENREC_OK && !exists ? list_lost(err) : st;
}
