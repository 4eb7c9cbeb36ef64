/* SPDX-License-Identifier: Apache-2.0 */
#include "core/plugin/plugin.h"

#include "core/plugin/plugin_file.h"

#include <stdio.h>
#include <tenrec/rpc.h>

struct identity_sink {
    tenrec_sink_fn *sink;
    void *arg;
};

static void identity_of_file(const struct identity_sink *to, const char *first, const char *version,
                             const char *path, const char *build_id)
{
    char key[128];

    snprintf(key, sizeof key, "%sversion", first);
    to->sink(to->arg, key, version);
    snprintf(key, sizeof key, "%spath", first);
    to->sink(to->arg, key, path);
    snprintf(key, sizeof key, "%sbuild_id", first);
    to->sink(to->arg, key, build_id);
}

static void identity_on_plugin(void *arg, struct plugin *b)
{
    const struct tenrec_plugin *p = plugin_description(b);
    struct mapped_file file;
    char first[96];

    mapped_file_find(p, &file);
    snprintf(first, sizeof first, PLUGIN_IDENTITY_PLUGIN "%s.", p->name);
    identity_of_file(arg, first, p->version, plugin_path(b), file.build_id);
}

void plugin_identity_list(tenrec_sink_fn *sink, void *arg)
{
    static const char inside;
    struct identity_sink to = { sink, arg };
    struct mapped_file file;

    mapped_file_find(&inside, &file);
    identity_of_file(&to, PLUGIN_IDENTITY_LIBRARY, tenrec_version_text(), file.path, file.build_id);
    plugin_each(TENREC_PLUGIN_BACKEND, identity_on_plugin, &to);
    plugin_each(TENREC_PLUGIN_STORE, identity_on_plugin, &to);
    plugin_each(TENREC_PLUGIN_OBSERVER, identity_on_plugin, &to);
}
