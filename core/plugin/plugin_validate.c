/* SPDX-License-Identifier: Apache-2.0 */
#include "core/plugin/plugin.h"

#include "core/config/options.h"
#include "core/config/value.h"

#include <string.h>

#define MAX_OPTIONS 1024
#define MAX_OPTIONS_SIZE (1u << 20)
#define MAX_STRUCT_SIZE 4096 /* of a later version */

bool plugin_validate_name_ok(const char *name)
{
    size_t n = name ? strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") : 0;

    return n > 0 && n < 64 && name[n] == '\0';
}

/* Checks option `i` by itself. */
static tenrec_status check_option(const struct tenrec_plugin *p, uint32_t i, tenrec_error *err)
{
    const struct tenrec_option o = options_at(p, i);
    const size_t size = value_size(o.type);

    if (!plugin_validate_name_ok(o.key))
        return tenrec_fail(err, TENREC_EPLUGIN,
                           "option %u has the key '%.64s', expected up to 63 of [a-z0-9_]", i,
                           o.key ? o.key : "");
    if (!size)
        return tenrec_fail(err, TENREC_EPLUGIN, "option '%s' has the unknown type %d", o.key,
                           (int)o.type);
    if (o.type == TENREC_OPT_LIST || o.type == TENREC_OPT_MAP ? !value_is_scalar(o.item)
                                                              : o.item != 0)
        return tenrec_fail(
            err, TENREC_EPLUGIN, "option '%s' has items of the type %d, %s", o.key, (int)o.item,
            o.type == TENREC_OPT_LIST || o.type == TENREC_OPT_MAP ? "expected a plain type"
                                                                  : "but is no list or map");
    if (o.offset > p->options_size || size > p->options_size - o.offset)
        return tenrec_fail(err, TENREC_EPLUGIN,
                           "option '%s' is at bytes %u to %zu of an options struct of %u bytes",
                           o.key, o.offset, o.offset + size, p->options_size);
    if (o.offset % value_align(o.type))
        return tenrec_fail(err, TENREC_EPLUGIN, "option '%s' is at the unaligned offset %u", o.key,
                           o.offset);
    if (!o.help)
        return tenrec_fail(err, TENREC_EPLUGIN, "option '%s' has no help", o.key);
    return TENREC_OK;
}

/* Checks option `i` against the options before it. */
static tenrec_status check_apart(const struct tenrec_plugin *p, uint32_t i, tenrec_error *err)
{
    const struct tenrec_option b = options_at(p, i);

    for (uint32_t k = 0; k < i; k++) {
        const struct tenrec_option a = options_at(p, k);
        if (strcmp(a.key, b.key) == 0)
            return tenrec_fail(err, TENREC_EPLUGIN, "duplicate option '%s'", b.key);
        if (a.offset < b.offset + value_size(b.type) && b.offset < a.offset + value_size(a.type))
            return tenrec_fail(err, TENREC_EPLUGIN, "options '%s' and '%s' overlap at offset %u",
                               a.key, b.key, b.offset);
    }
    return TENREC_OK;
}

static tenrec_status check_options(const struct tenrec_plugin *p, bool in_record,
                                   tenrec_error *err);

/* Checks the table of a list of maps. */
static tenrec_status check_record(const struct tenrec_option *o, tenrec_error *err)
{
    struct tenrec_plugin sub;
    tenrec_status st;

    if (!o->record || !o->record->size)
        return tenrec_fail(err, TENREC_EPLUGIN, "option '%s' has no record", o->key);
    sub = record_table(o->record);
    st = check_options(&sub, true, err);
    if (st != TENREC_OK)
        tenrec_error_prefix(err, "record of option '%s'", o->key);
    return st;
}

static tenrec_status check_options(const struct tenrec_plugin *p, bool in_record, tenrec_error *err)
{
    if (p->options_size > MAX_OPTIONS_SIZE)
        return tenrec_fail(err, TENREC_EPLUGIN,
                           "the options struct has %u bytes, expected at most %u", p->options_size,
                           MAX_OPTIONS_SIZE);
    if (p->n_options == 0)
        return TENREC_OK;
    if (p->n_options > MAX_OPTIONS)
        return tenrec_fail(err, TENREC_EPLUGIN, "has %u options, expected at most %u", p->n_options,
                           MAX_OPTIONS);
    if (!p->options)
        return tenrec_fail(err, TENREC_EPLUGIN, "has %u options, but no table", p->n_options);
    /* The fields up to `record` are read; later versions may have appended fields. */
    if (p->option_size < offsetof(struct tenrec_option, record) ||
        p->option_size > MAX_STRUCT_SIZE || p->option_size % sizeof(void *))
        return tenrec_fail(err, TENREC_EABI,
                           "the option table has %u bytes per option, expected %zu", p->option_size,
                           sizeof(struct tenrec_option));
    for (uint32_t i = 0; i < p->n_options; i++) {
        const struct tenrec_option o = options_at(p, i);
        tenrec_status st = check_option(p, i, err);
        if (st == TENREC_OK)
            st = check_apart(p, i, err);
        if (st == TENREC_OK && o.type == TENREC_OPT_RECORDS)
            st = in_record ? tenrec_fail(err, TENREC_EPLUGIN,
                                         "option '%s': nested records are not supported", o.key)
                           : check_record(&o, err);
        if (st != TENREC_OK)
            return st;
    }
    return TENREC_OK;
}

