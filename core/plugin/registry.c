/* SPDX-License-Identifier: Apache-2.0 */
#include "core/plugin/plugin_file.h"

#include "core/base/memory.h"
#include "core/config/config.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <tenrec/backend.h>
#include <utlist.h>

struct plugin {
    struct plugin *next; /* in the order of registration */
    struct loaded file;  /* handle and path are NULL for the program's own */
    unsigned users;      /* guarded by registry.lock, as `kept` */
    bool kept;           /* counted in users for ever */
};

static struct {
    pthread_mutex_t lock;    /* guards the list and the counts */
    pthread_mutex_t loading; /* one file at a time; acquired before `lock` */
    struct plugin *first;
} registry = { .lock = PTHREAD_MUTEX_INITIALIZER, .loading = PTHREAD_MUTEX_INITIALIZER };

static const char *name_of(const struct plugin *b)
{
    return b->file.plugin->name;
}

/* Finds by name, or by handle if `name` is NULL. The caller holds registry.lock. */
static struct plugin *registry_find(const char *name, const void *handle)
{
    for (struct plugin *b = registry.first; b; b = b->next)
        if (name ? strcmp(name_of(b), name) == 0 : b->file.handle == handle)
            return b;
    return NULL;
}

/* Adds a backend with `users` users. Takes *file on success. errors: EEXIST, ENOMEM */
static tenrec_status registry_add(const struct loaded *file, unsigned users, struct plugin **ret,
                                  tenrec_error *err)
{
    struct plugin *b = memory_new(1, sizeof *b), *other;
    tenrec_status st = TENREC_OK;

    if (!b)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for backend '%s'", file->plugin->name);
    b->file = *file;
    b->users = users;
    pthread_mutex_lock(&registry.lock);
    other = registry_find(file->plugin->name, NULL);
    if (other) {
        const char *path = plugin_path(other);
        st = tenrec_fail(err, TENREC_EEXIST, "%s '%s' is registered already%s%.200s%s",
                         section_word((enum config_section)(other->file.plugin->kind - 1)),
                         name_of(other), *path ? ", from '" : ", by the program", path,
                         *path ? "'" : "");
    } else {
        LL_APPEND(registry.first, b);
    }
    pthread_mutex_unlock(&registry.lock);
    if (st != TENREC_OK)
        free(b);
    else if (ret)
        *ret = b;
    return st;
}

static struct plugin *registry_share(const char *name, const void *handle)
{
    struct plugin *b;

    pthread_mutex_lock(&registry.lock);
    b = registry_find(name, handle);
    if (b)
        b->users++;
    pthread_mutex_unlock(&registry.lock);
    return b;
}

/* The caller holds registry.loading. `name` is NULL when the user gave a path. */
static tenrec_status load_file(const char *path, const char *name, int kind, struct plugin **ret,
                               tenrec_error *err)
{
    struct loaded file;
    struct plugin *b;
    tenrec_status st = loader_open(path, kind, &file, err);

    if (st != TENREC_OK)
        return st;
    b = registry_share(NULL, file.handle);
    if (b) {
        loader_close(&file); /* loaded before */
        *ret = b;
        return TENREC_OK;
    }
    if (name && strcmp(name, file.plugin->name) != 0)
        st = tenrec_fail(err, TENREC_EPLUGIN, "plugin '%s': has the name '%s', expected '%s'", path,
                         file.plugin->name, name);
    else if ((st = registry_add(&file, 1, ret, err)) != TENREC_OK)
        tenrec_error_prefix(err, "plugin '%s'", path);
    if (st != TENREC_OK)
        loader_close(&file);
    return st;
}

/* Returns `b` if it is of this kind; else releases it. */
static tenrec_status registry_check_kind(struct plugin *b, int kind, struct plugin **ret,
                                         tenrec_error *err)
{
    tenrec_status st = plugin_validate_check_kind(b->file.plugin, kind, err);

    if (st == TENREC_OK) {
        *ret = b;
        return st;
    }
    tenrec_error_prefix(err, "plugin '%s'", name_of(b));
    plugin_put(b);
    return st;
}

tenrec_status plugin_get(const char *name_or_path, struct plugin **ret, tenrec_error *err)
{
    return plugin_get_kind(name_or_path, TENREC_PLUGIN_BACKEND, ret, err);
}

