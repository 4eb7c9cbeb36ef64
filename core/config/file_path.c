/* SPDX-License-Identifier: Apache-2.0 */
#include "core/config/state.h"

#include "core/base/memory.h"

#include <stdlib.h>
#include <string.h>

/* A plugin that is no path is looked for by its name. */
static bool is_relative(const char *plugin)
{
    const size_t n = strlen(plugin);

    return *plugin != '/' && (strchr(plugin, '/') || (n > 3 && strcmp(plugin + n - 3, ".so") == 0));
}

/* Puts the folder, `len` bytes with the slash, before the text. */
static tenrec_status path_resolve(struct node *plugin, const char *folder, size_t len,
                                  tenrec_error *err)
{
    const size_t size = len + strlen(plugin->text) + 1;
    char *whole = memory_new(size, 1);

    if (!whole)
        return memory_fail(err);
    memcpy(whole, folder, len);
    memcpy(whole + len, plugin->text, size - len);
    free(plugin->text);
    plugin->text = whole;
    return TENREC_OK;
}

/* The files that a map names by these keys. */
static tenrec_status path_resolve_keys(const struct node *map, const char *const *key, size_t n,
                                       const char *folder, size_t len, tenrec_error *err)
{
    tenrec_status st = TENREC_OK;

    for (size_t i = 0; st == TENREC_OK && i < n; i++) {
        struct node *file = node_get(map, key[i]);
        if (file && file->kind == NODE_SCALAR && *file->text && *file->text != '/' &&
            !node_is_null(file))
            st = path_resolve(file, folder, len, err);
    }
    return st;
}

tenrec_status file_paths_resolve(struct node *root, const char *path, tenrec_error *err)
{
    static const char *const section[] = { "backends", "stores", "observers" };
    static const char *const secret[] = { "secret_file" }, *const mtls[] = { "ca", "cert", "key" };
    const char *slash = strrchr(path, '/');
    const size_t len = slash ? (size_t)(slash - path) + 1 : 0;
    const struct node *security = node_get(root, "security");
    tenrec_status st;

    if (!slash)
        return TENREC_OK; /* the file is in the working directory */
    st = path_resolve_keys(security, secret, 1, path, len, err);
    if (st == TENREC_OK)
        st = path_resolve_keys(node_get(security, "mtls"), mtls, 3, path, len, err);
    for (size_t i = 0; i < sizeof section / sizeof section[0]; i++) {
        const struct node *entries = node_get(root, section[i]);
        for (size_t k = 0; st == TENREC_OK && entries && k < entries->n; k++) {
            struct node *plugin = node_get(entries->item[k], "plugin");
            if (plugin && is_relative(plugin->text))
                st = path_resolve(plugin, path, len, err);
        }
    }
    return st;
}
