/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/call/calls.h"

void calls_init(struct calls *c)
{
    pending_init(&c->pending);
    active_calls_init(&c->active_calls);
    functions_init(&c->functions);
}

void calls_finish(struct calls *c)
{
    functions_finish(&c->functions);
    active_calls_finish(&c->active_calls);
    pending_finish(&c->pending);
}
