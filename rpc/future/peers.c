/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/future/peers.h"

#include "core/base/memory.h"
#include "core/base/text.h"

#include <stdlib.h>

enum { LISTS_MAX = 4096 };

/* The fields leave no gap before the name: a large group has many. */
struct peer {
    struct peer *next; /* in its list; set before the entry can be found */
    _Atomic uint64_t incarnation;
    _Atomic tenrec_peer id;
    char name[];
};

static size_t list_of(const struct peers *p, const char *name)
{
    uint64_t h = 0xcbf29ce484222325u; /* FNV-1a */

    for (; *name; name++)
        h = (h ^ (uint8_t)*name) * 0x100000001b3u;
    return (size_t)(h ^ (h >> 32)) & (p->n_lists - 1);
}

tenrec_status peers_init(struct peers *p, size_t room, tenrec_peer me, tenrec_error *err)
{
    size_t n_lists = 64;

    while (n_lists < room && n_lists < LISTS_MAX)
        n_lists *= 2;
    *p = (struct peers){ .me = me, .room = room, .members = room, .n_lists = n_lists };
    p->by_id = memory_new(room, sizeof *p->by_id);
    p->by_name = memory_new(n_lists, sizeof *p->by_name);
    if (p->by_id && p->by_name)
        return TENREC_OK;
    peers_finish(p);
    return tenrec_fail(err, TENREC_ENOMEM, "no memory for %zu workers", room);
}

static bool is_in_block(const struct peers *p, const struct peer *one)
{
    return p->block && (uintptr_t)one - (uintptr_t)p->block < p->block_bytes;
}

void peers_finish(struct peers *p)
{
    struct peer *one, *next;

    for (size_t i = 0; p->by_name && i < p->n_lists; i++)
        for (one = atomic_load(&p->by_name[i]); one; one = next) {
            next = one->next;
            if (!is_in_block(p, one))
                free(one);
        }
    free(p->block);
    free(p->by_id);
    free(p->by_name);
    *p = (struct peers){ .room = 0 };
}

static struct peer *peers_find_entry(const struct peers *p, const char *name)
{
    struct peer *one =
        p->n_lists ? atomic_load_explicit(&p->by_name[list_of(p, name)], memory_order_acquire)
                   : NULL;

    while (one && strcmp(one->name, name) != 0)
        one = one->next;
    return one;
}

static struct peer *peers_at(const struct peers *p, tenrec_peer id)
{
    return id >= 0 && (size_t)id < p->room
               ? atomic_load_explicit(&p->by_id[id], memory_order_acquire)
               : NULL;
}

static size_t entry_bytes(const char *name)
{
    const size_t bytes = offsetof(struct peer, name) + strlen(name) + 1;

    return (bytes + _Alignof(struct peer) - 1) / _Alignof(struct peer) * _Alignof(struct peer);
}

/* Adds the entry of a name that has none. */
static void peer_enter(struct peers *p, struct peer *one, tenrec_peer id, uint64_t incarnation,
                       const char *name)
{
    const size_t list = list_of(p, name);

    memcpy(one->name, name, strlen(name) + 1);
    atomic_init(&one->id, id);
    atomic_init(&one->incarnation, incarnation);
    one->next = atomic_load_explicit(&p->by_name[list], memory_order_relaxed);
    atomic_store_explicit(&p->by_id[id], one, memory_order_release);
    atomic_store_explicit(&p->by_name[list], one, memory_order_release);
}

static void peers_count(struct peers *p, size_t top, size_t n)
{
    if (top > atomic_load(&p->top))
        atomic_store(&p->top, top);
    atomic_fetch_add(&p->n, n);
    atomic_fetch_add(&p->changes, n);
}

tenrec_status peers_add(struct peers *p, tenrec_peer id, uint64_t incarnation, const char *name,
                        tenrec_error *err)
{
    struct peer *one = peers_find_entry(p, name);

    if (!one) {
        one = memory_new(1, entry_bytes(name));
        if (!one)
            return tenrec_fail(err, TENREC_ENOMEM, "no memory for worker \"%s\"", name);
        peer_enter(p, one, id, incarnation, name);
    } else {
        atomic_store(&one->incarnation, incarnation);
        atomic_store(&p->by_id[id], one);
        atomic_store(&one->id, id);
    }
    if (!peers_is_linked(p, id))
        peers_count(p, (size_t)id + 1, 1);
    return TENREC_OK;
}

