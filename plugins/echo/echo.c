/* SPDX-License-Identifier: Apache-2.0 */
/* echo.c - a backend whose only peer is the worker itself: the smallest complete plugin. */
#include <stdlib.h>
#include <tenrec/plugin.h>

struct echo_options {
    bool refuse;
};

struct echo {
    tenrec_peer me;
    const struct echo_options *opt; /* borrows until destroy */
};

/* Makes the message that the receiver owns; memcpy stands in for the wire. The
 * host allocates the message, and place() sets the address of each tensor. */
static struct tenrec_msg *echo_copy(struct tenrec_agent *self, tenrec_peer from,
                                    const struct tenrec_msg *msg, tenrec_error *err)
{
    struct tenrec_msg *copy = self->host->msg_new(self, msg->payload_len, msg->n_tensors);

    if (!copy) {
        tenrec_fail(err, TENREC_ENOMEM, "no memory for a message of %llu bytes",
                    (unsigned long long)msg->payload_len);
        return NULL;
    }
    copy->type = msg->type;
    copy->id = msg->id;
    copy->deadline_ns = msg->deadline_ns;
    copy->key_len = msg->key_len;
    if (msg->payload_len)
        memcpy(copy->payload, msg->payload, msg->payload_len);
    for (uint32_t i = 0; i < msg->n_tensors; i++) {
        *tenrec_msg_tensor(copy, i) = *tenrec_msg_tensor(msg, i);
        tenrec_msg_tensor(copy, i)->data = NULL;
    }
    if (copy->n_tensors && self->host->place(self, from, copy, err) != TENREC_OK) {
        copy->release(copy);
        return NULL;
    }
    for (uint32_t i = 0; i < msg->n_tensors; i++)
        if (tenrec_msg_tensor(msg, i)->bytes)
            /* NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker): place() set data */
            memcpy(tenrec_msg_tensor(copy, i)->data, tenrec_msg_tensor(msg, i)->data,
                   tenrec_msg_tensor(msg, i)->bytes);
    return copy;
}

/* Takes `msg` and calls `done` once, with no lock held. Full call queues refuse
 * requests here, since no wire could hold them back. */
static void echo_send(struct tenrec_agent *self, tenrec_peer to, struct tenrec_msg *msg,
                      struct tenrec_done done)
{
    struct echo *e = self->impl;
    struct tenrec_msg *copy = NULL;
    tenrec_error err;

    if (e->opt->refuse)
        tenrec_fail(&err, TENREC_ECONNECT, "echo refuses every send ('refuse' is set)");
    else if (to != e->me)
        tenrec_fail(&err, TENREC_EPEER_UNKNOWN, "echo delivers only to peer %d, not to %d", e->me,
                    to);
    else if ((msg->type & TENREC_MSG_REQUEST_BIT) && !self->host->accepts(self))
        tenrec_fail(&err, TENREC_EAGAIN, "the call queue of peer %d is full", e->me);
    else
        copy = echo_copy(self, e->me, msg, &err);
    msg->release(msg);
    if (!copy) {
        if (done.fn)
            done.fn(done.arg, &err);
        return;
    }
    tenrec_done_succeed(done);
    self->host->deliver_outer(self, e->me, copy);
}

static void echo_destroy(struct tenrec_agent *self)
{
    free(self->impl);
}

static const struct tenrec_agent_ops echo_ops = {
    .size = sizeof echo_ops,
    .send = echo_send,
    .destroy = echo_destroy,
};

tenrec_status tenrec_construct_options(void *opts, tenrec_error *err)
{
    (void)opts, (void)err; /* no rule spans several options */
    return TENREC_OK;
}

tenrec_status tenrec_init_agent(const struct tenrec_init *in, struct tenrec_agent *self,
                                tenrec_error *err)
{
    struct echo *e = calloc(1, sizeof *e);

    if (!e)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for the echo agent");
    e->me = in->me;
    e->opt = in->options;
    self->ops = &echo_ops;
    self->impl = e;
    return TENREC_OK;
}

static const struct tenrec_option options[] = {
    { .key = "refuse",
      .type = TENREC_OPT_BOOL,
      .offset = offsetof(struct echo_options, refuse),
      .def = "false",
      .help = "Fail every send, to try out error paths." },
};

const struct tenrec_plugin tenrec_plugin = {
    TENREC_PLUGIN_HEADER,
    TENREC_PLUGIN_OPTIONS(options, struct echo_options),
    .flags = TENREC_PLUGIN_UNLOADABLE | TENREC_PLUGIN_LOOPBACK_ONLY,
    .name = "echo",
    .version = "1.0",
    .summary = "Delivers each message to its sender.",
};
