/* SPDX-License-Identifier: Apache-2.0 */
#include "group/membership/torch_keys.h"

#include "core/base/memory.h"
#include "group/store/bytes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PREFIX "rpc_prefix_0"
#define KEY_ROOM (TENREC_NAME_MAX + 16)

enum { TRIES = 16 /* of a list that a worker changes without the lock */ };

tenrec_status torch_keys_open(struct tenrec_store *whole, struct tenrec_store *part,
                              const char *group, const char *run, struct tenrec_store **ret,
                              tenrec_error *err)
{
    const bool as_torch = strcmp(group, "default") == 0 && !*run;

    return tenrec_store_open_prefix(as_torch ? whole : part, PREFIX, ret, err);
}

/* ---- the list -------------------------------------------------------------------- */

static void add_item(struct bytes *b, const char *name, tenrec_peer id)
{
    char item[KEY_ROOM];

    bytes_add(b, item, (size_t)snprintf(item, sizeof item, "%s-%d,", name, (int)id));
}

/* Adds the members but those that torch would misread, and so fail to join: it parses the text
 * after the first '-' as the id. */
static void add_view(struct bytes *b, const struct membership_view *v)
{
    for (size_t i = 0; i < v->n; i++)
        if (!strchr(v->entry[i].name, '-'))
            add_item(b, v->entry[i].name, v->entry[i].id);
}

/* Reads "<name>-<id>", as torch writes it: a name may have '-' in it. */
static bool read_item(const char *item, size_t len, struct torch_entry *ret)
{
    size_t dash = len;

    while (dash > 0 && item[dash - 1] != '-')
        dash--;
    if (dash < 2 || dash - 1 > TENREC_NAME_MAX)
        return false;
    memcpy(ret->name, item, dash - 1);
    ret->name[dash - 1] = '\0';
    ret->id = (tenrec_peer)strtol(item + dash, NULL, 10);
    return true;
}

/* Returns true if the entry belongs to another worker. Ids and names are unique in the list, and
 * ours win, since the life of a torch worker cannot be checked. */
static bool is_anothers(const struct torch_entry *e, const struct membership_view *before,
                        const struct membership_view *after)
{
    const struct membership_view_entry *was = membership_view_by_id(before, e->id);

    return !(was && strcmp(was->name, e->name) == 0) && !membership_view_by_id(after, e->id) &&
           !membership_view_by_name(after, e->name);
}

bool torch_keys_next(const char **list, struct torch_entry *ret)
{
    while (**list) {
        const char *item = *list;
        const size_t len = strcspn(item, ",");

        *list = item + len + (item[len] == ',');
        if (read_item(item, len, ret))
            return true;
    }
    return false;
}

static bool list_find_other(const char *list, const struct membership_view *v,
                            struct torch_entry *ret)
{
    while (torch_keys_next(&list, ret)) {
        const struct membership_view_entry *ours = membership_view_by_id(v, ret->id);

        if (!ours || strcmp(ours->name, ret->name) != 0)
            return true;
    }
    return false;
}

tenrec_status torch_keys_find_other(struct tenrec_store *torch, const struct membership_view *v,
                                    uint64_t deadline_ns, struct torch_entry *ret, bool *ret_found,
                                    tenrec_error *err)
{
    struct store_value list;
    tenrec_status st = store_read(torch, TORCH_LIST, deadline_ns, &list, err);

    *ret_found = st == TENREC_OK && list.data && list_find_other(list.data, v, ret);
    free(list.data);
    return st;
}

static void add_others(struct bytes *b, const char *list, const struct membership_view *before,
                       const struct membership_view *after)
{
    for (const char *end; *list; list = end) {
        struct torch_entry e;

        end = list + strcspn(list, ",");
        if (!read_item(list, (size_t)(end - list), &e) || is_anothers(&e, before, after))
            bytes_add(b, list, (size_t)(end - list) + (*end == ','));
        end += *end == ',';
    }
}

static bool is_same(const struct store_value *v, const struct bytes *b)
{
    return v->len == b->len && (!b->data || memcmp(v->data, b->data, v->len) == 0);
}

/* Replaces `from` by `to`; ret_now->data (owns) is the value that was found instead. */
static tenrec_status list_replace(struct tenrec_store *torch, const struct store_value *from,
                                  const struct bytes *to, uint64_t deadline_ns,
                                  struct store_value *ret_now, tenrec_error *err)
{
    const struct store_value desired = { to->data, to->len };
    struct store_value now = { 0 };
    tenrec_status st;

    *ret_now = now;
    if (to->failed)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for torch's list of workers");
    st = store_compare_set(torch, TORCH_LIST, from, &desired, deadline_ns, &now, err);
    if (st == TENREC_OK && !is_same(&now, to))
        *ret_now = now;
    else
        free(now.data);
    return st;
}

