/* SPDX-License-Identifier: Apache-2.0 */
/* broken.c - a wrapper that breaks the rule its option `breaks` names. `tenrec conformance` must
 * see each. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <tenrec/plugin.h>

#define OTHER 9 /* no member */

struct broken_options {
    const char *breaks;
};

struct broken {
    const char *breaks;
    int n_sent;
    struct tenrec_msg *kept; /* delivered too late */
    tenrec_peer kept_from;
};

static bool breaks(const struct tenrec_agent *self, const char *what)
{
    return strcmp(((const struct broken *)self->impl)->breaks, what) == 0;
}

static void nothing(void *arg, const tenrec_error *err)
{
    (void)arg, (void)err;
}

/* ---- on the way out ---- */

static void alter(const struct tenrec_agent *self, struct tenrec_msg *msg)
{
    if (breaks(self, "type"))
        msg->type ^= 1;
    if (breaks(self, "id"))
        msg->id ^= 1;
    if (breaks(self, "payload") && msg->payload_len)
        ((unsigned char *)msg->payload)[msg->payload_len - 1] ^= 1;
    if (breaks(self, "length") && msg->payload_len)
        msg->payload_len--;
    if (breaks(self, "route"))
        msg->route = (struct tenrec_route){ 0 };
    for (uint32_t i = 0; i < msg->n_tensors; i++) {
        struct tenrec_tensor_desc *t = tenrec_msg_tensor(msg, i);

        if (breaks(self, "shape") && t->ndim)
            t->shape[0]++;
        if (breaks(self, "flags"))
            t->flags ^= TENREC_TENSOR_REQUIRES_GRAD;
        if (breaks(self, "offset"))
            t->byte_offset++;
    }
}

static void broken_send(struct tenrec_agent *self, tenrec_peer to, struct tenrec_msg *msg,
                        struct tenrec_done done)
{
    struct broken *b = self->impl;

    alter(self, msg);
    if (breaks(self, "crash"))
        abort();
    if (breaks(self, "exit"))
        exit(0);
    if (breaks(self, "hang"))
        for (;;)
            continue;
    if (breaks(self, "peer"))
        to = OTHER;
    if (breaks(self, "done twice"))
        tenrec_done_succeed(done);
    if (breaks(self, "log"))
        self->host->log(self, TENREC_LOG_ERROR, "something is wrong");
    if (breaks(self, "done never") || breaks(self, "done early"))
        done = (struct tenrec_done){ nothing, NULL };
    if (breaks(self, "unknown peer") && to > 1) {
        msg->release(msg);
        tenrec_done_succeed(done);
        return;
    }
    if (breaks(self, "lost") && ++b->n_sent % 100 == 0) {
        msg->release(msg);
        tenrec_done_succeed(done);
        return;
    }
    if (breaks(self, "kept")) {
        tenrec_done_succeed(done);
        return;
    }
    self->host->send_inner(self, to, msg, done);
}

/* ---- on the way in ---- */

static void broken_deliver(struct tenrec_agent *self, tenrec_peer from, struct tenrec_msg *msg)
{
    struct broken *b = self->impl;

    if (breaks(self, "sender"))
        from = OTHER;
    if (breaks(self, "order")) { /* each second one overtakes the one before */
        if (!b->kept) {
            b->kept = msg;
            b->kept_from = from;
            return;
        }
        self->host->deliver_outer(self, from, msg);
        msg = b->kept;
        from = b->kept_from;
        b->kept = NULL;
    }
    if (breaks(self, "answer") && !(msg->type & TENREC_MSG_REQUEST_BIT)) {
        msg->release(msg);
        return;
    }
    self->host->deliver_outer(self, from, msg);
}

/* ---- the rest ---- */

static tenrec_status broken_poll(struct tenrec_agent *self, tenrec_peer peer,
                                 const struct tenrec_wait *wait)
{
    (void)self, (void)peer, (void)wait;
    return TENREC_OK; /* at once, whether the wait is over or not */
}

static tenrec_status broken_disconnect(struct tenrec_agent *self, tenrec_peer peer,
                                       tenrec_error *err)
{
    (void)self, (void)peer;
    return tenrec_fail(err, TENREC_EINVAL, "not today");
}

static tenrec_status broken_drain(struct tenrec_agent *self, uint32_t ms, tenrec_error *err)
{
    (void)self, (void)ms;
    return tenrec_fail(err, TENREC_ETIMEDOUT, "never done");
}

static tenrec_status broken_start(struct tenrec_agent *self, const struct tenrec_member *member,
                                  uint32_t n, tenrec_error *err)
{
    (void)self, (void)member, (void)n;
    return tenrec_fail(err, TENREC_ECONNECT, "no line");
}

static void broken_debug_info(struct tenrec_agent *self, tenrec_sink_fn *sink, void *arg)
{
    sink(arg, "key", "1");
    sink(arg, "key", breaks(self, "debug twice") ? "2" : NULL);
}

static void broken_shutdown(struct tenrec_agent *self)
{
    if (breaks(self, "shutdown hangs"))
        for (;;)
            continue;
    abort();
}

static void broken_destroy(struct tenrec_agent *self)
{
    if (breaks(self, "destroy"))
        abort();
    free(self->impl);
}

TENREC_EXPORT tenrec_status tenrec_construct_options(void *opts, tenrec_error *err)
{
    (void)opts, (void)err;
    return TENREC_OK;
}

TENREC_EXPORT tenrec_status tenrec_init_agent(const struct tenrec_init *in,
                                              struct tenrec_agent *self, tenrec_error *err)
{
    static struct tenrec_agent_ops ops = { .size = sizeof ops,
                                           .send = broken_send,
                                           .deliver = broken_deliver,
                                           .destroy = broken_destroy };
    struct broken *b = calloc(1, sizeof *b);

    if (!b)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory");
    b->breaks = ((const struct broken_options *)in->options)->breaks;
    self->impl = b;
    self->ops = &ops;
    ops.poll = breaks(self, "poll") ? broken_poll : NULL;
    ops.disconnect = breaks(self, "disconnect") ? broken_disconnect : NULL;
    ops.drain = breaks(self, "drain") ? broken_drain : NULL;
    ops.start = breaks(self, "start") ? broken_start : NULL;
    ops.debug_info = strncmp(b->breaks, "debug", 5) == 0 ? broken_debug_info : NULL;
    ops.shutdown = strncmp(b->breaks, "shutdown", 8) == 0 ? broken_shutdown : NULL;
    return TENREC_OK;
}

static const struct tenrec_option options[] = {
    { .key = "breaks",
      .type = TENREC_OPT_STRING,
      .offset = offsetof(struct broken_options, breaks),
      .def = "",
      .help = "Which rule." },
};

TENREC_EXPORT const struct tenrec_plugin tenrec_plugin = {
    TENREC_PLUGIN_HEADER,
    TENREC_PLUGIN_OPTIONS(options, struct broken_options),
    .flags = TENREC_PLUGIN_WRAPS | TENREC_PLUGIN_UNLOADABLE,
    .name = "broken",
    .version = "1.0",
    .summary = "Breaks a rule.",
};
