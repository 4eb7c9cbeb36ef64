/* SPDX-License-Identifier: Apache-2.0 */
#include "torch/member/worker_list.h"

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/memory.h"
#include "group/store/bytes.h"
#include "group/store/store.h"

#include <stdlib.h>
#include <string.h>

#define KEY_ROOM (TENREC_NAME_MAX + 32)

enum { FIRST_POLL_US = 2000, LONGEST_POLL_US = 100000, IDS = 32768 /* torch's int16 */ };

tenrec_status worker_list_check_kind(struct tenrec_store *keys, uint64_t deadline_ns,
                                     tenrec_error *err)
{
    char *now;
    tenrec_status st = store_swap_text(keys, TORCH_KIND, "", "false", deadline_ns, &now, err);

    if (st == TENREC_OK && strcmp(now, "false") != 0)
        st = tenrec_fail(err, TENREC_EGROUP,
                         "the group in this store is static: torch's workers have to call init_rpc "
                         "without world_size");
    free(now);
    return st;
}

/* ---- the token ---------------------------------------------------------------------- */

static void token_name(char ret[KEY_ROOM], const char *name, bool join)
{
    snprintf(ret, KEY_ROOM, "Token_for_%s_%s", name, join ? "join" : "leave");
}

/* Acquires the token of a dead worker, unless another process has, and wakes the workers that wait
 * for the dead one. */
static tenrec_status token_take_over(struct tenrec_store *keys, const char *dead, const char *mine,
                                     uint64_t deadline_ns, tenrec_error *err)
{
    char *now;
    tenrec_status st = store_swap_text(keys, TORCH_TOKEN, dead, mine, deadline_ns, &now, err);

    if (st != TENREC_OK || strcmp(now, mine) != 0) {
        free(now);
        return st;
    }
    free(now);
    log_line(TENREC_LOG_WARN, "torch", "no process listens for the holder of '%s': taken over",
             dead);
    return store_set(keys, dead, "Done", 4, deadline_ns, err);
}

tenrec_status worker_list_lock(struct tenrec_store *keys, const char *name, bool join,
                               uint64_t deadline_ns, tenrec_error *err)
{
    struct backoff pause = { FIRST_POLL_US, LONGEST_POLL_US };
    struct token_holder holder = { .refused = 0 };
    char mine[KEY_ROOM], *now;
    tenrec_status st;

    token_name(mine, name, join);
    for (;;) {
        st = store_swap_text(keys, TORCH_TOKEN, "", mine, deadline_ns, &now, err);
        if (st != TENREC_OK)
            return st;
        if (strcmp(now, mine) == 0)
            break;
        if (token_holder_is_dead(&holder, keys, now, deadline_ns)) {
            st = token_take_over(keys, now, mine, deadline_ns, err);
            free(now);
            if (st != TENREC_OK)
                return st;
            continue; /* it is mine, or another's now */
        }
        if (!backoff_take(&pause, deadline_ns)) {
            st = tenrec_fail(err, TENREC_ETIMEDOUT,
                             "the lock of torch's group is not released: '%s' has it", now);
            free(now);
            return st;
        }
        free(now);
    }
    free(now);
    /* torch's workers wait for this key, and would spin on one from before. */
    return store_remove(keys, mine, deadline_ns, err);
}

tenrec_status worker_list_wake(struct tenrec_store *keys, const char *name, uint64_t deadline_ns,
                               tenrec_error *err)
{
    char mine[KEY_ROOM];

    token_name(mine, name, true);
    return store_set(keys, mine, "Done", 4, deadline_ns, err);
}

void worker_list_unlock(struct tenrec_store *keys, const char *name, bool join,
                        uint64_t deadline_ns)
{
    char mine[KEY_ROOM];

    token_name(mine, name, join);
    if (store_set(keys, TORCH_TOKEN, "", 0, deadline_ns, NULL) == TENREC_OK)
        store_set(keys, mine, "Done", 4, deadline_ns, NULL);
}

/* ---- the list ----------------------------------------------------------------------- */

void worker_list_finish(struct worker_list *r)
{
    for (size_t i = 0; i < r->n; i++)
        free(r->entry[i].address);
    free(r->entry);
    *r = (struct worker_list){ .n = 0 };
}

const struct worker_list_entry *worker_list_find(const struct worker_list *r, const char *name)
{
    for (size_t i = 0; i < r->n; i++)
        if (strcmp(r->entry[i].worker.name, name) == 0)
            return &r->entry[i];
    return NULL;
}

static tenrec_status list_read(struct tenrec_store *keys, uint64_t deadline_ns,
                               struct worker_list *ret, tenrec_error *err)
{
    struct torch_entry worker;
    struct store_value list;
    tenrec_status st = store_read(keys, TORCH_LIST, deadline_ns, &list, err);
    const char *at = list.data ? list.data : "";
    size_t room = 0;

    *ret = (struct worker_list){ .n = 0 };
    while (st == TENREC_OK && torch_keys_next(&at, &worker)) {
        struct worker_list_entry *grown =
            memory_grow(ret->entry, ret->n, &room, sizeof *ret->entry);
        if (!grown) {
            st = tenrec_fail(err, TENREC_ENOMEM, "no memory for the workers of the group");
            break;
        }
        ret->entry = grown;
        ret->entry[ret->n++] = (struct worker_list_entry){ .worker = worker };
    }
    free(list.data);
    return st;
}

