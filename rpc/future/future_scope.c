/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/future/thread_state.h"

#include "core/base/log.h"
#include "core/base/memory.h"

#include <stdlib.h>

void future_scope_drop(struct future_scope *s)
{
    for (size_t i = 0; i < s->n; i++)
        tenrec_future_drop(s->future[i]);
    free(s->future);
    free(s);
}

tenrec_status future_scope_add(struct tenrec_future *f, tenrec_error *err)
{
    struct future_scope *s = thread_state.scope;
    struct tenrec_future **more;

    if (!s)
        return TENREC_OK;
    more = memory_grow(s->future, s->n, &s->room, sizeof(struct tenrec_future *));
    if (!more)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for a future in the scope");
    s->future = more;
    s->future[s->n++] = tenrec_future_share(f);
    return TENREC_OK;
}

tenrec_status tenrec_scope_begin(tenrec_error *err)
{
    struct future_scope *s = memory_new(1, sizeof *s);

    if (!s)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for a scope");
    s->outer = thread_state.scope;
    thread_state.scope = s;
    return TENREC_OK;
}

struct future_scope *future_scope_close(void)
{
    struct future_scope *s = thread_state.scope;

    if (s)
        thread_state.scope = s->outer;
    return s;
}

void future_scope_abandon(const char *name)
{
    struct future_scope *s;

    while ((s = future_scope_close())) {
        log_line(TENREC_LOG_WARN, "scope",
                 "%s did not end its scope: no thread waits for its %zu calls", name, s->n);
        future_scope_drop(s);
    }
}
