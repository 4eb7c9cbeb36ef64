/* SPDX-License-Identifier: Apache-2.0 */
/* change.c - changes that are made once: each has a name, which the ConfigMap remembers with the
 * sum of an add. A change whose answer was lost is looked for there. */
#include "kubernetes.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHANGES_ROOM ((size_t)KUBERNETES_CHANGES * 64)

/* A try: what it is called, and what the ConfigMap was like before it. */
struct tried {
    char name[32];              /* "9f3a80c1d2e4b567.17=" */
    char before[64];            /* the change before it; "": none */
    char version[64];           /* "": it creates the ConfigMap */
    char changes[CHANGES_ROOM]; /* newest first, each with a blank behind it */
    bool lost;                  /* a try may have been made */
};

/* Longer names of a foreign ConfigMap are cut: they are of no worker. */
static void tried_see(struct tried *t, const json_t *object)
{
    snprintf(t->version, sizeof t->version, "%s", object_meta(object, "resourceVersion"));
    snprintf(t->changes, sizeof t->changes, "%s",
             object_of_meta(object, "annotations", "tenrec-changes"));
    snprintf(t->before, sizeof t->before, "%.*s", (int)strcspn(t->changes, " "), t->changes);
}

/* `name` in front of the latest changes that there were. */
static void tried_add(const struct tried *t, const char *sum, char ret[CHANGES_ROOM])
{
    int n = snprintf(ret, CHANGES_ROOM, "%s%s ", t->name, sum);
    const char *from = t->changes;

    for (int i = 1; i < KUBERNETES_CHANGES && *from; i++) {
        const size_t len = strcspn(from, " ");
        if (len > 60)
            return;
        n += snprintf(ret + n, (size_t)(CHANGES_ROOM - n), "%.*s ", (int)len, from);
        from += len + (from[len] == ' ');
    }
}

static size_t tried_count(const char *changes)
{
    size_t n = 0;

    for (; *changes; changes++)
        n += *changes == ' ';
    return n;
}

/* Whether a try without an answer was made, by the ConfigMap now.
 * errors: EPEER_LOST if the ConfigMap has seen too many changes since */
static tenrec_status tried_judge(const struct tried *t, const json_t *object, struct change *c,
                                 tenrec_error *err)
{
    const char *changes = object_of_meta(object, "annotations", "tenrec-changes");
    const char *found = strstr(changes, t->name);

    if (found) {
        found += strlen(t->name);
        c->made = true;
        snprintf(c->sum, sizeof c->sum, "%.*s", (int)strcspn(found, " "), found);
        return TENREC_OK;
    }
    if (*t->before ? strstr(changes, t->before) != NULL : tried_count(changes) < KUBERNETES_CHANGES)
        return TENREC_OK;
    return tenrec_fail(err, TENREC_EPEER_LOST,
                       "the answer to a change was lost, and others have changed the key since: "
                       "the change may have been made");
}

static void change_path(const struct kubernetes_store *s, const char *key,
                        char ret[KUBERNETES_PATH])
{
    char hash[KUBERNETES_HASH];

    object_hash(s, key, hash);
    snprintf(ret, KUBERNETES_PATH, "/configmaps/tenrec-%s-%s", s->url.prefix, hash);
}

/* Creates or replaces the ConfigMap. *ret: it was made; others were faster otherwise. */
static tenrec_status change_write(struct kubernetes_store *s, const struct change *c,
                                  struct tried *t, uint64_t deadline_ns, bool *ret,
                                  tenrec_error *err)
{
    char changes[CHANGES_ROOM], path[KUBERNETES_PATH] = "/configmaps";
    json_t *object, *answer;
    long status = 0;
    tenrec_status st;

    tried_add(t, c->sum, changes);
    object = object_new(s, c->key, c->data, c->len, t->version, changes);
    if (!object)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for a request");
    if (*t->version)
        change_path(s, c->key, path);
    st = kubernetes_ask(s, *t->version ? "PUT" : NULL, path, object, &t->lost, deadline_ns, &status,
                        &answer, err);
    json_decref(object);
    if (st == TENREC_OK)
        json_decref(answer);
    *ret = st == TENREC_OK && status == 200;
    return st;
}

