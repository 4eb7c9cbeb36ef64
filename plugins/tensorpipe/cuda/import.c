/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda/import.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define MEMORY_MAX 128 /* open at once, but for those in use */
#define EVENTS_MAX 256

struct import {
    struct import *next; /* the one used last comes first */
    struct import_key key;
    int device;
    driver_address at;
    uint64_t len;
    unsigned refs;
    bool stale; /* that address has another life: close it after the last use */
};

struct import_event {
    struct import_event *next;
    unsigned char owner[IMPORT_OWNER];
    struct driver_ipc_event handle;
    struct CUevent_st *event;
    int device;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct import *memory;
static struct import_event *events;
static unsigned n_memory, n_events;

/* ---- memory; all of it under the lock ---- */

static void close_import(struct import **at)
{
    struct import *i = *at;

    *at = i->next;
    n_memory--;
    if (device_enter(i->device, NULL) == TENREC_OK) {
        driver()->ipc_memory_close(i->at);
        device_leave();
    }
    free(i);
}

/* Another life of the same address: the peer has freed what we have open. */
static void forget_former(const struct import_key *key)
{
    struct import **at = &memory;

    while (*at) {
        struct import *i = *at;

        if (memcmp(i->key.owner, key->owner, sizeof key->owner) == 0 && i->key.base == key->base &&
            i->key.buffer != key->buffer) {
            i->stale = true;
            if (!i->refs) {
                close_import(at);
                continue;
            }
        }
        at = &i->next;
    }
}

/* The one that was not used for longest. */
static void make_room(void)
{
    struct import **oldest = NULL;

    for (struct import **at = &memory; *at; at = &(*at)->next)
        if (!(*at)->refs)
            oldest = at;
    if (oldest)
        close_import(oldest);
}

static struct import *import_find(const struct import_key *key, int index)
{
    for (struct import **at = &memory; *at; at = &(*at)->next) {
        struct import *i = *at;

        if (i->device == index && memcmp(&i->key, key, sizeof *key) == 0) {
            i->stale = false; /* a handle is opened once, so it must not be again */
            *at = i->next;
            i->next = memory;
            memory = i;
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

static tenrec_status open_new(const struct import_key *key, int index, struct import **ret,
                              tenrec_error *err)
{
    struct import *i = calloc(1, sizeof *i);
    tenrec_status st;

    if (!i)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for an opened handle");
    st = device_enter(index, err);
    if (!st) {
        st = DRIVER(ipc_memory_open, index, err, &i->at, key->handle, DRIVER_IPC_LAZY_PEER_ACCESS);
        if (!st)
            i->len = length_of(i->at);
        device_leave();
    }
    if (st) {
        free(i);
        return st;
    }
    i->key = *key;
    i->device = index;
    i->next = memory;
    memory = i;
    n_memory++;
    *ret = i;
    return TENREC_OK;
}

tenrec_status import_open(const struct import_key *key, int index, uint64_t offset, uint64_t len,
                          struct import **ret, driver_address *ret_at, tenrec_error *err)
{
    tenrec_status st = TENREC_OK;
    struct import *i;

    pthread_mutex_lock(&lock);
    i = import_find(key, index);
    if (!i) {
        forget_former(key);
        if (n_memory >= MEMORY_MAX)
            make_room();
        st = open_new(key, index, &i, err);
    }
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
        struct import **at = &memory;

        while (*at && *at != i)
            at = &(*at)->next;
        if (*at)
            close_import(at);
    }
    pthread_mutex_unlock(&lock);
}

/* ---- events; likewise ---- */

static void close_event(struct import_event **at)
{
    struct import_event *e = *at;

    if (!e)
        return;
    *at = e->next;
    n_events--;
    if (device_enter(e->device, NULL) == TENREC_OK) {
        driver()->event_drop(e->event);
        device_leave();
    }
    free(e);
}

static tenrec_status find_event(const unsigned char owner[IMPORT_OWNER],
                                const struct driver_ipc_event *handle, int index,
                                struct import_event **ret, tenrec_error *err)
{
    struct import_event **last = &events, *e;
    tenrec_status st;

    for (struct import_event **at = &events; *at; at = &(*at)->next) {
        e = *at;
        last = at;
        if (e->device == index && memcmp(&e->handle, handle, sizeof *handle) == 0 &&
            memcmp(e->owner, owner, sizeof e->owner) == 0) {
            *at = e->next;
            e->next = events;
            *ret = events = e;
            return TENREC_OK;
        }
    }
    if (n_events >= EVENTS_MAX)
        close_event(last);
    e = calloc(1, sizeof *e);
    if (!e)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for an opened handle");
    st = DRIVER(ipc_event_open, index, err, &e->event, *handle);
    if (st) {
        free(e);
        return st;
    }
    e->handle = *handle;
    memcpy(e->owner, owner, sizeof e->owner);
    e->device = index;
    e->next = events;
    *ret = events = e;
    n_events++;
    return TENREC_OK;
}

tenrec_status import_wait(const struct tenrec_stream *s, const unsigned char owner[IMPORT_OWNER],
                          const struct driver_ipc_event *handle, tenrec_error *err)
{
    tenrec_status st = device_enter(s->device.index, err);
    struct import_event *e = NULL;

    if (st)
        return st;
    pthread_mutex_lock(&lock);
    st = find_event(owner, handle, s->device.index, &e, err);
    if (!st)
        st = DRIVER(stream_wait, s->device.index, err, (void *)(uintptr_t)s->stream, e->event, 0);
    pthread_mutex_unlock(&lock);
    device_leave();
    return st;
}

static bool is_of(const unsigned char *whose, const unsigned char *owner)
{
    return !owner || memcmp(whose, owner, IMPORT_OWNER) == 0;
}

void imports_close(const unsigned char *owner)
{
    pthread_mutex_lock(&lock);
    for (struct import **at = &memory; *at;) {
        if (!is_of((*at)->key.owner, owner)) {
            at = &(*at)->next;
        } else if ((*at)->refs) {
            (*at)->stale = true;
            at = &(*at)->next;
        } else {
            close_import(at);
        }
    }
    for (struct import_event **at = &events; *at;) {
        if (is_of((*at)->owner, owner))
            close_event(at);
        else
            at = &(*at)->next;
    }
    pthread_mutex_unlock(&lock);
}
