/* SPDX-License-Identifier: Apache-2.0 */
#include "conformance/world.h"

#include "conformance/expect.h"
#include "core/plugin/plugin.h"

#include <pthread.h>
#include <string.h>
#include <tenrec/backend.h>
#include <tenrec/plugin.h>

#define NAME "conformance_spy"
#define LAYERS_MAX 32

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards what follows */
static struct spy_seen seen;
static bool has_seen;

static void spy_send(struct tenrec_agent *self, tenrec_peer to, struct tenrec_msg *msg,
                     struct tenrec_done done)
{
    pthread_mutex_lock(&lock);
    if (msg->type & TENREC_MSG_REQUEST_BIT) {
        seen = (struct spy_seen){ msg->id, msg->deadline_ns, msg->key_len };
        has_seen = true;
    }
    pthread_mutex_unlock(&lock);
    self->host->send_inner(self, to, msg, done);
}

bool spy_saw(int64_t id, struct spy_seen *ret)
{
    bool found;

    pthread_mutex_lock(&lock);
    found = has_seen && seen.id == id;
    *ret = seen;
    pthread_mutex_unlock(&lock);
    return found;
}

static void spy_destroy(struct tenrec_agent *self)
{
    (void)self;
}

static const struct tenrec_agent_ops spy_ops = {
    .size = sizeof spy_ops,
    .send = spy_send,
    .destroy = spy_destroy,
};

static tenrec_status spy_construct(void *opts, tenrec_error *err)
{
    (void)opts, (void)err;
    return TENREC_OK;
}

static tenrec_status spy_init(const struct tenrec_init *in, struct tenrec_agent *self,
                              tenrec_error *err)
{
    (void)in, (void)err;
    self->ops = &spy_ops;
    return TENREC_OK;
}

static const struct tenrec_plugin spy_plugin = {
    TENREC_PLUGIN_HEADER,
    .flags = TENREC_PLUGIN_WRAPS,
    .name = NAME,
    .version = "1.0",
    .summary = "Shows the cases what a wrapper sends inwards.",
};

const struct chain_layer *spy_insert(const struct chain_layer *layer, size_t *n)
{
    static struct chain_layer all[LAYERS_MAX];
    static struct plugin *spy;
    tenrec_error err;

    if (*n < 2)
        return layer;
    expect_here(*n < LAYERS_MAX);
    if (!spy) {
        expect_ok(tenrec_register_backend(&spy_plugin, spy_construct, spy_init, &err), &err,
                  "this command");
        expect_ok(plugin_get(NAME, &spy, &err), &err, "this command");
    }
    all[0] = layer[0];
    all[1] = (struct chain_layer){ .name = NAME, .where = "", .backend = spy };
    memcpy(&all[2], &layer[1], (*n - 1) * sizeof *layer);
    *n += 1;
    return all;
}
