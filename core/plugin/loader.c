/* SPDX-License-Identifier: Apache-2.0 */
#include "core/plugin/plugin_file.h"

#include "core/base/memory.h"
#include "core/base/text.h"
#include "core/plugin/plugin.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#define SUFFIX ".so"

static bool ends_in_suffix(const char *s)
{
    size_t n = strlen(s), k = strlen(SUFFIX);

    return n > k && strcmp(s + n - k, SUFFIX) == 0;
}

bool loader_is_path(const char *name_or_path)
{
    return strchr(name_or_path, '/') || ends_in_suffix(name_or_path);
}

static char *loader_join(const char *folder, const char *name, const char *suffix)
{
    size_t size = strlen(folder) + 1 + strlen(name) + strlen(suffix) + 1;
    char *path = memory_new(size, 1);

    if (path)
        snprintf(path, size, "%s/%s%s", folder, name, suffix);
    return path;
}

struct search {
    const char *name;
    char *found;
    struct suggestion nearest;
    char searched[200]; /* the folders, as many as fit */
    size_t unnamed;     /* number of the other folders */
};

static int is_plugin_file(const struct dirent *e)
{
    return ends_in_suffix(e->d_name);
}

/* Calls fn for each plugin file of the folder, sorted by name. */
static void folder_list(const char *folder,
                        void (*fn)(void *arg, const char *name, const char *path), void *arg)
{
    struct dirent **entry;
    int n = scandir(folder, &entry, is_plugin_file, alphasort);

    for (int i = 0; i < n; i++) {
        char *path = loader_join(folder, entry[i]->d_name, "");
        entry[i]->d_name[strlen(entry[i]->d_name) - strlen(SUFFIX)] = '\0';
        if (path)
            fn(arg, entry[i]->d_name, path);
        free(path);
        free(entry[i]);
    }
    if (n >= 0)
        free(entry);
}

static void try_name(void *arg, const char *name, const char *path)
{
    (void)path;
    suggest_try(arg, name);
}

/* Adds a folder to the text, whole or not at all. */
static void note_folder(struct search *s, const char *folder)
{
    size_t used = strlen(s->searched);

    if (s->unnamed || used + strlen(", ") + strlen(folder) >= sizeof s->searched)
        s->unnamed++;
    else
        snprintf(s->searched + used, sizeof s->searched - used, "%s%s", used ? ", " : "", folder);
}

static bool search_folder(void *arg, const char *folder)
{
    struct search *s = arg;
    char *path = loader_join(folder, s->name, SUFFIX);
    struct stat sb;

    if (path && stat(path, &sb) == 0) {
        s->found = path;
        return true;
    }
    free(path);
    note_folder(s, folder);
    folder_list(folder, try_name, &s->nearest);
    return false;
}

tenrec_status loader_find(const char *name, char **ret, tenrec_error *err)
{
    struct search s = { .name = name };
    char more[32] = "";

    if (!plugin_validate_name_ok(name))
        return tenrec_fail(err, TENREC_EPLUGIN,
                           "'%.64s' is no name of a plugin: expected [a-z0-9_]+, or a path", name);
    suggest_init(&s.nearest, name);
    plugin_folders_each(search_folder, &s);
    if (s.unnamed)
        snprintf(more, sizeof more, "%s%zu more", *s.searched ? " and " : "", s.unnamed);
    if (!s.found)
        return tenrec_fail(err, TENREC_EPLUGIN,
                           "no plugin '%s'%s: no %s%s in %s%s (TENREC_PLUGIN_PATH adds folders)",
                           name, suggest_hint(&s.nearest), name, SUFFIX, s.searched, more);
    *ret = s.found;
    return TENREC_OK;
}

/* Like dlsym, but not through the libraries that the file depends on. */
static void *symbol_of(void *handle, const char *name, tenrec_error *err)
{
    struct mapped_file where;
    struct link_map *mine;
    void *p = dlsym(handle, name);

    if (!p) {
        tenrec_fail(err, TENREC_EPLUGIN, "does not export '%s'", name);
        return NULL;
    }
    mapped_file_find(p, &where);
    if (dlinfo(handle, RTLD_DI_LINKMAP, &mine) == 0 && strcmp(where.path, mine->l_name) == 0)
        return p;
    tenrec_fail(err, TENREC_EPLUGIN, "does not export '%s' itself: the symbol is in '%.150s'", name,
                *where.path ? where.path : "another file");
    return NULL;
}

/* dlopen reports a folder with a confusing text, and hangs on a FIFO. */
static tenrec_status check_file(const char *path, tenrec_error *err)
{
    struct suggestion n;
    struct stat sb;
    const char *slash = strrchr(path, '/');
    char *folder, *name;

    if (stat(path, &sb) == 0)
        return S_ISREG(sb.st_mode) ? TENREC_OK
                                   : tenrec_fail(err, TENREC_EPLUGIN, "is not a regular file");
    tenrec_fail_errno(err, TENREC_EPLUGIN, errno, "cannot be opened");
    folder = slash ? memory_text_n(path, (size_t)(slash - path)) : memory_text(".");
    name = memory_text(slash ? slash + 1 : path);
    if (folder && name && ends_in_suffix(name)) {
        name[strlen(name) - strlen(SUFFIX)] = '\0';
        suggest_init(&n, name);
        folder_list(*folder ? folder : "/", try_name, &n);
        if (*n.best) {
            size_t used = strlen(err ? err->text : "");
            if (err)
                snprintf(err->text + used, sizeof err->text - used, ", did you mean '%s%s'?",
                         n.best, SUFFIX);
        }
    }
    free(folder);
    free(name);
    return TENREC_EPLUGIN;
}

