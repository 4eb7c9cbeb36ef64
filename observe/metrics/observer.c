/* SPDX-License-Identifier: Apache-2.0 */
#include "observe/metrics/observer.h"

#include "core/base/file.h"
#include "core/base/forks.h"
#include "core/base/memory.h"
#include "core/base/resolve.h"
#include "core/plugin/plugin.h"
#include "observe/metrics/metrics.h"
#include "rpc/value/trace.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <tenrec/version.h>

struct observer {
    struct observer *next; /* guarded by the list's lock, like refs */
    unsigned refs;
    struct tenrec_observer plugin;
    struct observer_choice *choice; /* shares */
    char *address;                  /* owns */
    char part[80];                  /* "observer/prometheus": the part of its log lines */
};

/* Opening and closing hold the lock, so that no second observer binds the same address. */
static struct {
    pthread_mutex_t lock;
    struct observer *first;
} open_observers = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* ---- the plugin's host ------------------------------------------------------ */

static tenrec_status host_snapshot(struct tenrec_observer *self, struct tenrec_snapshot **ret,
                                   tenrec_error *err)
{
    (void)self;
    return snapshot_make(ret, err);
}

static void host_snapshot_free(struct tenrec_observer *self, struct tenrec_snapshot *s)
{
    (void)self;
    snapshot_drop(s);
}

static void host_span_done(struct tenrec_observer *self, struct tenrec_span *s, bool sent)
{
    (void)self;
    trace_span_done(s, sent);
}

static tenrec_status host_private_folder(struct tenrec_observer *self,
                                         char ret[TENREC_PRIVATE_FOLDER_MAX], tenrec_error *err)
{
    (void)self;
    return private_folder(ret, err);
}

static bool host_is_this_host(struct tenrec_observer *self, const char *address)
{
    (void)self;
    return this_host_has(address);
}

const struct tenrec_observer_host observer_host = {
    .size = sizeof(struct tenrec_observer_host),
    .abi_major = TENREC_ABI_MAJOR,
    .abi_minor = TENREC_ABI_MINOR,
    .log_enabled = plugin_log_enabled,
    .log = plugin_log,
    .version = TENREC_VERSION_TEXT,
    .snapshot = host_snapshot,
    .snapshot_free = host_snapshot_free,
    .span_done = host_span_done,
    .private_folder = host_private_folder,
    .is_this_host = host_is_this_host,
};

/* No thread of an observer is in the child of a fork, so that the child opens its own. */
static void observers_forked(void)
{
    pthread_mutex_init(&open_observers.lock, NULL);
    open_observers.first = NULL;
}

static struct fork_hook fork_hook = { .child = observers_forked };

/* ---- opening and closing -------------------------------------------------- */

static void observer_free(struct observer *o)
{
    observer_choice_drop(o->choice);
    free(o->address);
    free(o);
}

static tenrec_status observer_init(struct observer *o, tenrec_error *err)
{
    const struct tenrec_observer_init in = { .size = sizeof in,
                                             .address = o->address,
                                             .options = o->choice->options };
    tenrec_status st;

    plugin_validate_begin(err);
    st = plugin_validate_end(plugin_loaded(o->choice->plugin)->init_observer(&in, &o->plugin, err),
                             "init", err);
    if (st == TENREC_OK && (!o->plugin.ops || !TENREC_HAS(o->plugin.ops, close)))
        st = tenrec_fail(err, TENREC_EPLUGIN, "the plugin has no operation 'close'");
    return st;
}

static tenrec_status observer_new(struct observer_choice *choice, const char *address,
                                  struct observer **ret, tenrec_error *err)
{
    struct observer *o = memory_new(1, sizeof *o);
    tenrec_status st;

    if (!o)
        return memory_fail(err);
    o->refs = 1;
    o->plugin.host = &observer_host;
    o->choice = observer_choice_share(choice);
    o->address = memory_text(address);
    snprintf(o->part, sizeof o->part, "observer/%s", choice->name);
    o->plugin.log_part = o->part;
    st = o->address ? observer_init(o, err) : memory_fail(err);
    if (st == TENREC_OK) {
        *ret = o;
    } else {
        tenrec_error_prefix(err, "observer '%s'", choice->name);
        observer_free(o);
    }
    return st;
}

tenrec_status observer_open(struct observer_choice *choice, const char *address,
                            struct observer **ret, tenrec_error *err)
{
    struct observer *o;
    tenrec_status st = TENREC_OK;

    forks_follow(&fork_hook);
    pthread_mutex_lock(&open_observers.lock);
    for (o = open_observers.first; o; o = o->next)
        if (strcmp(o->choice->name, choice->name) == 0 && strcmp(o->address, address) == 0)
            break;
    if (o) {
        o->refs++;
    } else if ((st = observer_new(choice, address, &o, err)) == TENREC_OK) {
        o->next = open_observers.first;
        open_observers.first = o;
    }
    pthread_mutex_unlock(&open_observers.lock);
    if (st == TENREC_OK)
        *ret = o;
    return st;
}

void observer_close(struct observer *o)
{
    struct observer **at = &open_observers.first;

    if (!o)
        return;
    pthread_mutex_lock(&open_observers.lock);
    while (*at && *at != o)
        at = &(*at)->next;
    if (*at && --o->refs == 0) { /* else it belongs to the parent of a fork */
        *at = o->next;
        o->plugin.ops->close(&o->plugin);
        observer_free(o);
    }
    pthread_mutex_unlock(&open_observers.lock);
}

bool observer_takes_spans(const struct observer *o)
{
    return TENREC_HAS(o->plugin.ops, span);
}

void observer_span(struct observer *o, struct tenrec_span *s)
{
    o->plugin.ops->span(&o->plugin, s);
}

void observer_leave(struct observer *o, const struct tenrec_origin *origin)
{
    if (TENREC_HAS(o->plugin.ops, leave))
        o->plugin.ops->leave(&o->plugin, origin);
}
