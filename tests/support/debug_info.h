/* SPDX-License-Identifier: Apache-2.0 */
/* debug_info.h - the debug info of a worker of this process: by key, and key by key. */
#ifndef TENREC_TESTS_SUPPORT_DEBUG_INFO_H
#define TENREC_TESTS_SUPPORT_DEBUG_INFO_H

#include <stdio.h>
#include <tenrec/observe.h>

/* Passes each key to `sink` with its value as text; none if there is no memory. */
static inline void debug_info_each(struct tenrec_worker *w, tenrec_sink_fn *sink, void *arg)
{
    struct tenrec_value *map = NULL;
    char number[24];

    if (tenrec_worker_inspect(w, NULL, TENREC_INSPECT_DEBUG_INFO, NULL, &map, NULL) != TENREC_OK)
        return;
    for (uint64_t i = 0; i < map->n; i++) {
        const struct tenrec_value *v = &map->u.map[i].value;

        snprintf(number, sizeof number, "%lld", (long long)v->u.integer);
        sink(arg, map->u.map[i].key, v->type == TENREC_VALUE_TEXT ? v->u.text : number);
    }
    tenrec_value_drop(map);
}

/* Returns the number under `key`; -1: the worker reports none. */
static inline long debug_info_number(struct tenrec_worker *w, const char *key)
{
    struct tenrec_value *map = NULL;
    const struct tenrec_value *v;
    long n = -1;

    if (tenrec_worker_inspect(w, NULL, TENREC_INSPECT_DEBUG_INFO, NULL, &map, NULL) != TENREC_OK)
        return n;
    v = tenrec_value_find(map, key);
    if (v && v->type == TENREC_VALUE_INT)
        n = (long)v->u.integer;
    tenrec_value_drop(map);
    return n;
}

#endif
