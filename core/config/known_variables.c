/* SPDX-License-Identifier: Apache-2.0 */
#include "core/config/state.h"

#include "core/base/text.h"
#include "core/config/settings.h"

#include <string.h>

/* Variables that other parts read, or the launcher's workers. */
static const char *const variables_of_others[] = {
    "TENREC_BACKEND",       "TENREC_INIT_METHOD",   "TENREC_CONFIG",      "TENREC_PLUGIN_PATH",
    "TENREC_LOG",           "TENREC_LOG_FILE",      "TENREC_DLCLOSE",     "TENREC_RUN_ID",
    "TENREC_RANK",          "TENREC_WORLD_SIZE",    "TENREC_TRANSPORTS",  "TENREC_CHANNELS",
    "TENREC_PROGRESS",      "TENREC_IFNAME",        "TENREC_MIN_WORKERS", "TENREC_MAX_WORKERS",
    "TENREC_SECRET_FD",     "TENREC_SECRET_SOCKET", "TENREC_SECRET_FILE", "TENREC_HOST_FD",
    "TENREC_TORCH_DEFAULT",
};

/* near: NULL when only the answer is wanted, as for each variable of each worker that starts */
static bool variable_is(const char *name, const char *known, struct suggestion *near)
{
    if (near)
        suggest_try(near, known);
    return strcmp(name, known) == 0;
}

/* Returns true if the variable sets a key of the table, which has the name of its map. */
static bool variable_is_of_table(const struct tenrec_plugin *table, const char *name,
                                 struct suggestion *near)
{
    char other[ENVIRONMENT_NAME_MAX];
    bool found = false;

    for (uint32_t i = 0; i < table->n_options; i++) {
        environment_key_name(other, table->name, options_at(table, i).key);
        found |= variable_is(name, other, near);
    }
    return found;
}

/* Returns true if this configuration, or another part, reads the variable. */
static bool variable_is_known(const struct tenrec_config *config, const char *name,
                              struct suggestion *near)
{
    static const struct tenrec_plugin *const tables[] = { &settings_table, &security_table,
                                                          &security_mtls_table, &observe_table };
    const struct node *entries = node_get(config->root, "backends");
    char other[ENVIRONMENT_NAME_MAX];
    /* The plugin of a store is loaded with the first URL for it, and checked then; that of an
     * observer where `observe:` names it. */
    bool read =
        strncmp(name, "TENREC_STORES__", 15) == 0 || strncmp(name, "TENREC_OBSERVERS__", 18) == 0;

    for (size_t i = 0; i < sizeof variables_of_others / sizeof variables_of_others[0]; i++)
        read |= variable_is(name, variables_of_others[i], near);
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++)
        read |= variable_is_of_table(tables[i], name, near);
    environment_key_name(other, settings_table.name, SETTINGS_DEVICE_MAPS);
    read |= variable_is(name, other, near);
    /* The options of an entry are known once its plugin is loaded. */
    for (size_t i = 0; i < entries->n && !read; i++) {
        char guess[ENVIRONMENT_NAME_MAX];
        const char *option = strstr(name, "__");
        environment_option_name(other, SECTION_BACKENDS, entries->item[i]->key, "");
        read = strncmp(name, other, strlen(other)) == 0;
        if (near && option && (option = strstr(option + 2, "__"))) {
            environment_option_name(guess, SECTION_BACKENDS, entries->item[i]->key, option + 2);
            suggest_try(near, guess);
        }
    }
    return read;
}

void known_variables_warn(const struct tenrec_config *config)
{
    for (size_t i = 0; i < config->env.n; i++) {
        const char *name = config->env.v[i].name;
        struct suggestion near;

        /* TENREC_TEST_...: for tests alone. */
        if (strncmp(name, "TENREC_TEST_", 12) == 0 || variable_is_known(config, name, NULL))
            continue;
        suggest_init(&near, name);
        variable_is_known(config, name, &near);
        environment_warn(name, "is not known%s", suggest_guess(&near));
    }
}
