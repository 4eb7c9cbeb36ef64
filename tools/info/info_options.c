/* SPDX-License-Identifier: Apache-2.0 */
/* info_options.c - tables of options as JSON. */
#include "core/config/settings.h"
#include "core/config/value.h"
#include "info/info.h"

#include <jansson.h>
#include <string.h>

/* A limit as a user would write it. */
static json_t *info_limit(const struct tenrec_option *o, int64_t v)
{
    enum tenrec_option_type type = o->item ? o->item : o->type;
    char buf[QUANTITY_TEXT_MAX];

    if (type == TENREC_OPT_DURATION)
        return json_string(quantity_print_duration((uint64_t)v, buf));
    if (type == TENREC_OPT_SIZE)
        return json_string(quantity_print_size((uint64_t)v, buf));
    return json_integer(v);
}

static json_t *choice_list(const char *choices)
{
    json_t *list = json_array();

    while (*choices) {
        size_t n = strcspn(choices, "|");

        json_array_append_new(list, json_stringn(choices, n));
        choices += n + (choices[n] == '|');
    }
    return list;
}

static json_t *key_list(const struct tenrec_option_record *record);

static json_t *option_object(const struct tenrec_option *o)
{
    char type[OPTIONS_TYPE_MAX];
    json_t *r = json_object();

    json_object_set_new(r, "name", json_string(o->key));
    json_object_set_new(r, "type", json_string(options_type(o, type)));
    json_object_set_new(r, "default", json_string(o->def ? o->def : ""));
    if (o->min || o->max)
        json_object_set_new(r, "min", info_limit(o, o->min));
    if (o->max && o->max >= o->min && o->max < INT64_MAX / 2) /* else there is no limit */
        json_object_set_new(r, "max", info_limit(o, o->max));
    if (o->choices)
        json_object_set_new(r, "choices", choice_list(o->choices));
    json_object_set_new(r, "help", json_string(o->help ? o->help : ""));
    if (o->record)
        json_object_set_new(r, "keys", key_list(o->record));
    return r;
}

/* The keys of the maps of a list of maps. */
static json_t *key_list(const struct tenrec_option_record *record)
{
    const struct tenrec_plugin table = { .options = record->options,
                                         .n_options = record->n_options,
                                         .option_size = record->option_size };
    return info_options(&table);
}

json_t *info_options(const struct tenrec_plugin *table)
{
    json_t *list = json_array();

    for (uint32_t i = 0; i < table->n_options; i++) {
        struct tenrec_option o = options_at(table, i);

        json_array_append_new(list, option_object(&o));
    }
    return list;
}

/* The keys of `worker:`. */
json_t *info_worker_options(void)
{
    json_t *list = info_options(&settings_table);

    json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:s}", "name", SETTINGS_DEVICE_MAPS,
                                          "type", "map of maps", "default", "{}", "help",
                                          SETTINGS_DEVICE_MAPS_HELP));
    return list;
}

/* The keys of `observe:`. */
json_t *info_observe_options(void)
{
    return info_options(&observe_table);
}

/* The keys of `security:`, those of `mtls:` in it with their prefix. */
json_t *info_security_options(void)
{
    json_t *list = info_options(&security_table), *mtls = info_options(&security_mtls_table), *key;
    char name[64];
    size_t i;

    json_array_foreach(mtls, i, key)
    {
        snprintf(name, sizeof name, SECURITY_MTLS_KEY ".%s",
                 json_string_value(json_object_get(key, "name")));
        json_object_set_new(key, "name", json_string(name));
    }
    json_array_extend(list, mtls);
    json_decref(mtls);
    return list;
}