static tenrec_status address_read(struct tenrec_store *keys, const char *name, uint64_t deadline_ns,
                                  char **ret, tenrec_error *err)
{
    struct store_value address;
    char key[KEY_ROOM];
    tenrec_status st;

    snprintf(key, sizeof key, "addrs/%s", name);
    st = store_read(keys, key, deadline_ns, &address, err);
    *ret = st == TENREC_OK ? address.data : NULL;
    return st;
}

tenrec_status worker_list_read(struct tenrec_store *keys, uint64_t deadline_ns,
                               struct worker_list *ret, tenrec_error *err)
{
    tenrec_status st = list_read(keys, deadline_ns, ret, err);

    for (size_t i = 0; i < ret->n && st == TENREC_OK; i++)
        st =
            address_read(keys, ret->entry[i].worker.name, deadline_ns, &ret->entry[i].address, err);
    if (st != TENREC_OK)
        worker_list_finish(ret);
    return st;
}

tenrec_status worker_list_address(struct tenrec_store *keys, const char *name, tenrec_peer id,
                                  uint64_t deadline_ns, char **ret, tenrec_error *err)
{
    const struct worker_list_entry *e;
    struct worker_list list;
    tenrec_status st = list_read(keys, deadline_ns, &list, err);

    *ret = NULL;
    e = st == TENREC_OK ? worker_list_find(&list, name) : NULL;
    if (e && e->worker.id == id)
        st = address_read(keys, name, deadline_ns, ret, err);
    worker_list_finish(&list);
    return st;
}

tenrec_status worker_list_choose(const struct worker_list *r, tenrec_peer wanted, const char *name,
                                 tenrec_peer *ret, tenrec_error *err)
{
    bool used[IDS] = { false };
    tenrec_peer id = 0;

    if (worker_list_find(r, name))
        return tenrec_fail(err, TENREC_EGROUP, "torch's group has a worker called '%s'", name);
    for (size_t i = 0; i < r->n; i++) {
        if (r->entry[i].worker.id == wanted)
            return tenrec_fail(err, TENREC_EGROUP, "torch's worker '%s' has the id %d",
                               r->entry[i].worker.name, (int)wanted);
        if (r->entry[i].worker.id >= 0 && r->entry[i].worker.id < IDS)
            used[r->entry[i].worker.id] = true;
    }
    while (wanted < 0 && id < IDS - 1 && used[id])
        id++;
    *ret = wanted < 0 ? id : wanted;
    return TENREC_OK;
}

/* ---- changes ------------------------------------------------------------------------ */

static void list_add(struct bytes *b, const char *name, tenrec_peer id)
{
    char item[KEY_ROOM];

    bytes_add(b, item, (size_t)snprintf(item, sizeof item, "%s-%d,", name, (int)id));
}

/* Writes the list, and frees it. */
static tenrec_status list_write(struct tenrec_store *keys, struct bytes *list, uint64_t deadline_ns,
                                tenrec_error *err)
{
    tenrec_status st =
        list->failed ? tenrec_fail(err, TENREC_ENOMEM, "no memory for torch's list of workers")
                     : store_set(keys, TORCH_LIST, list->data, list->len, deadline_ns, err);

    bytes_free(list);
    return st;
}

tenrec_status worker_list_add(struct tenrec_store *keys, const struct worker_list *r,
                              const char *name, tenrec_peer id, const char *address,
                              uint64_t deadline_ns, tenrec_error *err)
{
    struct bytes list = { 0 };
    char key[KEY_ROOM];
    tenrec_status st;

    snprintf(key, sizeof key, "names/%d", (int)id);
    st = store_set(keys, key, name, strlen(name), deadline_ns, err);
    snprintf(key, sizeof key, "addrs/%s", name);
    if (st == TENREC_OK)
        st = store_set(keys, key, address, strlen(address), deadline_ns, err);
    if (st != TENREC_OK)
        return st;
    for (size_t i = 0; i < r->n; i++)
        list_add(&list, r->entry[i].worker.name, r->entry[i].worker.id);
    list_add(&list, name, id);
    return list_write(keys, &list, deadline_ns, err);
}

tenrec_status worker_list_remove(struct tenrec_store *keys, const char *name, tenrec_peer id,
                                 uint64_t deadline_ns, tenrec_error *err)
{
    char by_id[KEY_ROOM], by_name[KEY_ROOM];
    const char *own[] = { by_id, by_name };
    struct bytes list = { 0 };
    struct worker_list r;
    tenrec_status st = list_read(keys, deadline_ns, &r, err);

    if (st != TENREC_OK) {
        worker_list_finish(&r);
        return st;
    }
    for (size_t i = 0; i < r.n; i++)
        if (strcmp(r.entry[i].worker.name, name) != 0)
            list_add(&list, r.entry[i].worker.name, r.entry[i].worker.id);
    worker_list_finish(&r);
    st = list_write(keys, &list, deadline_ns, err);
    snprintf(by_id, sizeof by_id, "names/%d", (int)id);
    snprintf(by_name, sizeof by_name, "addrs/%s", name);
    if (st == TENREC_OK)
        st = store_remove_all(keys, own, 2, deadline_ns, NULL, err);
    return st;
}
