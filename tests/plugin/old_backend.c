/* SPDX-License-Identifier: Apache-2.0 */
/* old_backend.c - a backend as it was compiled against the first headers: it knows the structs of
 * then, which stand here, and none of today's. Delivers each message to its sender. Nothing behind
 * its tables can be read. */
#include "page_end.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the headers of then ------------------------------------------------------------------- */

struct old_error {
    int code, os_errno, worker;
    uint32_t flags;
    char worker_name[128], text[368];
};

struct old_tensor {
    void *data;
    uint64_t bytes, byte_offset;
    uint32_t dtype, ndim;
    int32_t device[2], target[2];
    uint64_t stream, flags;
    int64_t shape[16], strides[16];
    uint64_t reserved[4];
};

struct old_msg {
    uint32_t size;
    int32_t type;
    int64_t id;
    uint64_t deadline_ns;
    void *payload;
    uint64_t payload_len;
    uint32_t key_len, flags, n_tensors, tensor_size;
    char *tensors;
    uint64_t route[2];
    void (*release)(struct old_msg *msg);
    uint64_t reserved[4];
};

struct old_done {
    void (*fn)(void *arg, const struct old_error *err);
    void *arg;
};

struct old_agent;

struct old_ops {
    uint32_t size, reserved;
    const void *extensions;
    const char *(*address)(struct old_agent *self);
    int (*start)(struct old_agent *self, const void *member, uint32_t n, struct old_error *err);
    void (*member_joined)(struct old_agent *self, const void *member);
    void (*member_left)(struct old_agent *self, int32_t id);
    void (*send)(struct old_agent *self, int32_t to, struct old_msg *msg, struct old_done done);
    void (*deliver)(struct old_agent *self, int32_t from, struct old_msg *msg);
    int (*poll)(struct old_agent *self, int32_t peer, const void *wait);
    void (*resume)(struct old_agent *self);
    int (*disconnect)(struct old_agent *self, int32_t peer, struct old_error *err);
    int (*drain)(struct old_agent *self, uint32_t ms, struct old_error *err);
    void (*shutdown)(struct old_agent *self);
    void (*destroy)(struct old_agent *self);
    void (*debug_info)(struct old_agent *self,
                       void (*sink)(void *arg, const char *key, const char *value), void *arg);
};

struct old_host {
    uint32_t size;
    uint16_t abi_major, abi_minor;
    bool (*log_enabled)(const void *self, int level);
    void (*log)(const void *self, int level, const char *fmt, ...);
    const void *extensions;
    void (*send_inner)(struct old_agent *self, int32_t to, struct old_msg *msg,
                       struct old_done done);
    void (*deliver_outer)(struct old_agent *self, int32_t from, struct old_msg *msg);
    int (*after)(struct old_agent *self, uint32_t ms, void (*fn)(void *arg), void *arg);
    struct old_msg *(*msg_new)(struct old_agent *self, uint64_t payload_len, uint32_t n_tensors);
    int (*place)(struct old_agent *self, int32_t from, struct old_msg *msg, struct old_error *err);
    bool (*accepts)(struct old_agent *self);
    void (*peer_lost)(struct old_agent *self, int32_t peer, const struct old_error *why);
};

struct old_agent {
    const struct old_ops *ops;
    void *impl;
    const struct old_host *host;
    const char *log_part;
    struct old_agent *inner, *outer;
};

struct old_init {
    uint32_t size;
    int32_t me;
    uint32_t world, reserved;
    uint64_t incarnation;
    const char *name, *backend;
    const void *options;
};

struct old_option {
    const char *key;
    uint32_t type, item, offset, flags;
    const char *def;
    int64_t min, max;
    const char *choices, *help;
};

struct old_plugin {
    uint32_t magic;
    uint16_t abi_major, abi_minor;
    uint32_t size, kind, flags, reserved0;
    const char *name, *version, *summary;
    const struct old_option *options;
    uint32_t n_options, option_size, options_size, reserved1;
};

enum { OLD_EAGAIN = -7, OLD_ENOMEM = -2, OLD_EPEER_UNKNOWN = -20, OLD_REQUEST = 0x100 };

_Static_assert(sizeof(struct old_error) == 512, "the error of then");
_Static_assert(sizeof(struct old_msg) == 120, "the message of then");
_Static_assert(sizeof(struct old_tensor) == 352, "the descriptor of then");
_Static_assert(sizeof(struct old_ops) == 120, "the operations of then");
_Static_assert(sizeof(struct old_host) == 88, "the host of then");
_Static_assert(sizeof(struct old_init) == 48, "the init of then");
_Static_assert(sizeof(struct old_option) == 64, "the option of then");
_Static_assert(sizeof(struct old_plugin) == 72, "the description of then");

/* ---- the agent ------------------------------------------------------------------------------ */

struct old_options {
    bool refuse;
};

