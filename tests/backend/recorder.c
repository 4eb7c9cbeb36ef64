/* SPDX-License-Identifier: Apache-2.0 */
#include "recorder.h"

#include "../testing.h"
#include "core/plugin/plugin.h"

#include <pthread.h>
#include <tenrec/backend.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char events[2048];

void recorder_note(const char *tag, const char *event)
{
    size_t n;

    pthread_mutex_lock(&lock);
    n = strlen(events);
    snprintf(events + n, sizeof events - n, "%s%s.%s", n ? " " : "", tag, event);
    pthread_mutex_unlock(&lock);
}

const char *recorder_events(void)
{
    static char copy[sizeof events];

    pthread_mutex_lock(&lock);
    memcpy(copy, events, sizeof events);
    events[0] = '\0';
    pthread_mutex_unlock(&lock);
    return copy;
}

static const struct recorder *options_of(struct tenrec_agent *self)
{
    return self->impl;
}

static void note(struct tenrec_agent *self, const char *event)
{
    recorder_note(options_of(self)->tag, event);
}

static const char *r_address(struct tenrec_agent *self)
{
    return options_of(self)->tag;
}

static tenrec_status r_start(struct tenrec_agent *self, const struct tenrec_member *member,
                             uint32_t n, tenrec_error *err)
{
    (void)member, (void)n;
    note(self, "start");
    return options_of(self)->fail_start ? tenrec_fail(err, TENREC_ECONNECT, "asked not to start")
                                        : TENREC_OK;
}

static void r_joined(struct tenrec_agent *self, const struct tenrec_member *member)
{
    (void)member;
    note(self, "joined");
}

static void r_left(struct tenrec_agent *self, tenrec_peer id)
{
    (void)id;
    note(self, "left");
}

static void r_send(struct tenrec_agent *self, tenrec_peer to, struct tenrec_msg *msg,
                   struct tenrec_done done)
{
    note(self, "send");
    if (self->inner) {
        self->host->send_inner(self, to, msg, done);
        return;
    }
    tenrec_done_succeed(done);
    self->host->deliver_outer(self, to, msg);
}

static void r_deliver(struct tenrec_agent *self, tenrec_peer from, struct tenrec_msg *msg)
{
    note(self, "deliver");
    self->host->deliver_outer(self, from, msg);
}

static tenrec_status r_poll(struct tenrec_agent *self, tenrec_peer peer,
                            const struct tenrec_wait *wait)
{
    (void)peer, (void)wait;
    note(self, "poll");
    return TENREC_OK;
}

static tenrec_status r_lead(struct tenrec_agent *self, const struct tenrec_wait *wait)
{
    (void)wait;
    note(self, "lead");
    return TENREC_OK;
}

static void r_resume(struct tenrec_agent *self)
{
    note(self, "resume");
}

static tenrec_status r_disconnect(struct tenrec_agent *self, tenrec_peer peer, tenrec_error *err)
{
    (void)peer, (void)err;
    note(self, "disconnect");
    return TENREC_OK;
}

static tenrec_status r_drain(struct tenrec_agent *self, uint32_t ms, tenrec_error *err)
{
    (void)ms, (void)err;
    note(self, "drain");
    return TENREC_OK;
}

static void r_shutdown(struct tenrec_agent *self)
{
    note(self, "shutdown");
}

static void r_destroy(struct tenrec_agent *self)
{
    note(self, "destroy");
}

static void r_debug_info(struct tenrec_agent *self, tenrec_sink_fn *sink, void *arg)
{
    sink(arg, "tag", options_of(self)->tag);
}

const struct tenrec_agent_ops recorder_ops = {
    .size = sizeof recorder_ops,
    .address = r_address,
    .start = r_start,
    .member_joined = r_joined,
    .member_left = r_left,
    .send = r_send,
    .deliver = r_deliver,
    .poll = r_poll,
    .resume = r_resume,
    .disconnect = r_disconnect,
    .drain = r_drain,
    .shutdown = r_shutdown,
    .destroy = r_destroy,
    .debug_info = r_debug_info,
    .lead = r_lead,
};

const struct tenrec_agent_ops recorder_no_ops = {
    .size = sizeof recorder_no_ops,
    .destroy = r_destroy,
};

static tenrec_status construct(void *opts, tenrec_error *err)
{
    (void)opts, (void)err;
    return TENREC_OK;
}

static tenrec_status init(const struct tenrec_init *in, struct tenrec_agent *self,
                          tenrec_error *err)
{
    const struct recorder *r = in->options;

    recorder_note(r->tag, "init");
    if (r->fail_init)
        return tenrec_fail(err, TENREC_EOS, "asked not to init");
    self->ops = r->ops;
    self->impl = (void *)(uintptr_t)r;
    return TENREC_OK;
}

static const struct tenrec_plugin wrapper = {
    TENREC_PLUGIN_HEADER, .flags = TENREC_PLUGIN_WRAPS,           .name = "recorder",
    .version = "1",       .summary = "Writes down what happens.",
};

static const struct tenrec_plugin wire = {
    TENREC_PLUGIN_HEADER, .flags = TENREC_PLUGIN_LOOPBACK_ONLY,   .name = "recorder_wire",
    .version = "1",       .summary = "Writes down what happens.",
};

struct plugin *recorder_backend(bool wraps)
{
    const struct tenrec_plugin *p = wraps ? &wrapper : &wire;
    struct plugin *b;
    tenrec_error err;

    if (!tenrec_backend_registered(p->name))
        assert_status(tenrec_register_backend(p, construct, init, &err), &err);
    assert_status(plugin_get(p->name, &b, &err), &err);
    plugin_put(b); /* the tests outlive it */
    return b;
}
