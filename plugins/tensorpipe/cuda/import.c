/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda/import.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct import {
    struct import *next; /* most recently used first */
    struct import_key key;
    int device;
    struct CUevent_st *event; /* NULL: memory */
    driver_address at;
    uint64_t len;
    unsigned refs; /* events are used under the lock only */
    bool stale;    /* that address has another life: close it after the last use */
};

struct imports {
    struct import *first;
    unsigned n, max; /* open at once, but for those in use */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct imports memory = { .max = 128 }, events = { .max = 256 };

/* ---- both kinds; all of it under the lock ---- */

static void import_close(struct imports *of, struct import **at)
{
    struct import *i = *at;

    *at = i->next;
    of->n--;
    if (device_enter(i->device, NULL) == TENREC_OK) {
        if (i->event)
            driver()->event_drop(i->event);
        else
            driver()->ipc_memory_close(i->at);
        device_leave();
    }
    free(i);
}

/* Another life of the same address: the peer has freed what we have open. */
static bool is_former(const struct import *i, const struct import_key *key)
{
    return memcmp(i->key.owner, key->owner, sizeof key->owner) == 0 && i->key.base == key->base &&
           i->key.buffer != key->buffer;
}

static bool is_of(const struct import *i, const struct import_key *owner)
{
    return !owner || memcmp(i->key.owner, owner->owner, sizeof owner->owner) == 0;
}

/* Closes those of which `is` is true; those in use, after their last use. */
static void imports_close_some(struct imports *of,
                               bool (*is)(const struct import *i, const struct import_key *key),
                               const struct import_key *key)
{
    for (struct import **at = &of->first; *at;) {
        if (is(*at, key) && !(*at)->refs) {
            import_close(of, at);
            continue;
        }
        (*at)->stale |= is(*at, key);
        at = &(*at)->next;
    }
}

/* Closes the import that was unused for longest. */
static void imports_make_room(struct imports *of)
{
    struct import **oldest = NULL;

    for (struct import **at = &of->first; *at; at = &(*at)->next)
        if (!(*at)->refs)
            oldest = at;
    if (oldest)
        import_close(of, oldest);
}

static void import_put_first(struct imports *of, struct import *i)
{
    i->next = of->first;
    of->first = i;
}

static struct import *import_find(struct imports *of, const struct import_key *key, int index)
{
    for (struct import **at = &of->first; *at; at = &(*at)->next) {
        struct import *i = *at;

        if (i->device == index && memcmp(&i->key, key, sizeof *key) == 0) {
            i->stale = false; /* a handle is opened once, so it must not be again */
            *at = i->next;
            import_put_first(of, i);
            return i;
        }
    }
    return NULL;
}

/* A length unknown to the driver is not an error of the peer. */
static uint64_t length_of(driver_address at)
{
    driver_address base;
    size_t len;

    return driver()->memory_range(&base, &len, at) == DRIVER_SUCCESS && base == at ? len
                                                                                   : UINT64_MAX;
}

/* With the device entered. */
static tenrec_status open_event(struct import *i, tenrec_error *err)
{
    struct driver_ipc_event handle;

    memcpy(handle.bytes, i->key.handle.bytes, sizeof handle.bytes);
    return DRIVER(ipc_event_open, i->device, err, &i->event, handle);
}

static tenrec_status open_memory(struct import *i, tenrec_error *err)
{
    tenrec_status st =
        DRIVER(ipc_memory_open, i->device, err, &i->at, i->key.handle, DRIVER_IPC_LAZY_PEER_ACCESS);

    if (!st)
        i->len = length_of(i->at);
    return st;
}

static tenrec_status import_get(struct imports *of, const struct import_key *key, int index,
                                struct import **ret, tenrec_error *err)
{
    struct import *i = import_find(of, key, index);
    tenrec_status st;

    *ret = i;
    if (i)
        return TENREC_OK;
    imports_close_some(of, is_former, key);
    if (of->n >= of->max)
        imports_make_room(of);
    i = calloc(1, sizeof *i);
    if (!i)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for an opened handle");
    i->key = *key;
    i->device = index;
    st = device_enter(index, err);
    if (!st) {
        st = of == &events ? open_event(i, err) : open_memory(i, err);
        device_leave();
    }
    if (st) {
        free(i);
        return st;
    }
    import_put_first(of, i);
    of->n++;
    *ret = i;
    return TENREC_OK;
}

/* ---- each kind ---- */

tenrec_status import_open(const struct import_key *key, int index, uint64_t offset, uint64_t len,
                          struct import **ret, driver_address *ret_at, tenrec_error *err)
{
    struct import *i;
    tenrec_status st;

    pthread_mutex_lock(&lock);
    st = import_get(&memory, key, index, &i, err);
    /* A device that reads beyond it is lost to the whole process. */
    if (!st && (offset > i->len || len > i->len - offset))
        st = tenrec_fail(
            err, TENREC_EPROTOCOL, "sent %llu bytes at %llu of an allocation of %llu bytes",
            (unsigned long long)len, (unsigned long long)offset, (unsigned long long)i->len);
    if (!st) {
        i->refs++;
        *ret = i;
        *ret_at = i->at + offset;
    }
    pthread_mutex_unlock(&lock);
    return st;
}

void import_drop(struct import *i)
{
    if (!i)
        return;
    pthread_mutex_lock(&lock);
    i->refs--;
    if (i->stale && !i->refs) {
        struct import **at = &memory.first;

        while (*at != i)
            at = &(*at)->next;
        import_close(&memory, at);
    }
    pthread_mutex_unlock(&lock);
}

tenrec_status import_wait(const struct tenrec_stream *s, const unsigned char owner[IMPORT_OWNER],
                          const struct driver_ipc_event *handle, tenrec_error *err)
{
    const int index = s->device.index;
    struct import_key key = { .base = 0 };
    struct import *i;
    tenrec_status st;

    memcpy(key.owner, owner, sizeof key.owner);
    memcpy(key.handle.bytes, handle->bytes, sizeof key.handle.bytes);
    st = device_enter(index, err);
    if (st)
        return st;
    pthread_mutex_lock(&lock);
    st = import_get(&events, &key, index, &i, err);
    if (!st)
        st = DRIVER(stream_wait, index, err, (void *)(uintptr_t)s->stream, i->event, 0);
    pthread_mutex_unlock(&lock);
    device_leave();
    return st;
}

void imports_close(const unsigned char *owner)
{
    struct import_key key;

    if (owner)
        memcpy(key.owner, owner, sizeof key.owner);
    pthread_mutex_lock(&lock);
    imports_close_some(&memory, is_of, owner ? &key : NULL);
    imports_close_some(&events, is_of, owner ? &key : NULL);
    pthread_mutex_unlock(&lock);
}
