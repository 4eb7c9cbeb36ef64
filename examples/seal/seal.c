/* SPDX-License-Identifier: Apache-2.0 */
/* seal.c - a wrapper that changes messages: each payload travels with a checksum behind it, and a
 * message whose checksum is wrong is not delivered. All workers of a group have it, or none. */
#include <stdatomic.h>
#include <stdlib.h>
#include <tenrec/plugin.h>

#define CHECKSUM 8 /* bytes behind each payload */

struct seal {
    atomic_ullong damaged;
};

/* FNV-1a, least byte first, on every machine. */
static void seal_sum(const void *data, uint64_t len, unsigned char ret[CHECKSUM])
{
    const unsigned char *p = data;
    uint64_t h = 0xcbf29ce484222325u;

    for (uint64_t i = 0; i < len; i++)
        h = (h ^ p[i]) * 0x100000001b3u;
    for (int i = 0; i < CHECKSUM; i++)
        ret[i] = (unsigned char)(h >> (8 * i));
}

/* ---- from the user to the wire --------------------------------------------------- */

/* A message of our own. It has the tensors of the program's message, and so owns that message. */
struct sealed {
    struct tenrec_msg msg; /* first: release gets its address */
    struct tenrec_msg *inside;
    unsigned char payload[];
};

static void sealed_release(struct tenrec_msg *msg)
{
    struct sealed *s = (struct sealed *)msg;

    s->inside->release(s->inside);
    free(s);
}

/* Takes `msg` on success. The program's memory is read only: payload and tensors may belong to
 * several messages. */
static struct tenrec_msg *sealed_new(struct tenrec_msg *msg)
{
    struct sealed *s = calloc(1, sizeof *s + msg->payload_len + CHECKSUM);

    if (!s)
        return NULL;
    /* Its maker may have a shorter or longer struct. */
    memcpy(&s->msg, msg, msg->size < sizeof s->msg ? msg->size : sizeof s->msg);
    s->msg.size = sizeof s->msg;
    s->msg.payload = s->payload;
    s->msg.payload_len += CHECKSUM; /* key_len stays: it is a prefix */
    s->msg.release = sealed_release;
    s->inside = msg;
    if (msg->payload_len)
        memcpy(s->payload, msg->payload, msg->payload_len);
    seal_sum(msg->payload, msg->payload_len, s->payload + msg->payload_len);
    return &s->msg;
}

static void seal_send(struct tenrec_agent *self, tenrec_peer to, struct tenrec_msg *msg,
                      struct tenrec_done done)
{
    struct tenrec_msg *sealed = sealed_new(msg);

    if (sealed) {
        self->host->send_inner(self, to, sealed, done);
        return;
    }
    msg->release(msg);
    tenrec_done_fail(done, TENREC_ENOMEM, "no memory for a message");
}

/* ---- from the wire to the user --------------------------------------------------- */

static bool seal_is_whole(const struct tenrec_msg *msg)
{
    const unsigned char *payload = msg->payload;
    unsigned char sum[CHECKSUM];

    if (msg->payload_len < CHECKSUM)
        return false;
    seal_sum(payload, msg->payload_len - CHECKSUM, sum);
    return memcmp(payload + msg->payload_len - CHECKSUM, sum, CHECKSUM) == 0;
}

/* The caller hears of it: a request that waits for an answer gets an EXCEPTION, sealed as any other
 * message, and an EXCEPTION takes the place of an answer. */
static void seal_refuse(struct tenrec_agent *self, tenrec_peer from, struct tenrec_msg *msg)
{
    const bool request = msg->type & TENREC_MSG_REQUEST_BIT;
    struct seal *s = self->impl;
    struct tenrec_msg *exception = NULL;
    tenrec_error err;

    atomic_fetch_add(&s->damaged, 1);
    tenrec_fail(&err, TENREC_EPROTOCOL, "the checksum of a message is wrong");
    if (!request || msg->route.generation != 0)
        exception = self->host->exception_new(self, msg, &err);
    if (exception && request)
        seal_send(self, from, exception, (struct tenrec_done){ NULL, NULL });
    else if (exception)
        self->host->deliver_outer(self, from, exception);
    msg->release(msg);
}

static void seal_deliver(struct tenrec_agent *self, tenrec_peer from, struct tenrec_msg *msg)
{
    if (!seal_is_whole(msg)) {
        seal_refuse(self, from, msg);
        return;
    }
    msg->payload_len -= CHECKSUM; /* a received message is ours to change until it is delivered */
    if (msg->key_len > msg->payload_len)
        msg->key_len = 0; /* 0: not known */
    self->host->deliver_outer(self, from, msg);
}

/* ---- the agent --------------------------------------------------------------------- */

static void seal_debug_info(struct tenrec_agent *self, tenrec_sink_fn *sink, void *arg)
{
    struct seal *s = self->impl;

    tenrec_sink_number(sink, arg, "damaged", atomic_load(&s->damaged));
}

static void seal_destroy(struct tenrec_agent *self)
{
    free(self->impl);
}

static const struct tenrec_agent_ops seal_ops = {
    .size = sizeof seal_ops,
    .send = seal_send,
    .deliver = seal_deliver,
    .debug_info = seal_debug_info,
    .destroy = seal_destroy,
};

tenrec_status tenrec_construct_options(void *opts, tenrec_error *err)
{
    (void)opts, (void)err; /* there are no options */
    return TENREC_OK;
}

tenrec_status tenrec_init_agent(const struct tenrec_init *in, struct tenrec_agent *self,
                                tenrec_error *err)
{
    (void)in;
    if (TENREC_REQUIRES(self->host, exception_new, err))
        return TENREC_EABI;
    self->impl = calloc(1, sizeof(struct seal));
    if (!self->impl)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for the agent");
    self->ops = &seal_ops;
    return TENREC_OK;
}

const struct tenrec_plugin tenrec_plugin = {
    TENREC_PLUGIN_HEADER, .flags = TENREC_PLUGIN_WRAPS | TENREC_PLUGIN_UNLOADABLE, .name = "seal",
    .version = "1.0",     .summary = "Lets each payload travel with a checksum.",
};
