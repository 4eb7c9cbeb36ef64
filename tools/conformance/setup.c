/* SPDX-License-Identifier: Apache-2.0 */
#include "conformance/case.h"

#include "core/plugin/plugin.h"
#include "core/plugin/plugin_file.h"
#include "entry.h"
#include "group/store/store.h"
#include "tool.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Writes the name of a plugin that is a store. */
static void plugin_look(void *path, FILE *to)
{
    struct loaded l;
    tenrec_error err;

    if (loader_open(path, PLUGIN_KIND_ANY, &l, &err))
        return;
    if (l.init_store)
        fputs(l.plugin->name, to);
    loader_close(&l);
}

/* The plugin is loaded in a process of its own: a plugin that crashes there is a backend of which
 * the first case tells. Returns true for a store. */
static bool plugin_is_store(const char *path, char name[STORES_SCHEME_MAX])
{
    struct trial_output found;
    char how[200];

    trial_run(plugin_look, (void *)(uintptr_t)path, &found, how, sizeof how);
    snprintf(name, STORES_SCHEME_MAX, "%s", found.text ? found.text : "");
    free(found.text);
    return *name != '\0';
}

/* The text of a configuration for one store. */
static int setup_store_plugin(const struct tool *self, const char *full, const char *scheme,
                              struct conformance_setup *ret)
{
    if (!ret->url && asprintf(&ret->own_url, "%s://conformance", scheme) < 0)
        ret->own_url = NULL;
    if (!ret->url)
        ret->url = ret->own_url;
    if (!ret->url ||
        asprintf(&ret->own_text, "stores:\n  \"%s\": { plugin: \"%s\" }\n", scheme, full) < 0) {
        ret->own_text = NULL;
        return tool_fail(self, "out of memory");
    }
    ret->text = ret->own_text;
    return TOOL_GO_ON;
}

/* The text of a configuration for one plugin: alone, or around another. */
static int setup_plugin(const struct tool *self, const char *full, const char *around,
                        struct conformance_setup *ret)
{
    if (asprintf(&ret->own_text, "backend: it\nbackends:\n  it: { plugin: \"%s\"%s }\n%s%s%s", full,
                 around ? ", wraps: inside" : "", around ? "  inside: { plugin: " : "",
                 around ? around : "", around ? " }\n" : "") < 0) {
        ret->own_text = NULL;
        return tool_fail(self, "out of memory");
    }
    ret->text = ret->own_text;
    return TOOL_GO_ON;
}

static bool is_url(const char *word)
{
    return strstr(word, "://") != NULL;
}

static bool has_end(const char *text, const char *end)
{
    const size_t n = strlen(text), m = strlen(end);

    return n > m && strcmp(text + n - m, end) == 0;
}

static int setup_of_file(const struct tool *self, const char *around, struct conformance_setup *ret)
{
    char scheme[STORES_SCHEME_MAX];
    char *full;
    int status;

    if (!has_end(ret->path, ".so")) {
        if (around)
            return tool_misuse(self,
                               "--around is for a plugin; the configuration says what wraps what");
        return TOOL_GO_ON;
    }
    full = realpath(ret->path, NULL);
    if (!full)
        return tool_fail(self, "cannot read %s", ret->path);
    if (ret->url && !stores_scheme(ret->url, scheme))
        status = tool_misuse(self, "the URL has no scheme of a plugin, expected SCHEME://...");
    else if (ret->url || (!around && plugin_is_store(full, scheme)))
        status = setup_store_plugin(self, full, scheme, ret);
    else
        status = setup_plugin(self, full, around, ret);
    free(full);
    return status;
}

int setup_make(const struct tool *self, char **word, int n, const char *around,
               struct conformance_setup *ret)
{
    int status = TOOL_GO_ON;

    for (int i = 0; i < n; i++) {
        const char **at = is_url(word[i]) ? &ret->url : &ret->path;

        if (*at)
            return tool_misuse(self,
                               "two %s: expected one configuration or plugin, and at most "
                               "one URL",
                               at == &ret->url ? "URLs" : "configurations or plugins");
        *at = word[i];
    }
    if (n == 0)
        return tool_misuse(self, "expected a configuration, a plugin or the URL of a store");
    if (ret->address && (!ret->path || !has_end(ret->path, ".so") || ret->url || around))
        return tool_misuse(self, "--address is for one observer, PLUGIN.so");
    if (ret->address)
        return TOOL_GO_ON;
    if (ret->path)
        status = setup_of_file(self, around, ret);
    else if (around)
        status = tool_misuse(self, "--around is for a plugin");
    if (status == TOOL_GO_ON && ret->url && ret->mode)
        status = tool_misuse(
            self, "--security is for backends: the configuration or the environment says "
                  "how a store is reached");
    if (status != TOOL_GO_ON)
        setup_finish(ret);
    return status;
}

void setup_finish(struct conformance_setup *s)
{
    free(s->own_text);
    free(s->own_url);
    s->own_text = s->own_url = NULL;
}