struct old_state {
    int32_t me;
    const struct old_options *opt;
};

static int old_fail(struct old_error *err, int code, const char *text)
{
    memset(err, 0, sizeof *err);
    err->code = code;
    err->worker = -1;
    snprintf(err->text, sizeof err->text, "%s", text);
    return code;
}

static struct old_tensor *old_tensor(const struct old_msg *msg, uint32_t i)
{
    return (struct old_tensor *)(void *)(msg->tensors + (size_t)i * msg->tensor_size);
}

static int old_copy(struct old_agent *self, const struct old_msg *msg, struct old_msg **ret,
                    struct old_error *err)
{
    const struct old_state *s = self->impl;
    struct old_msg *copy = self->host->msg_new(self, msg->payload_len, msg->n_tensors);
    int st = 0;

    if (!copy)
        return old_fail(err, OLD_ENOMEM, "no memory for a message");
    copy->type = msg->type;
    copy->id = msg->id;
    copy->deadline_ns = msg->deadline_ns;
    if (msg->payload_len)
        memcpy(copy->payload, msg->payload, msg->payload_len);
    for (uint32_t i = 0; i < msg->n_tensors; i++) {
        *old_tensor(copy, i) = *old_tensor(msg, i);
        old_tensor(copy, i)->data = NULL;
    }
    if (msg->n_tensors)
        st = self->host->place(self, s->me, copy, err);
    if (st) {
        copy->release(copy);
        return st;
    }
    for (uint32_t i = 0; i < msg->n_tensors; i++)
        if (old_tensor(msg, i)->bytes)
            memcpy(old_tensor(copy, i)->data, old_tensor(msg, i)->data, old_tensor(msg, i)->bytes);
    *ret = copy;
    return 0;
}

static void old_send(struct old_agent *self, int32_t to, struct old_msg *msg, struct old_done done)
{
    const struct old_state *s = self->impl;
    struct old_msg *copy = NULL;
    struct old_error err;
    int st;

    if (to != s->me || s->opt->refuse)
        st = old_fail(&err, OLD_EPEER_UNKNOWN, "reaches its own worker only");
    else if ((msg->type & OLD_REQUEST) && !self->host->accepts(self))
        st = old_fail(&err, OLD_EAGAIN, "the queue is full");
    else
        st = old_copy(self, msg, &copy, &err);
    msg->release(msg);
    if (done.fn)
        done.fn(done.arg, st ? &err : NULL);
    if (copy)
        self->host->deliver_outer(self, s->me, copy);
}

static const char *old_address(struct old_agent *self)
{
    (void)self;
    return "old://here";
}

static void old_destroy(struct old_agent *self)
{
    free(self->impl);
}

static void old_debug_info(struct old_agent *self,
                           void (*sink)(void *arg, const char *key, const char *value), void *arg)
{
    (void)self;
    sink(arg, "era", "first");
}

/* ---- the tables, and nothing behind them ------------------------------------------------------
 */

PAGE_END_OBJECT PAGE_END_STRUCT(struct old_ops) ops = { .object = {
                                                            .size = sizeof(struct old_ops),
                                                            .address = old_address,
                                                            .send = old_send,
                                                            .destroy = old_destroy,
                                                            .debug_info = old_debug_info } };
PAGE_END_PROTECT(ops)

PAGE_END_OBJECT PAGE_END_STRUCT(struct old_option) option = {
    .object = { .key = "refuse", .type = 1, .def = "false", .help = "Fail every send." }
};
PAGE_END_PROTECT(option)

PAGE_END_OBJECT PAGE_END_STRUCT(struct old_plugin) old_description = {
    .object = { .magic = 0x544e5243,
                .abi_major = 1,
                .abi_minor = 0,
                .size = sizeof(struct old_plugin),
                .kind = 1,
                .flags = 1 << 3,
                .name = "old_backend",
                .version = "1",
                .summary = "Delivers each message to its sender, since the first ABI.",
                .options = &option.object,
                .n_options = 1,
                .option_size = sizeof(struct old_option),
                .options_size = sizeof(struct old_options) }
};
PAGE_END_PROTECT(old_description)
PAGE_END_EXPORT(old_description, 72)

__attribute__((visibility("default"))) int tenrec_construct_options(void *opts, void *err);
int tenrec_construct_options(void *opts, void *err)
{
    (void)opts, (void)err;
    return 0;
}

__attribute__((visibility("default"))) int
tenrec_init_agent(const struct old_init *in, struct old_agent *self, struct old_error *err);
int tenrec_init_agent(const struct old_init *in, struct old_agent *self, struct old_error *err)
{
    struct old_state *s = malloc(sizeof *s);

    if (!s)
        return old_fail(err, OLD_ENOMEM, "no memory for the agent");
    *s = (struct old_state){ in->me, in->options };
    self->ops = &ops.object;
    self->impl = s;
    return 0;
}
