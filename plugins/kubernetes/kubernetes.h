/* SPDX-License-Identifier: Apache-2.0 */
/* kubernetes.h - one open store in the API of a Kubernetes cluster.
 *
 * Each key is a ConfigMap with the labels tenrec-store, the identity of the store, and tenrec-key,
 * the hash of the key; both are in its name, too. The ConfigMap tenrec-NAME has the identity and
 * the time of the last renewal, and owns the others, so that the cluster's garbage collector
 * removes them with it. It is owned by what owns the pod of the first opener, a Job say.
 *
 * Every read is a list by these labels that includes the owner: it sees a store that was removed. A
 * change is conditional: it creates its ConfigMap, or names the resourceVersion of the read. Each
 * ConfigMap remembers its last changes, which tells what became of a change without an answer. */
#ifndef KUBERNETES_KUBERNETES_H
#define KUBERNETES_KUBERNETES_H

#include "core/base/clock.h"
#include "store/asker.h"
#include "store/base64.h"
#include "store/draw.h"
#include "store/http.h"
#include "store/keeper.h"
#include "store/sum.h"
#include "store/turn.h"
#include "store/url.h"

#include <tenrec/plugin.h>
#include <tenrec/store_plugin.h>

#define KUBERNETES_KEYS 50    /* that a selector names; for more the whole store is listed */
#define KUBERNETES_CHANGES 16 /* that a ConfigMap remembers */
#define KUBERNETES_PATH 4096
#define KUBERNETES_HASH 33       /* of a key, with the NUL */
#define KUBERNETES_OWNER "owner" /* in the place of the hash */

struct kubernetes_options {
    const char *name_space, *token_file, *ca_file;
    bool tls;
    uint64_t lease_ms; /* TENREC_FOREVER: none */
};

struct kubernetes_store {
    struct tenrec_plugin_store *self;
    const struct kubernetes_options *options;
    struct store_url url;
    struct asker asker;
    struct http_pool pool;
    char name[400];
    char base[400];       /* https://10.96.0.1:443/api/v1/namespaces/jobs */
    char token_file[256]; /* "": none */
    char ca_file[256];
    char id[17];     /* of the store; "" until it is open */
    char uid[64];    /* of the owner */
    char client[17]; /* random */
    struct keeper keeper;
    struct turn turn; /* of changes: threads that change one key would be in each other's way */
    uint32_t asked;   /* number of this client's last change; of the holder of the turn */
};

extern const struct tenrec_store_ops kubernetes_ops;

tenrec_status kubernetes_open(const struct tenrec_store_init *in, struct tenrec_plugin_store *self,
                              tenrec_error *err);
void kubernetes_free(struct kubernetes_store *s);

/* ask.c */

/* One request until the deadline.
 *
 * method   NULL: GET, or POST with a body
 * path     behind the namespace: "/configmaps?..."
 * body     NULL: none; a patch if the method is PATCH
 * lost     as of asker_run
 * ret      200 for a success, 404, 409, 410
 * ret_body owned by the caller
 * errors   those of the operations */
tenrec_status kubernetes_ask(struct kubernetes_store *s, const char *method, const char *path,
                             const json_t *body, bool *lost, uint64_t deadline_ns, long *ret,
                             json_t **ret_body, tenrec_error *err);
/* One request whose answer goes on. */
enum http_end kubernetes_follow(struct kubernetes_store *s, const char *path, http_line_fn *fn,
                                void *arg, uint64_t deadline_ns, tenrec_error *err);

/* object.c: ConfigMaps, and lists of them. */

void object_hash(const struct kubernetes_store *s, const char *key, char ret[KUBERNETES_HASH]);
/* Appends "?labelSelector=..." for the owner and the keys. */
void object_selector(const struct kubernetes_store *s, const char *const *keys, uint32_t n,
                     char path[KUBERNETES_PATH]);
/* "a text" of metadata or of its labels or annotations; "" if there is none. */
const char *object_meta(const json_t *object, const char *name);
const char *object_of_meta(const json_t *object, const char *map, const char *name);
/* Free it. errors: EPROTOCOL, ENOMEM */
tenrec_status object_value(const json_t *object, char **ret, size_t *ret_len, tenrec_error *err);
/* A ConfigMap for `key`; `version` "" for a new one. NULL without memory. */
json_t *object_new(const struct kubernetes_store *s, const char *key, const void *data, size_t len,
                   const char *version, const char *changes);

/* list.c */

/* The keys that exist: what object_hash says of a key leads to its ConfigMap. */
struct list {
    json_t *answer;  /* owns */
    json_t *by_hash; /* owns */
    const char *version;
};

/* Lists those keys, or all of the store for 0.
 * errors: EPEER_LOST if the store is lost, and those of kubernetes_ask */
tenrec_status list_read(struct kubernetes_store *s, const char *const *keys, uint32_t n,
                        uint64_t deadline_ns, struct list *ret, tenrec_error *err);
void list_drop(struct list *l);
/* The ConfigMap of a key, borrowed; NULL: it is missing. *ret_st: EPROTOCOL for another key's. */
const json_t *list_find(const struct kubernetes_store *s, const struct list *l, const char *key);
uint32_t list_missing(const struct kubernetes_store *s, const struct list *l,
                      const char *const *keys, uint32_t n, bool *ret_missing);
tenrec_status list_lost(tenrec_error *err);

/* change.c: changes of one key that are made once. */

enum change_step { CHANGE_MAKE, CHANGE_LEAVE, CHANGE_FAIL };

struct change {
    const char *key;
    /* What there is to write, in `data` and `len`, by what the key holds: NULL if it is missing. */
    enum change_step (*plan)(struct change *c, const char *held, size_t held_len,
                             tenrec_error *err);
    const void *arg;
    const void *data;
    size_t len;
    char sum[24]; /* of an add */
    char *held;   /* owns; of a change that was left */
    size_t held_len;
    bool made;
};

tenrec_status change_run(struct kubernetes_store *s, struct change *c, uint64_t deadline_ns,
                         tenrec_error *err);
/* Removes what the list has under `key`; *ret: it was there. */
tenrec_status change_remove(struct kubernetes_store *s, const char *key, uint64_t deadline_ns,
                            bool *ret, tenrec_error *err);

/* watch.c */

/* Waits until the missing keys were set after that version of the list, or some time has passed.
 * HTTP_OK: read again at once; HTTP_AGAIN: after a moment. */
enum http_end watch_wait(struct kubernetes_store *s, const char *const *keys, uint32_t n,
                         const bool *missing, const char *version, uint64_t deadline_ns,
                         tenrec_error *err);

/* owner.c: the ConfigMap that owns the others. */

/* Finds the store, or makes it with a lease of `wanted_ms`. */
tenrec_status owner_find(struct kubernetes_store *s, uint64_t wanted_ms, uint64_t deadline_ns,
                         tenrec_error *err);
/* Renews the lease, for the keeper. */
tenrec_status owner_keep(void *store, tenrec_error *err);

#endif
