/* SPDX-License-Identifier: Apache-2.0 */
#include "top/sample.h"

#include <stdlib.h>
#include <string.h>

const char *sample_state_name(enum sample_state state)
{
    static const char *const name[] = { "up", "joining", "silent", "stopped", "lost" };

    return name[state];
}

struct sample_worker *sample_find(const struct sample *s, const char *name, tenrec_peer id)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->worker[i].id == id && strcmp(s->worker[i].name, name) == 0)
            return &s->worker[i];
    return NULL;
}

void sample_finish(struct sample *s)
{
    for (size_t i = 0; i < s->n; i++)
        reading_finish(&s->worker[i].reading);
    free(s->worker);
    *s = (struct sample){ .n = 0 };
}