/* One look and one try. *ret: it is done. */
static tenrec_status change_once(struct kubernetes_store *s, struct change *c, struct tried *t,
                                 uint64_t deadline_ns, bool *ret, tenrec_error *err)
{
    struct list l;
    const json_t *object;
    enum change_step step = CHANGE_FAIL;
    tenrec_status st = list_read(s, &c->key, 1, deadline_ns, &l, err);

    if (st != TENREC_OK)
        return st;
    object = list_find(s, &l, c->key);
    free(c->held);
    c->held = NULL;
    if (t->lost)
        st = tried_judge(t, object, c, err);
    if (st == TENREC_OK && !c->made && object)
        st = object_value(object, &c->held, &c->held_len, err);
    tried_see(t, object);
    list_drop(&l);
    *ret = c->made;
    if (st != TENREC_OK || c->made)
        return st;
    t->lost = false;
    step = c->plan(c, c->held, c->held_len, err);
    *ret = step != CHANGE_MAKE;
    if (step != CHANGE_MAKE)
        return step == CHANGE_FAIL ? TENREC_EINVAL : TENREC_OK;
    st = change_write(s, c, t, deadline_ns, &c->made, err);
    *ret = c->made;
    return st;
}

static tenrec_status change_repeat(struct kubernetes_store *s, struct change *c,
                                   uint64_t deadline_ns, tenrec_error *err)
{
    struct backoff gap = ASKER_CONTEST;
    struct tried t = { .lost = false };
    bool done = false;

    snprintf(t.name, sizeof t.name, "%s.%" PRIu32 "=", s->client, ++s->asked);
    for (;;) {
        tenrec_status st = change_once(s, c, &t, deadline_ns, &done, err);
        if (st != TENREC_OK || done)
            return st;
        if ((st = asker_contest(&gap, deadline_ns, err)) != TENREC_OK)
            return st;
    }
}

tenrec_status change_run(struct kubernetes_store *s, struct change *c, uint64_t deadline_ns,
                         tenrec_error *err)
{
    tenrec_status st = turn_take(&s->turn, asker_answer_ns(deadline_ns), err);

    if (st != TENREC_OK)
        return st;
    st = change_repeat(s, c, deadline_ns, err);
    turn_give(&s->turn);
    return st;
}

/* Of the ConfigMap as the list has it. A removal without an answer counts as ours: the key was
 * there and is missing. *ret_done: it is missing now. */
static tenrec_status remove_once(struct kubernetes_store *s, const char *key, const json_t *object,
                                 uint64_t deadline_ns, bool *ret, bool *ret_done, tenrec_error *err)
{
    char path[KUBERNETES_PATH];
    json_t *answer,
        *body = json_pack("{s:s,s:s,s:{s:s,s:s}}", "apiVersion", "v1", "kind", "DeleteOptions",
                          "preconditions", "uid", object_meta(object, "uid"), "resourceVersion",
                          object_meta(object, "resourceVersion"));
    bool lost = false;
    long status = 0;
    tenrec_status st;

    if (!body)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for a request");
    change_path(s, key, path);
    st = kubernetes_ask(s, "DELETE", path, body, &lost, deadline_ns, &status, &answer, err);
    json_decref(body);
    if (st != TENREC_OK)
        return st;
    json_decref(answer);
    *ret_done = status == 200 || status == 404;
    *ret = status == 200 || (status == 404 && lost);
    return TENREC_OK;
}

tenrec_status change_remove(struct kubernetes_store *s, const char *key, uint64_t deadline_ns,
                            bool *ret, tenrec_error *err)
{
    struct backoff gap = ASKER_CONTEST;
    bool done = false;

    *ret = false;
    for (;;) {
        const json_t *object;
        struct list l;
        tenrec_status st = list_read(s, &key, 1, deadline_ns, &l, err);
        if (st != TENREC_OK)
            return st;
        object = list_find(s, &l, key);
        done = !object;
        if (object)
            st = remove_once(s, key, object, deadline_ns, ret, &done, err);
        list_drop(&l);
        if (st != TENREC_OK || done)
            return st;
        if ((st = asker_contest(&gap, deadline_ns, err)) != TENREC_OK)
            return st;
    }
}
