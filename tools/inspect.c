/* SPDX-License-Identifier: Apache-2.0 */
#include "outside.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

const char *inspect_text(const struct json_t *object, const char *key)
{
    const char *s = json_string_value(json_object_get(object, key));

    return s ? s : "";
}

long long inspect_number(const struct json_t *object, const char *key)
{
    return json_integer_value(json_object_get(object, key));
}

static json_t *as_object(const struct tenrec_value *map)
{
    json_t *object = json_object();

    for (uint64_t i = 0; i < map->n; i++) {
        const struct tenrec_value *v = &map->u.map[i].value;

        json_object_set_new(object, map->u.map[i].key,
                            v->type == TENREC_VALUE_INT    ? json_integer(v->u.integer)
                            : v->type == TENREC_VALUE_TEXT ? json_string(v->u.text)
                                                           : json_null());
    }
    return object;
}

static json_t *as_json_value(const struct tenrec_value *v);

static json_t *as_json_map(const struct tenrec_value *v, const char *without)
{
    json_t *object = json_object();

    for (uint64_t i = 0; i < v->n; i++)
        if (!without || strcmp(v->u.map[i].key, without) != 0)
            json_object_set_new(object, v->u.map[i].key, as_json_value(&v->u.map[i].value));
    return object;
}

static json_t *as_json_value(const struct tenrec_value *v)
{
    json_t *list, *text;

    switch (v->type) {
    case TENREC_VALUE_MAP:
        return as_json_map(v, NULL);
    case TENREC_VALUE_ARRAY:
        list = json_array();
        for (uint64_t i = 0; i < v->n; i++)
            json_array_append_new(list, as_json_value(&v->u.array[i]));
        return list;
    case TENREC_VALUE_INT:
        return json_integer(v->u.integer);
    case TENREC_VALUE_BOOL:
        return json_boolean(v->u.boolean);
    case TENREC_VALUE_TEXT:
        text = json_string(v->u.text);
        return text ? text : json_null(); /* the worker, which is not trusted, wrote it */
    default:
        return json_null();
    }
}

void inspect_print_json(const struct json_t *object)
{
    if (json_dumpf(object, stdout, JSON_COMPACT | JSON_REAL_PRECISION(15)) == 0)
        putchar('\n');
}

void inspect_print_map(const struct tenrec_value *map, const char *key, const char *instead)
{
    json_t *object = as_json_map(map, key);

    json_object_set_new(object, key, json_string(instead));
    inspect_print_json(object);
    json_decref(object);
}

static int by_key(const void *a, const void *b)
{
    const struct tenrec_entry *const *x = a, *const *y = b;

    return strcmp((*x)->key, (*y)->key);
}

static tenrec_status print_sorted(const struct tenrec_value *map, tenrec_error *err)
{
    const struct tenrec_entry **sorted = calloc(map->n ? map->n : 1, sizeof *sorted);

    if (!sorted)
        return tenrec_fail(err, TENREC_ENOMEM, "out of memory");
    for (uint64_t i = 0; i < map->n; i++)
        sorted[i] = &map->u.map[i];
    qsort(sorted, map->n, sizeof *sorted, by_key);
    for (uint64_t i = 0; i < map->n; i++) {
        const struct tenrec_value *v = &sorted[i]->value;
        char key[256], text[4096];

        /* The worker, which is not trusted, chose both. */
        tenrec_text_escape(key, sizeof key, sorted[i]->key, "");
        tenrec_text_escape(text, sizeof text, v->type == TENREC_VALUE_TEXT ? v->u.text : "", "");
        if (v->type == TENREC_VALUE_INT)
            printf("%-44s %lld\n", key, (long long)v->u.integer);
        else
            printf("%-44s %s\n", key, text);
    }
    free(sorted);
    return TENREC_OK;
}

static tenrec_status inspect_print(const struct tenrec_value *map, const char *name, bool as_json,
                                   tenrec_error *err)
{
    tenrec_status st = TENREC_OK;
    json_t *all;

    if (map->type != TENREC_VALUE_MAP)
        return tenrec_fail(err, TENREC_EPROTOCOL, "'%s' answers with %s, expected a map", name,
                           tenrec_value_type_name(map->type));
    if (!as_json)
        return print_sorted(map, err);
    all = json_pack("{s:s, s:o}", "worker", name, "debug_info", as_object(map));
    if (!all)
        st = tenrec_fail(err, TENREC_ENOMEM, "no memory for the answer of '%s'", name);
    else
        inspect_print_json(all);
    json_decref(all);
    return st;
}

int inspect(const struct tool *self, struct outside *o, const char *name, bool as_json)
{
    struct tenrec_value *map = NULL;
    struct tenrec_call_options call;
    tenrec_error err;
    tenrec_status st = outside_open(o, &err);

    if (st == TENREC_OK) {
        call = outside_call(o);
        st = tenrec_worker_inspect(o->worker, name, TENREC_INSPECT_DEBUG_INFO, &call, &map, &err);
        if (st != TENREC_OK)
            outside_explain(o, name, &err);
    }
    if (st == TENREC_OK)
        st = inspect_print(map, name, as_json, &err);
    tenrec_value_drop(map);
    outside_close(o);
    return st ? tool_fail(self, "%s", err.text) : TOOL_OK;
}
