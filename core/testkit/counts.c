/* SPDX-License-Identifier: Apache-2.0 */
#include "testkit/counts.h"

#include <stdlib.h>
#include <string.h>
#include <tenrec/observe.h>

struct wanted {
    const char *const *keys;
    size_t n;
    int64_t *value;
};

static void counts_sink(void *arg, const char *key, const char *value)
{
    const struct wanted *w = arg;

    for (size_t i = 0; i < w->n; i++)
        if (strcmp(key, w->keys[i]) == 0)
            w->value[i] = strtoll(value, NULL, 10);
}

void counts_get(struct tenrec_worker *w, const char *const *keys, size_t n, int64_t *ret)
{
    struct wanted wanted = { keys, n, ret };

    for (size_t i = 0; i < n; i++)
        ret[i] = -1;
    tenrec_worker_list_debug_info(w, counts_sink, &wanted);
}
