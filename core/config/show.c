/* SPDX-License-Identifier: Apache-2.0 */
/* show.c - prints the effective values. */
#include "base/memory.h"
#include "config/record.h"
#include "config/settings.h"
#include "config/state.h"
#include "yaml/quantity.h"
#include "yaml/secret.h"
#include "yaml/value.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define SECRET "***"

/* A text that grows; `p` is NULL once memory ran out. */
struct text {
    char *p;
    size_t len, room;
};

static void add_n(struct text *t, const char *s, size_t n)
{
    if (t->p && t->len + n >= t->room) {
        size_t room = (t->len + n + 1) * 2;
        char *p = memory_resize(t->p, room, 1);
        if (!p)
            free(t->p);
        t->p = p;
        t->room = room;
    }
    if (!t->p)
        return;
    memcpy(t->p + t->len, s, n);
    t->len += n;
    t->p[t->len] = '\0';
}

static void show_add(struct text *t, const char *s)
{
    add_n(t, s, strlen(s));
}

/* Within a list or map, text that YAML would parse differently is quoted. */
static void add_quoted(struct text *t, const char *s)
{
    static const char harmless[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:";
    bool plain = *s && *s != '-' && s[strspn(s, harmless)] == '\0' && s[strlen(s) - 1] != ':';

    if (plain) {
        show_add(t, s);
        return;
    }
    show_add(t, "\"");
    for (; *s; s++) {
        if (*s == '"' || *s == '\\')
            show_add(t, "\\");
        add_n(t, s, 1);
    }
    show_add(t, "\"");
}

static void add_scalar(struct text *t, enum tenrec_option_type type,
                       const union tenrec_option_value *v, bool quoted)
{
    char buf[64];

    buf[0] = '\0';
    switch (type) {
    case TENREC_OPT_BOOL:
        show_add(t, v->b ? "true" : "false");
        return;
    case TENREC_OPT_STRING:
        if (quoted)
            add_quoted(t, v->s);
        else
            show_add(t, v->s ? v->s : "");
        return;
    case TENREC_OPT_INT:
        snprintf(buf, sizeof buf, "%" PRId64, v->i);
        break;
    case TENREC_OPT_DOUBLE:
        snprintf(buf, sizeof buf, "%.15g", v->d);
        break;
    case TENREC_OPT_DURATION:
        quantity_print_duration(v->ms, buf);
        break;
    case TENREC_OPT_SIZE:
        quantity_print_size(v->bytes, buf);
        break;
    default:
        break;
    }
    show_add(t, buf);
}

static void add_list(struct text *t, enum tenrec_option_type item,
                     const struct tenrec_option_list *list)
{
    show_add(t, "[");
    for (size_t i = 0; i < list->n; i++) {
        show_add(t, i ? ", " : "");
        add_scalar(t, item, &list->v[i], true);
    }
    show_add(t, "]");
}

static void add_map(struct text *t, enum tenrec_option_type item,
                    const struct tenrec_option_map *map)
{
    show_add(t, "{");
    for (size_t i = 0; i < map->n; i++) {
        show_add(t, i ? ", " : "");
        add_quoted(t, map->v[i].key);
        show_add(t, ": ");
        add_scalar(t, item, &map->v[i].value, true);
    }
    show_add(t, "}");
}

static void add_records(struct text *t, const struct tenrec_option_record *record,
                        const struct tenrec_option_records *list);

static struct text text_new(void)
{
    return (struct text){ .p = memory_new(64, 1), .room = 64 };
}

/* Takes `t` and returns its text without passwords. */
static char *text_finish(struct text t)
{
    char *masked = t.p ? secret_mask(t.p) : NULL;

    free(t.p);
    return masked;
}

char *options_print(const struct tenrec_option *opt, const void *opts)
{
    const void *at = (const char *)opts + opt->offset;
    union tenrec_option_value v = { 0 };
    struct text t = text_new();

    if (opt->flags & TENREC_OPT_SECRET) {
        show_add(&t, SECRET);
    } else if (opt->type == TENREC_OPT_LIST) {
        add_list(&t, opt->item, at);
    } else if (opt->type == TENREC_OPT_MAP) {
        add_map(&t, opt->item, at);
    } else if (opt->type == TENREC_OPT_RECORDS) {
        add_records(&t, opt->record, at);
    } else {
        memcpy(&v, at, value_size(opt->type));
        add_scalar(&t, opt->type, &v, false);
    }
    return text_finish(t);
}

/* Prints the values of each map that differ from the default. */
static void add_records(struct text *t, const struct tenrec_option_record *record,
                        const struct tenrec_option_records *list)
{
    const struct tenrec_plugin table = record_table(record);

    show_add(t, "[");
    for (size_t i = 0; i < list->n; i++) {
        const void *item = (const char *)list->v + i * record->size;
        bool first = true;
        show_add(t, i ? ", {" : "{");
        for (uint32_t k = 0; k < record->n_options; k++) {
            struct tenrec_option o = options_at(&table, k);
            char *value = options_print(&o, item);
            if (value && strcmp(value, o.def ? o.def : "") != 0) {
                show_add(t, first ? "" : ", ");
                show_add(t, o.key);
                show_add(t, ": ");
                if (o.type == TENREC_OPT_STRING)
                    add_quoted(t, value);
                else
                    show_add(t, value);
                first = false;
            } else if (!value) {
                free(t->p);
                t->p = NULL;
            }
            free(value);
        }
        show_add(t, "}");
    }
    show_add(t, "]");
}

const char *options_type(const struct tenrec_option *opt, char buf[OPTIONS_TYPE_MAX])
{
    static const struct {
        const char *one, *many;
    } names[] = {
        [TENREC_OPT_BOOL] = { "boolean", "booleans" },
        [TENREC_OPT_INT] = { "integer", "integers" },
        [TENREC_OPT_DOUBLE] = { "number", "numbers" },
        [TENREC_OPT_DURATION] = { "duration", "durations" },
        [TENREC_OPT_SIZE] = { "size", "sizes" },
        [TENREC_OPT_STRING] = { "string", "strings" },
        [TENREC_OPT_LIST] = { "list", "lists" },
        [TENREC_OPT_MAP] = { "map", "maps" },
        [TENREC_OPT_RECORDS] = { "list of maps", "lists of maps" },
    };
    const size_t n = sizeof names / sizeof names[0];
    const char *type = (size_t)opt->type < n ? names[opt->type].one : NULL;
    const char *item = (size_t)opt->item < n ? names[opt->item].many : NULL;

    if (!type)
        snprintf(buf, OPTIONS_TYPE_MAX, "unknown");
    else if (opt->type == TENREC_OPT_LIST && item)
        snprintf(buf, OPTIONS_TYPE_MAX, "list of %s", item);
    else if (opt->type == TENREC_OPT_MAP && item)
        snprintf(buf, OPTIONS_TYPE_MAX, "map to %s", item);
    else
        snprintf(buf, OPTIONS_TYPE_MAX, "%s", type);
    return buf;
}

/* The callback for the values. */
struct show {
    config_show_fn *fn;
    void *arg;
    const char *prefix; /* of the keys */
};

/* Takes `value`, which may be NULL: out of memory. */
static tenrec_status show_emit(const struct show *show, const char *key, char *value,
                               const struct place *place, tenrec_error *err)
{
    char source[PLACE_TEXT_MAX], full[256];

    if (!value)
        return tenrec_fail(err, TENREC_ENOMEM, "out of memory");
    snprintf(full, sizeof full, "%s%s", show->prefix, key);
    show->fn(show->arg, full, value, place_text(place, source));
    free(value);
    return TENREC_OK;
}

static tenrec_status show_table(const struct tenrec_plugin *desc, const struct option_source *src,
                                const void *opts, const struct show *show, tenrec_error *err)
{
    static const struct place by_default = { .kind = PLACE_DEFAULT };

    for (uint32_t i = 0; i < desc->n_options; i++) {
        struct tenrec_option opt = options_at(desc, i);
        struct node *node = NULL;
        tenrec_status st = options_resolve(&opt, src, &node, err);
        if (st == TENREC_OK)
            st = show_emit(show, opt.key,
                           node || opt.def ? options_print(&opt, opts) : memory_text("(not set)"),
                           node ? &node->place : &by_default, err);
        node_drop(node);
        if (st != TENREC_OK)
            return st;
    }
    return TENREC_OK;
}

static void add_device(struct text *t, const struct tenrec_device *device)
{
    char buf[24];

    snprintf(buf, sizeof buf, device->kind == TENREC_CPU ? "cpu" : "cuda:%d", (int)device->index);
    show_add(t, buf);
}

static tenrec_status show_device_maps(const struct tenrec_config *config,
                                      const struct config_settings *s, const struct show *show,
                                      tenrec_error *err)
{
    struct place place = settings_place(config, SETTINGS_DEVICE_MAPS);
    struct text t = text_new();

    show_add(&t, "{");
    for (size_t i = 0; i < s->n_device_maps; i++) {
        const struct config_device_map *map = &s->device_map[i];
        show_add(&t, i ? ", " : "");
        add_quoted(&t, map->worker);
        show_add(&t, ": {");
        for (size_t k = 0; k < map->n; k++) {
            show_add(&t, k ? ", " : "");
            add_device(&t, &map->pair[k].from);
            show_add(&t, ": ");
            add_device(&t, &map->pair[k].to);
        }
        show_add(&t, "}");
    }
    show_add(&t, "}");
    return show_emit(show, SETTINGS_DEVICE_MAPS, text_finish(t), &place, err);
}

tenrec_status config_show(const struct tenrec_config *config, config_show_fn *fn, void *arg,
                          tenrec_error *err)
{
    static const char *const top[] = { "init_method", "backend" };
    struct show show = { fn, arg, "worker." };
    struct option_source src = settings_source(config);
    struct config_settings *s;
    tenrec_status st = config_settings_make(config, &s, err);

    if (st != TENREC_OK)
        return st;
    st = show_table(&settings_table, &src, s, &show, err);
    if (st == TENREC_OK)
        st = show_device_maps(config, s, &show, err);
    config_settings_drop(s);
    show.prefix = "";
    for (size_t i = 0; st == TENREC_OK && i < sizeof top / sizeof top[0]; i++) {
        const struct node *node = node_get(config->root, top[i]);
        st = show_emit(&show, top[i], secret_mask(node->text), &node->place, err);
    }
    return st;
}

tenrec_status options_show(const struct tenrec_plugin *desc, const struct config_layer *layer,
                           config_show_fn *fn, void *arg, tenrec_error *err)
{
    struct option_source src = options_source(layer);
    char prefix[128];
    struct show show = { fn, arg, prefix };
    tenrec_status st;
    void *opts;

    snprintf(prefix, sizeof prefix, "%s.%s.", section_key(layer->section), layer->name);
    st = options_make(desc, layer, &opts, err);
    if (st != TENREC_OK)
        return st;
    st = show_emit(&show, "plugin", memory_text(layer->plugin), &layer->plugin_place, err);
    if (st == TENREC_OK && layer->wraps)
        st = show_emit(&show, "wraps", memory_text(layer->wraps), &layer->wraps_place, err);
    snprintf(prefix, sizeof prefix, "%s.%s.options.", section_key(layer->section), layer->name);
    if (st == TENREC_OK)
        st = show_table(desc, &src, opts, &show, err);
    options_drop(opts);
    return st;
}
