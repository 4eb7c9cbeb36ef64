/* SPDX-License-Identifier: Apache-2.0 */
#include "config/plugin_path.h"

#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

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

tenrec_status plugin_paths_resolve(struct node *root, const char *path, tenrec_error *err)
{
    static const char *const section[] = { "backends", "stores" };
    const char *slash = strrchr(path, '/');
    tenrec_status st = TENREC_OK;

    if (!slash)
        return TENREC_OK; /* the file is in the working directory */
    for (size_t i = 0; i < sizeof section / sizeof section[0]; i++) {
        const struct node *entries = node_get(root, section[i]);
        for (size_t k = 0; st == TENREC_OK && entries && k < entries->n; k++) {
            struct node *plugin = node_get(entries->item[k], "plugin");
            if (plugin && is_relative(plugin->text))
                st = path_resolve(plugin, path, (size_t)(slash - path) + 1, err);
        }
    }
    return st;
}