static void loader_unmap(void *handle)
{
    const char *keep = secure_getenv("TENREC_DLCLOSE");

    if (!keep || strcmp(keep, "0") != 0)
        dlclose(handle);
}

/* ---- programs with the rights of another user ---------------------------------- */

static tenrec_status check_flags_secure(uint32_t flags, tenrec_error *err)
{
    if (!getauxval(AT_SECURE) || (flags & TENREC_PLUGIN_SETUID))
        return TENREC_OK;
    return tenrec_fail(err, TENREC_EPLUGIN,
                       "is not loaded in a setuid or setgid program: it does not declare "
                       "(TENREC_PLUGIN_SETUID) that it and its libraries obey no environment "
                       "variable");
}

/* Decides before dlopen, as constructors read the environment. A process that could exchange the
 * file meanwhile could have put its own code there. */
static tenrec_status check_file_secure(const char *path, tenrec_error *err)
{
    uint32_t flags = 0;
    tenrec_status st;
    int fd;

    if (!getauxval(AT_SECURE))
        return TENREC_OK;
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return tenrec_fail_errno(err, TENREC_EPLUGIN, errno, "cannot be opened");
    st = plugin_file_flags(fd, &flags, err);
    close(fd);
    return st == TENREC_OK ? check_flags_secure(flags, err) : st;
}

/* Reads the three symbols, in the order of the clearest error. */
static tenrec_status read_symbols(struct loaded *l, int kind, tenrec_error *err)
{
    tenrec_status st;
    void *init;

    l->plugin = symbol_of(l->handle, "tenrec_plugin", err);
    if (!l->plugin)
        return TENREC_EPLUGIN;
    st = plugin_validate_check(l->plugin, kind, err);
    if (st == TENREC_OK)
        st = check_flags_secure(l->plugin->flags, err);
    if (st != TENREC_OK)
        return st;
    l->construct = (tenrec_construct_options_fn *)(uintptr_t)symbol_of(
        l->handle, "tenrec_construct_options", err);
    if (!l->construct)
        return TENREC_EPLUGIN;
    if (l->plugin->kind == TENREC_PLUGIN_STORE) {
        init = symbol_of(l->handle, "tenrec_init_store", err);
        l->init_store = (tenrec_init_store_fn *)(uintptr_t)init;
    } else if (l->plugin->kind == TENREC_PLUGIN_OBSERVER) {
        init = symbol_of(l->handle, "tenrec_init_observer", err);
        l->init_observer = (tenrec_init_observer_fn *)(uintptr_t)init;
    } else {
        init = symbol_of(l->handle, "tenrec_init_agent", err);
        l->init = (tenrec_init_agent_fn *)(uintptr_t)init;
    }
    return init ? TENREC_OK : TENREC_EPLUGIN;
}

/* Before dlopen: musl's loads a file for another processor. */
static tenrec_status loader_check_machine(const char *path, tenrec_error *err)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    tenrec_status st = fd >= 0 ? plugin_file_machine(fd, err) : TENREC_OK;

    if (fd >= 0)
        close(fd);
    return st;
}

tenrec_status loader_open(const char *path, int kind, struct loaded *ret, tenrec_error *err)
{
    struct loaded l = { 0 };
    tenrec_status st = check_file(path, err);

    if (st != TENREC_OK)
        goto err_prefix;
    /* Without a slash dlopen would search the folders of the system. */
    l.path = strchr(path, '/') ? memory_text(path) : loader_join(".", path, "");
    if (!l.path) {
        st = tenrec_fail(err, TENREC_ENOMEM, "no memory");
        goto err_prefix;
    }
    st = check_file_secure(l.path, err);
    if (st == TENREC_OK)
        st = loader_check_machine(l.path, err);
    if (st != TENREC_OK)
        goto err_path;
    l.handle = dlopen(l.path, RTLD_NOW | RTLD_LOCAL);
    if (!l.handle) {
        st = tenrec_fail(err, TENREC_EPLUGIN, "%s", dlerror());
        goto err_path;
    }
    st = read_symbols(&l, kind, err);
    if (st != TENREC_OK)
        goto err_map;
    *ret = l;
    return TENREC_OK;

err_map:
    loader_unmap(l.handle);
err_path:
    free(l.path);
err_prefix:
    tenrec_error_prefix(err, "plugin '%s'", path);
    return st;
}

void loader_close(struct loaded *l)
{
    if (l->handle && (l->plugin->flags & TENREC_PLUGIN_UNLOADABLE))
        loader_unmap(l->handle);
    free(l->path);
    *l = (struct loaded){ 0 };
}

struct listing {
    void (*fn)(void *arg, const char *name, const char *path);
    void *arg;
};

static void list_plugin(void *arg, const char *name, const char *path)
{
    struct listing *l = arg;

    if (plugin_validate_name_ok(name))
        l->fn(l->arg, name, path);
}

static bool list_folder(void *arg, const char *folder)
{
    folder_list(folder, list_plugin, arg);
    return false;
}

void loader_list(void (*fn)(void *arg, const char *name, const char *path), void *arg)
{
    struct listing l = { fn, arg };

    plugin_folders_each(list_folder, &l);
}