tenrec_status peers_fill(struct peers *p, const struct tenrec_member *member, uint32_t n,
                         tenrec_error *err)
{
    size_t top = 0, at = 0;

    for (uint32_t i = 0; i < n; i++)
        p->block_bytes += entry_bytes(member[i].name);
    if (n && !(p->block = memory_new(p->block_bytes, 1)))
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for %u workers", n);
    for (uint32_t i = 0; i < n; i++) {
        struct peer *one = (struct peer *)(void *)(p->block + at);

        at += entry_bytes(member[i].name);
        peer_enter(p, one, member[i].id, member[i].incarnation, member[i].name);
        top = (size_t)member[i].id >= top ? (size_t)member[i].id + 1 : top;
    }
    peers_count(p, top, n);
    return TENREC_OK;
}

void peers_remove(struct peers *p, tenrec_peer id)
{
    struct peer *one = peers_at(p, id);

    if (!peers_has(p, id))
        return;
    atomic_store(&one->id, PEERS_NOBODY);
    if (peers_is_linked(p, id))
        return;
    atomic_fetch_sub(&p->n, 1);
    atomic_fetch_add(&p->changes, 1);
}

void peers_end(struct peers *p, const tenrec_error *why)
{
    p->why = *why;
    atomic_store(&p->ended, &p->why);
    /* `last` stays: a thread that reads it finds an entry without an id. */
    for (size_t i = 0; i < atomic_load(&p->top); i++)
        if ((tenrec_peer)i != p->me)
            peers_remove(p, (tenrec_peer)i);
}

static tenrec_status fail_unknown(const struct peers *p, const char *name, tenrec_error *err)
{
    const tenrec_error *ended = atomic_load(&p->ended);
    struct suggestion near;

    if (ended) {
        if (err)
            *err = *ended;
        return ended->code;
    }
    if (!err)
        return TENREC_EPEER_UNKNOWN;
    suggest_init(&near, name);
    for (size_t i = 0; i < atomic_load(&p->top); i++)
        if (peers_has(p, (tenrec_peer)i))
            suggest_try(&near, peers_name(p, (tenrec_peer)i));
    return tenrec_fail(err, TENREC_EPEER_UNKNOWN, "no worker is called '%s'%s%s", name,
                       peers_find_entry(p, name)
                           ? " any more: it has left the group, or its link was dropped"
                           : "",
                       peers_find_entry(p, name) ? "" : suggest_hint(&near));
}

tenrec_status peers_find(const struct peers *p, const char *name, tenrec_peer *ret,
                         tenrec_error *err)
{
    struct peer *one = peers_find_entry(p, name);
    tenrec_peer id = one ? atomic_load(&one->id) : PEERS_NOBODY;

    if (id < 0)
        return err ? fail_unknown(p, name, err)
                   : TENREC_EPEER_UNKNOWN; /* no suggestion is needed */
    *ret = id;
    return TENREC_OK;
}

tenrec_status peers_find_again(struct peers *p, const char *name, tenrec_peer *ret,
                               tenrec_error *err)
{
    const struct peer *last = atomic_load_explicit(&p->last, memory_order_acquire);
    struct peer *one;
    tenrec_peer id;

    if (last && strcmp(last->name, name) == 0 &&
        (id = atomic_load_explicit(&last->id, memory_order_acquire)) >= 0) {
        *ret = id;
        return TENREC_OK;
    }
    one = peers_find_entry(p, name);
    id = one ? atomic_load(&one->id) : PEERS_NOBODY;
    if (id < 0)
        return fail_unknown(p, name, err);
    atomic_store_explicit(&p->last, one, memory_order_release);
    *ret = id;
    return TENREC_OK;
}

bool peers_has(const struct peers *p, tenrec_peer id)
{
    const struct peer *one = peers_at(p, id);

    return one && atomic_load(&one->id) == id;
}

const char *peers_name(const struct peers *p, tenrec_peer id)
{
    const struct peer *one = peers_at(p, id);

    return one ? one->name : "";
}

uint64_t peers_incarnation(const struct peers *p, tenrec_peer id)
{
    const struct peer *one = peers_at(p, id);

    return one ? atomic_load(&one->incarnation) : 0;
}

void peers_blame(const struct peers *p, tenrec_peer id, tenrec_error *err)
{
    err->worker = id;
    snprintf(err->worker_name, sizeof err->worker_name, "%s", peers_name(p, id));
}
