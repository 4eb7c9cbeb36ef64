/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_yaml.c - any text as a configuration: read, checked, changed, shown. */
#include "fuzz.h"

#include "core/config/config.h"
#include "core/config/node.h"

#include <stdlib.h>
#include <string.h>

struct options {
    bool flag;
    int64_t number;
    double factor;
    uint64_t delay;
    uint64_t limit;
    const char *text;
    struct tenrec_option_list list;
    struct tenrec_option_map map;
    struct tenrec_option_records rules;
};

#define AT(field) offsetof(struct options, field)
/* clang-format off */
static const struct tenrec_option record_table[] = {
    { "do", TENREC_OPT_STRING, 0, 0, 0, NULL, 0, 0, "drop|delay", "" },
    { "on", TENREC_OPT_LIST, TENREC_OPT_STRING, sizeof(const char *), 0, "[]", 0, 0, NULL, "" },
};
static const struct tenrec_option_record record = {
    .options = record_table, .n_options = 2, .option_size = sizeof record_table[0],
    .size = sizeof(const char *) + sizeof(struct tenrec_option_list),
};
static const struct tenrec_option table[] = {
    { "keepalive", TENREC_OPT_BOOL, 0, AT(flag), 0, "true", 0, 0, NULL, "" },
    { "num_fail_sends", TENREC_OPT_INT, 0, AT(number), 0, "3", 0, 100, NULL, "" },
    { "factor", TENREC_OPT_DOUBLE, 0, AT(factor), 0, "1", 0, 0, NULL, "" },
    { "timeout", TENREC_OPT_DURATION, 0, AT(delay), 0, "5s", 0, 0, NULL, "" },
    { "limit", TENREC_OPT_SIZE, 0, AT(limit), 0, "1MiB", 0, 0, NULL, "" },
    { "progress", TENREC_OPT_STRING, 0, AT(text), 0, "busy", 0, 0, NULL, "" },
    { "transports", TENREC_OPT_LIST, TENREC_OPT_STRING, AT(list), 0, "[uv]", 0, 0, "uv|shm", "" },
    { "messages_to_delay", TENREC_OPT_MAP, TENREC_OPT_DURATION, AT(map), TENREC_OPT_PLAIN_SECONDS,
      "{}", 0, 0, NULL, "" },
    { "rules", TENREC_OPT_RECORDS, 0, AT(rules), 0, "[]", 0, 0, NULL, "", &record },
};
/* clang-format on */

static const struct tenrec_plugin plugin = {
    TENREC_PLUGIN_HEADER,
    .name = "fuzz",
    TENREC_PLUGIN_OPTIONS(table, struct options),
};

/* Touches every byte of what is shown. */
static void look(void *arg, const char *key, const char *value, const char *source)
{
    *(size_t *)arg += strlen(key) + strlen(value) + strlen(source);
}

static void use(const struct tenrec_config *config)
{
    struct config_layer *entry;
    tenrec_error err;
    size_t n, sum = 0;

    if (config_show(config, look, &sum, &err) != TENREC_OK)
        abort(); /* what was accepted can be shown */
    if (config_layers(config, &entry, &n, &err) != TENREC_OK || n == 0)
        abort();
    free(entry);
    if (config_entries(config, SECTION_BACKENDS, &entry, &n, &err) != TENREC_OK)
        abort();
    for (size_t i = 0; i < n; i++)
        options_show(&plugin, &entry[i], look, &sum, &err);
    free(entry);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    const struct position where = { .kind = POSITION_FILE, .name = "fuzz.yaml" };
    /* A long text is tried for one option only, which keeps the fuzzer quick. */
    const size_t n = sizeof table / sizeof table[0];
    const size_t first = len > 64 ? len % n : 0, end = len > 64 ? first + 1 : n;
    struct tenrec_config *config;
    struct node *root;
    char *text = malloc(len + 1);
    tenrec_error err;

    if (!text)
        return 0;
    if (len)
        memcpy(text, data, len);
    text[len] = '\0';
    if (tree_parse((const char *)data, len, &where, &root, &err) == TENREC_OK)
        node_drop(root);
    if (tenrec_config_parse(text, "fuzz.yaml", &config, &err) == TENREC_OK) {
        use(config);
        tenrec_config_drop(config);
    }
    if (tenrec_config_parse("backend: a\nbackends: {a: {plugin: p}}", "", &config, &err) !=
        TENREC_OK)
        abort();
    for (size_t i = first; i < end; i++) {
        char key[64];
        snprintf(key, sizeof key, "backends.a.options.%s", table[i].key);
        if (tenrec_config_set(config, key, text, &err) != TENREC_OK)
            abort(); /* an option is checked with its table, not before */
        use(config);
    }
    tenrec_config_set(config, "worker", text, &err);
    tenrec_config_set(config, "backends", text, &err);
    tenrec_config_set(config, text, "1", &err);
    tenrec_config_drop(config);
    free(text);
    return 0;
}
