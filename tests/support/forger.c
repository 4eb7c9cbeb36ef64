/* SPDX-License-Identifier: Apache-2.0 */
#include "forger.h"
#include "../testing.h"

#include <stdatomic.h>
#include <tenrec/backend.h>
#include <tenrec/tenrec.h>

enum { FORGERS_MAX = 8 };

static _Atomic(forger_fn *) forge;
static _Atomic(struct tenrec_agent *) agents[FORGERS_MAX]; /* by id */
static const tenrec_peer ids[FORGERS_MAX] = { 0, 1, 2, 3, 4, 5, 6, 7 };

void forger_set(forger_fn *fn)
{
    atomic_store(&forge, fn);
}

static void ignore(void *arg, const tenrec_error *err)
{
    (void)arg, (void)err;
}

void forger_send(tenrec_peer me, tenrec_peer to, struct tenrec_msg *msg)
{
    struct tenrec_agent *self = atomic_load(&agents[me]);

    self->host->send_inner(self, to, msg, (struct tenrec_done){ ignore, NULL });
}

static void send_forged(struct tenrec_agent *self, tenrec_peer to, struct tenrec_msg *msg,
                        struct tenrec_done done)
{
    forger_fn *fn = atomic_load(&forge);

    if (fn)
        fn(*(const tenrec_peer *)self->impl, to, msg);
    self->host->send_inner(self, to, msg, done);
}

static const struct tenrec_agent_ops forger_ops = {
    .size = sizeof forger_ops,
    .send = send_forged,
};

static tenrec_status construct(void *opts, tenrec_error *err)
{
    (void)opts, (void)err;
    return TENREC_OK;
}

static tenrec_status init(const struct tenrec_init *in, struct tenrec_agent *self,
                          tenrec_error *err)
{
    (void)err;
    if (in->me >= 0 && in->me < FORGERS_MAX) {
        self->impl = (void *)(uintptr_t)&ids[in->me];
        atomic_store(&agents[in->me], self);
    }
    self->ops = &forger_ops;
    return TENREC_OK;
}

static const struct tenrec_plugin forger = {
    TENREC_PLUGIN_HEADER,
    .flags = TENREC_PLUGIN_WRAPS,
    .name = "forger",
    .version = "1.0",
    .summary = "Changes messages as a test wants them.",
};

void forger_register(void)
{
    tenrec_error err;

    if (!tenrec_backend_registered("forger") &&
        tenrec_register_backend(&forger, construct, init, &err) != TENREC_OK)
        fail_msg("%s", err.text);
}