tenrec_status plugin_get_kind(const char *name_or_path, int kind, struct plugin **ret,
                              tenrec_error *err)
{
    struct plugin *b;
    tenrec_status st;
    char *path;

    if (loader_is_path(name_or_path)) {
        pthread_mutex_lock(&registry.loading);
        st = load_file(name_or_path, NULL, kind, ret, err);
        pthread_mutex_unlock(&registry.loading);
        return st;
    }
    if ((b = registry_share(name_or_path, NULL)))
        return registry_check_kind(b, kind, ret, err);
    pthread_mutex_lock(&registry.loading);
    if ((b = registry_share(name_or_path, NULL))) { /* another thread was first */
        st = registry_check_kind(b, kind, ret, err);
    } else if ((st = loader_find(name_or_path, &path, err)) == TENREC_OK) {
        st = load_file(path, name_or_path, kind, ret, err);
        free(path);
    }
    pthread_mutex_unlock(&registry.loading);
    return st;
}

void plugin_share(struct plugin *b)
{
    pthread_mutex_lock(&registry.lock);
    b->users++;
    pthread_mutex_unlock(&registry.lock);
}

void plugin_put(struct plugin *b)
{
    if (!b)
        return;
    pthread_mutex_lock(&registry.lock);
    b->users--;
    pthread_mutex_unlock(&registry.lock);
}

void plugin_keep(struct plugin *b)
{
    pthread_mutex_lock(&registry.lock);
    if (!b->kept)
        b->users++;
    b->kept = true;
    pthread_mutex_unlock(&registry.lock);
}

const struct tenrec_plugin *plugin_description(const struct plugin *b)
{
    return b->file.plugin;
}

const char *plugin_path(const struct plugin *b)
{
    return b->file.path ? b->file.path : "";
}

const struct loaded *plugin_loaded(const struct plugin *b)
{
    return &b->file;
}

/* Returns the backend after `b` (NULL: the first), shared so that it stays. */
static struct plugin *share_next(struct plugin *b)
{
    struct plugin *next;

    pthread_mutex_lock(&registry.lock);
    next = b ? b->next : registry.first;
    if (next)
        next->users++;
    pthread_mutex_unlock(&registry.lock);
    return next;
}

void plugin_each(enum tenrec_plugin_kind kind, void (*fn)(void *arg, struct plugin *b), void *arg)
{
    struct plugin *b = share_next(NULL);

    while (b) {
        struct plugin *next;
        if (b->file.plugin->kind == (uint32_t)kind)
            fn(arg, b);
        next = share_next(b);
        plugin_put(b);
        b = next;
    }
}

tenrec_status tenrec_register_backend(const struct tenrec_plugin *plugin,
                                      tenrec_construct_options_fn *construct,
                                      tenrec_init_agent_fn *init, tenrec_error *err)
{
    const struct loaded own = { .plugin = plugin, .construct = construct, .init = init };
    tenrec_status st;

    if (!plugin || !construct || !init)
        return tenrec_fail(err, TENREC_EINVAL, "register_backend: %s is NULL",
                           !plugin      ? "plugin"
                           : !construct ? "construct"
                                        : "init");
    st = plugin_validate_check(plugin, TENREC_PLUGIN_BACKEND, err);
    if (st != TENREC_OK) {
        tenrec_error_prefix(err, "register_backend");
        return st;
    }
    return registry_add(&own, 0, NULL, err);
}

bool tenrec_backend_registered(const char *name)
{
    const struct plugin *b;
    bool found;

    pthread_mutex_lock(&registry.lock);
    b = name ? registry_find(name, NULL) : NULL;
    found = b && b->file.plugin->kind == TENREC_PLUGIN_BACKEND;
    pthread_mutex_unlock(&registry.lock);
    return found;
}

tenrec_status tenrec_plugin_load(const char *name_or_path, tenrec_error *err)
{
    struct plugin *b;
    tenrec_status st;

    if (!name_or_path || !*name_or_path)
        return tenrec_fail(err, TENREC_EINVAL, "load_backend: no name");
    st = plugin_get(name_or_path, &b, err);
    if (st == TENREC_OK)
        plugin_put(b);
    return st;
}

tenrec_status tenrec_plugin_unload(const char *name, tenrec_error *err)
{
    struct plugin *b;
    unsigned users;

    if (!name)
        return tenrec_fail(err, TENREC_EINVAL, "unload_backend: no name");
    pthread_mutex_lock(&registry.loading); /* no thread may find a half-closed file */
    pthread_mutex_lock(&registry.lock);
    b = registry_find(name, NULL);
    users = b ? b->users : 0;
    if (b && users == 0)
        LL_DELETE(registry.first, b);
    pthread_mutex_unlock(&registry.lock);
    if (b && users == 0) {
        loader_close(&b->file);
        free(b);
    }
    pthread_mutex_unlock(&registry.loading);
    if (!b)
        return tenrec_fail(err, TENREC_ENOTFOUND, "no backend '%s' is registered", name);
    if (users)
        return tenrec_fail(err, TENREC_EBUSY, "backend '%s' is in use %u time%s: close these first",
                           name, users, users == 1 ? "" : "s");
    return TENREC_OK;
}