/* "a store", for error texts. */
static const char *plugin_validate_kind_name(uint32_t kind)
{
    switch (kind) {
    case TENREC_PLUGIN_BACKEND:
        return "a backend";
    case TENREC_PLUGIN_STORE:
        return "a store";
    case TENREC_PLUGIN_OBSERVER:
        return "an observer";
    }
    return "of an unknown kind";
}

tenrec_status plugin_validate_check_kind(const struct tenrec_plugin *p, int wanted,
                                         tenrec_error *err)
{
    bool known = p->kind >= TENREC_PLUGIN_BACKEND && p->kind <= TENREC_PLUGIN_OBSERVER;

    if (wanted == PLUGIN_KIND_ANY ? known : p->kind == (uint32_t)wanted)
        return TENREC_OK;
    return tenrec_fail(err, TENREC_EPLUGIN, "is %s (kind %u), expected %s",
                       plugin_validate_kind_name(p->kind), p->kind,
                       wanted == PLUGIN_KIND_ANY ? "a backend, a store or an observer"
                                                 : plugin_validate_kind_name((uint32_t)wanted));
}

tenrec_status plugin_validate_check(const struct tenrec_plugin *p, int wanted, tenrec_error *err)
{
    tenrec_status st;

    if (p->magic != TENREC_PLUGIN_MAGIC)
        return tenrec_fail(err, TENREC_EPLUGIN, "magic is %08x, expected %08x: no plugin of Tenrec",
                           p->magic, TENREC_PLUGIN_MAGIC);
    if (p->abi_major != TENREC_ABI_MAJOR)
        return tenrec_fail(err, TENREC_EABI, "built for ABI %u.%u, this core has %u.%u: rebuild it",
                           p->abi_major, p->abi_minor, TENREC_ABI_MAJOR, TENREC_ABI_MINOR);
    /* A description may end anywhere from `reserved2` on; the fields before it are mandatory. */
    if (p->size < offsetof(struct tenrec_plugin, reserved2) || p->size > MAX_STRUCT_SIZE)
        return tenrec_fail(err, TENREC_EABI, "the plugin's description has %u bytes, expected %zu",
                           p->size, sizeof *p);
    if ((st = plugin_validate_check_kind(p, wanted, err)) != TENREC_OK)
        return st;
    if (!plugin_validate_name_ok(p->name))
        return tenrec_fail(err, TENREC_EPLUGIN,
                           "has the name '%.64s', expected up to 63 of [a-z0-9_]",
                           p->name ? p->name : "");
    if (!p->version || !p->summary)
        return tenrec_fail(err, TENREC_EPLUGIN, "has no %s", p->version ? "summary" : "version");
    return check_options(p, false, err);
}

void plugin_validate_begin(tenrec_error *err)
{
    tenrec_fail(err, TENREC_OK, "%s", "");
}

tenrec_status plugin_check_address(const struct tenrec_plugin *p, const void *options,
                                   const char *address, tenrec_error *err)
{
    const struct tenrec_extension *list = TENREC_HAS(p, extensions) ? p->extensions : NULL;
    const struct tenrec_address_check *c = (const void *)tenrec_extension_find(
        list, TENREC_EXTENSION_ADDRESS, sizeof(struct tenrec_address_check));

    if (!c)
        return TENREC_OK;
    plugin_validate_begin(err);
    return plugin_validate_end(c->check(options, address, err), "check of an address", err);
}

tenrec_status plugin_validate_end(tenrec_status st, const char *function, tenrec_error *err)
{
    const bool known = st < 0 && strcmp(tenrec_status_name(st), "?") != 0;

    if (st == TENREC_OK)
        return st;
    if (!known && (!err || !*err->text))
        return tenrec_fail(err, TENREC_EPLUGIN,
                           "the plugin's %s returned %d, which is no status, and no text", function,
                           (int)st);
    if (err && !*err->text)
        return tenrec_fail(err, st, "the plugin's %s failed without a text: %s", function,
                           tenrec_status_text(st));
    if (err)
        err->code = known ? st : TENREC_EPLUGIN;
    return known ? st : TENREC_EPLUGIN;
}
