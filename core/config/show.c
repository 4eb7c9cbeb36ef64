/* SPDX-License-Identifier: Apache-2.0 */
/* show.c - prints the effective values. */
#include "core/base/memory.h"
#include "core/config/config.h"
#include "core/config/options.h"
#include "core/config/settings.h"
#include "core/config/state.h"
#include "core/config/value.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define SECRET "***"

/* A text that is printed to memory. */
struct text {
    FILE *to;
    char *p;
    size_t len;
};

static bool text_open(struct text *t)
{
    t->p = NULL;
    t->to = open_memstream(&t->p, &t->len);
    return t->to != NULL;
}

/* Returns the text without passwords; NULL: out of memory, now or before (not `whole`). */
static char *text_finish(struct text *t, bool whole)
{
    char *masked = fclose(t->to) == 0 && whole ? secret_mask(t->p) : NULL;

    free(t->p);
    return masked;
}

/* Within a list or map, text that YAML would parse differently is quoted. */
static void add_quoted(FILE *to, const char *s)
{
    static const char harmless[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:";
    bool plain = *s && *s != '-' && s[strspn(s, harmless)] == '\0' && s[strlen(s) - 1] != ':';

    if (plain) {
        fputs(s, to);
        return;
    }
    fputc('"', to);
    for (; *s; s++) {
        if (*s == '"' || *s == '\\')
            fputc('\\', to);
        fputc(*s, to);
    }
    fputc('"', to);
}

static void add_scalar(FILE *to, enum tenrec_option_type type, const union tenrec_option_value *v,
                       bool quoted)
{
    char buf[QUANTITY_TEXT_MAX];

    switch (type) {
    case TENREC_OPT_BOOL:
        fputs(v->b ? "true" : "false", to);
        break;
    case TENREC_OPT_STRING:
        if (quoted)
            add_quoted(to, v->s);
        else
            fputs(v->s ? v->s : "", to);
        break;
    case TENREC_OPT_INT:
        fprintf(to, "%" PRId64, v->i);
        break;
    case TENREC_OPT_DOUBLE:
        fprintf(to, "%.15g", v->d);
        break;
    case TENREC_OPT_DURATION:
        fputs(quantity_print_duration(v->ms, buf), to);
        break;
    case TENREC_OPT_SIZE:
        fputs(quantity_print_size(v->bytes, buf), to);
        break;
    default:
        break;
    }
}

static void add_list(FILE *to, enum tenrec_option_type item, const struct tenrec_option_list *list)
{
    fputc('[', to);
    for (size_t i = 0; i < list->n; i++) {
        fputs(i ? ", " : "", to);
        add_scalar(to, item, &list->v[i], true);
    }
    fputc(']', to);
}

static void add_map(FILE *to, enum tenrec_option_type item, const struct tenrec_option_map *map)
{
    fputc('{', to);
    for (size_t i = 0; i < map->n; i++) {
        fputs(i ? ", " : "", to);
        add_quoted(to, map->v[i].key);
        fputs(": ", to);
        add_scalar(to, item, &map->v[i].value, true);
    }
    fputc('}', to);
}

/* Prints the values of each map that differ from the default. Returns false when out of memory. */
static bool add_records(FILE *to, const struct tenrec_option_record *record,
                        const struct tenrec_option_records *list)
{
    const struct tenrec_plugin table = record_table(record);

    fputc('[', to);
    for (size_t i = 0; i < list->n; i++) {
        const void *item = (const char *)list->v + i * record->size;
        const char *join = "";
        fputs(i ? ", {" : "{", to);
        for (uint32_t k = 0; k < record->n_options; k++) {
            struct tenrec_option o = options_at(&table, k);
            char *value = options_print(&o, item);
            if (!value)
                return false;
            if (strcmp(value, o.def ? o.def : "") != 0) {
                fprintf(to, "%s%s: ", join, o.key);
                if (o.type == TENREC_OPT_STRING)
                    add_quoted(to, value);
                else
                    fputs(value, to);
                join = ", ";
            }
            free(value);
        }
        fputc('}', to);
    }
    fputc(']', to);
    return true;
}

char *options_print(const struct tenrec_option *opt, const void *opts)
{
    const void *at = (const char *)opts + opt->offset;
    union tenrec_option_value v = { 0 };
    struct text t;
    bool whole = true;

    if (opt->flags & TENREC_OPT_SECRET)
        return memory_text(SECRET);
    if (!text_open(&t))
        return NULL;
    if (opt->type == TENREC_OPT_LIST) {
        add_list(t.to, opt->item, at);
    } else if (opt->type == TENREC_OPT_MAP) {
        add_map(t.to, opt->item, at);
    } else if (opt->type == TENREC_OPT_RECORDS) {
        whole = add_records(t.to, opt->record, at);
    } else {
        memcpy(&v, at, value_size(opt->type));
        add_scalar(t.to, opt->type, &v, false);
    }
    return text_finish(&t, whole);
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
                               const struct position *where, tenrec_error *err)
{
    char source[POSITION_TEXT_MAX], full[256];

    if (!value)
        return memory_fail(err);
    snprintf(full, sizeof full, "%s%s", show->prefix, key);
    show->fn(show->arg, full, value, position_text(where, source));
    free(value);
    return TENREC_OK;
}

static tenrec_status show_table(const struct tenrec_plugin *desc, const struct option_source *src,
                                const void *opts, const struct show *show, tenrec_error *err)
{
    static const struct position by_default = { .kind = POSITION_DEFAULT };

    for (uint32_t i = 0; i < desc->n_options; i++) {
        struct tenrec_option opt = options_at(desc, i);
        struct node *node = NULL;
        tenrec_status st = options_resolve(&opt, src, &node, err);
        if (st == TENREC_OK)
            st = show_emit(show, opt.key,
                           node || opt.def ? options_print(&opt, opts) : memory_text("(not set)"),
                           node ? &node->where : &by_default, err);
        node_drop(node);
        if (st != TENREC_OK)
            return st;
    }
    return TENREC_OK;
}

static void add_device(FILE *to, const struct tenrec_device *device)
{
    fprintf(to, device->kind == TENREC_CPU ? "cpu" : "cuda:%d", (int)device->index);
}

static tenrec_status show_device_maps(const struct tenrec_config *config,
                                      const struct config_settings *s, const struct show *show,
                                      tenrec_error *err)
{
    struct position where = settings_where(config, SETTINGS_DEVICE_MAPS);
    struct text t;

    if (!text_open(&t))
        return show_emit(show, SETTINGS_DEVICE_MAPS, NULL, &where, err);
    fputc('{', t.to);
    for (size_t i = 0; i < s->n_device_maps; i++) {
        const struct config_device_map *map = &s->device_map[i];
        fputs(i ? ", " : "", t.to);
        add_quoted(t.to, map->worker);
        fputs(": {", t.to);
        for (size_t k = 0; k < map->n; k++) {
            fputs(k ? ", " : "", t.to);
            add_device(t.to, &map->pair[k].from);
            fputs(": ", t.to);
            add_device(t.to, &map->pair[k].to);
        }
        fputc('}', t.to);
    }
    fputc('}', t.to);
    return show_emit(show, SETTINGS_DEVICE_MAPS, text_finish(&t, true), &where, err);
}

static tenrec_status show_security(const struct tenrec_config *config, const struct show *outer,
                                   tenrec_error *err)
{
    const struct option_source src = security_source(config), mtls = security_mtls_source(config);
    const struct show show = { outer->fn, outer->arg, "security." };
    const struct show show_mtls = { outer->fn, outer->arg, "security." SECURITY_MTLS_KEY "." };
    struct config_security *s;
    tenrec_status st = config_security_make(config, &s, err);

    if (st != TENREC_OK)
        return st;
    st = show_table(&security_table, &src, s, &show, err);
    if (st == TENREC_OK)
        st = show_table(&security_mtls_table, &mtls, &s->mtls, &show_mtls, err);
    config_security_drop(s);
    return st;
}

static tenrec_status show_observe(const struct tenrec_config *config, const struct show *outer,
                                  tenrec_error *err)
{
    const struct option_source src = observe_source(config);
    const struct show show = { outer->fn, outer->arg, "observe." };
    struct config_observe *o;
    tenrec_status st = config_observe_make(config, &o, err);

    if (st == TENREC_OK)
        st = show_table(&observe_table, &src, o, &show, err);
    else
        return st;
    config_observe_drop(o);
    return st;
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
    if (st == TENREC_OK)
        st = show_security(config, &show, err);
    if (st == TENREC_OK)
        st = show_observe(config, &show, err);
    show.prefix = "";
    for (size_t i = 0; st == TENREC_OK && i < sizeof top / sizeof top[0]; i++) {
        const struct node *node = node_get(config->root, top[i]);
        st = show_emit(&show, top[i], secret_mask(node->text), &node->where, err);
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
    st = show_emit(&show, "plugin", memory_text(layer->plugin), &layer->plugin_where, err);
    if (st == TENREC_OK && layer->wraps)
        st = show_emit(&show, "wraps", memory_text(layer->wraps), &layer->wraps_where, err);
    snprintf(prefix, sizeof prefix, "%s.%s.options.", section_key(layer->section), layer->name);
    if (st == TENREC_OK)
        st = show_table(desc, &src, opts, &show, err);
    options_drop(opts);
    return st;
}