/* Replaces the list by the members of `after` and the entries of others. `guess` is the list
 * without others: then one request suffices. */
static tenrec_status list_change(struct tenrec_store *torch, const struct bytes *guess,
                                 const struct membership_view *before,
                                 const struct membership_view *after, uint64_t deadline_ns,
                                 tenrec_error *err)
{
    struct store_value now = { 0 };
    struct bytes to = { 0 };
    tenrec_status st;

    if (guess->failed)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for torch's list of workers");
    add_view(&to, after);
    st = list_replace(torch, &(struct store_value){ guess->data, guess->len }, &to, deadline_ns,
                      &now, err);
    /* The expected value is also the answer for a missing key. */
    if (now.data && is_same(&now, guess))
        now.len = 0;
    for (int i = 0; i < TRIES && st == TENREC_OK && now.data; i++) {
        struct store_value seen = now;

        bytes_free(&to);
        add_view(&to, after);
        if (seen.len)
            add_others(&to, seen.data, before, after);
        st = list_replace(torch, &seen, &to, deadline_ns, &now, err);
        free(seen.data);
    }
    bytes_free(&to);
    if (st == TENREC_OK && now.data)
        st = tenrec_fail(err, TENREC_EAGAIN, "torch's list of workers changes too often");
    free(now.data);
    return st;
}

/* ---- changes --------------------------------------------------------------------- */

/* Two keys of each member, and their values, which are borrowed. */
struct member_keys {
    char (*text)[KEY_ROOM];
    const char **key;
    struct store_value *value;
    size_t n;
};

static tenrec_status member_keys_init(struct member_keys *k, size_t most, tenrec_error *err)
{
    *k = (struct member_keys){ .text = memory_new(2 * most + 1, sizeof *k->text),
                               .key = memory_new(2 * most + 1, sizeof *k->key),
                               .value = memory_new(2 * most + 1, sizeof *k->value) };
    if (k->text && k->key && k->value)
        return TENREC_OK;
    return tenrec_fail(err, TENREC_ENOMEM, "no memory for torch's keys of %zu workers", most);
}

static void member_keys_finish(struct member_keys *k)
{
    free(k->text);
    free(k->key);
    free(k->value);
}

static void member_keys_add(struct member_keys *k, const struct membership_view_entry *e,
                            const char *address)
{
    char(*text)[KEY_ROOM] = k->text + k->n;

    snprintf(text[0], KEY_ROOM, "names/%d", (int)e->id);
    snprintf(text[1], KEY_ROOM, "addrs/%s", e->name);
    /* Only read. */
    k->value[k->n] = (struct store_value){ (void *)(uintptr_t)e->name, strlen(e->name) };
    k->value[k->n + 1] = (struct store_value){ (void *)(uintptr_t)address, strlen(address) };
    k->key[k->n] = text[0];
    k->key[k->n + 1] = text[1];
    k->n += 2;
}

tenrec_status torch_keys_set(struct tenrec_store *torch, const struct torch_member *member,
                             size_t n, uint64_t deadline_ns, tenrec_error *err)
{
    struct member_keys k;
    tenrec_status st = member_keys_init(&k, n, err);

    for (size_t i = 0; i < n && st == TENREC_OK; i++)
        member_keys_add(&k, member[i].joined, member[i].address);
    if (st == TENREC_OK)
        st = store_set_all(torch, k.key, k.value, k.n, deadline_ns, err);
    member_keys_finish(&k);
    return st;
}

static void torch_keys_delete(struct tenrec_store *torch, const struct membership_view *before,
                              const struct membership_view *after, uint64_t deadline_ns)
{
    struct member_keys k;

    if (member_keys_init(&k, before->n, NULL) == TENREC_OK)
        for (size_t i = 0; i < before->n; i++)
            if (!membership_view_find(after, before->entry[i].id, before->entry[i].incarnation))
                member_keys_add(&k, &before->entry[i], "");
    if (k.n > 0)
        store_remove_all(torch, k.key, k.n, deadline_ns, NULL, NULL);
    member_keys_finish(&k);
}

tenrec_status torch_keys_replace(struct tenrec_store *torch, const struct membership_view *before,
                                 const struct membership_view *after, uint64_t deadline_ns,
                                 tenrec_error *err)
{
    struct bytes guess = { 0 };
    tenrec_status st;

    add_view(&guess, before);
    st = list_change(torch, &guess, before, after, deadline_ns, err);
    bytes_free(&guess);
    if (st == TENREC_OK)
        torch_keys_delete(torch, before, after, deadline_ns);
    return st;
}
