/* SPDX-License-Identifier: Apache-2.0 */
#include "core/config/options.h"

#include "core/base/memory.h"

#include "core/config/value.h"

struct tenrec_plugin record_table(const struct tenrec_option_record *record)
{
    return (struct tenrec_plugin){
        .name = "record",
        .options = record->options,
        .n_options = record->n_options,
        .option_size = record->option_size,
        .options_size = record->size,
    };
}

static tenrec_status record_read(const struct tenrec_plugin *table, const struct node *node,
                                 const char *item, struct arena *arena, void *dst,
                                 tenrec_error *err)
{
    const struct option_source src = { .map = node, .entry = "", .item = item };
    char found[VALUE_CONTEXT_MAX];
    tenrec_status st;

    if (node->kind != NODE_MAP)
        return position_fail(err, TENREC_ECONFIG, &node->where, "%s: expected a map, found %s",
                             item, node_describe(node, found, sizeof found));
    st = options_check_keys(table, &src, NULL, err);
    return st == TENREC_OK ? options_fill(table, &src, arena, dst, err) : st;
}

tenrec_status record_read_all(const struct tenrec_option *opt, const struct node *node,
                              const char *context, struct arena *arena,
                              struct tenrec_option_records *ret, tenrec_error *err)
{
    const struct tenrec_plugin table = record_table(opt->record);
    char item[VALUE_CONTEXT_MAX], where[POSITION_TEXT_MAX];
    struct node *list = NULL;
    const char **positions;
    char *v;
    size_t n = 0;
    tenrec_status st = value_expand(opt, node, context, &list, err);

    if (st != TENREC_OK)
        return st;
    if (list->kind != NODE_LIST) {
        st = position_fail(err, TENREC_ECONFIG, &list->where, "%s: expected %s, found %s", context,
                           VALUE_RECORDS_EXPECTED, node_describe(list, item, sizeof item));
        node_drop(list);
        return st;
    }
    v = arena_new(arena, list->n ? list->n : 1, opt->record->size);
    positions = arena_new(arena, list->n ? list->n : 1, sizeof(const char *));
    if (!v || !positions)
        st = memory_fail(err);
    for (size_t i = 0; st == TENREC_OK && i < list->n; i++) {
        const struct position *at = &list->item[i]->where;

        if (list->item[i]->style == NODE_LEFT_OUT)
            continue;
        snprintf(item, sizeof item, "%s, item %zu", context, i + 1);
        st = record_read(&table, list->item[i], item, arena, v + n * opt->record->size, err);
        positions[n] =
            arena_text(arena, at->kind == POSITION_DEFAULT ? "" : position_text(at, where));
        if (st == TENREC_OK && !positions[n++])
            st = memory_fail(err);
    }
    ret->v = v;
    ret->where = positions;
    ret->n = n;
    node_drop(list);
    return st;
}
