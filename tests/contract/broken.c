/* SPDX-License-Identifier: Apache-2.0 */
/* broken.c - a wrapper that breaks the rule its option `breaks` names. `tenrec conformance` must
 * see each. */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <tenrec/plugin.h>
#include <unistd.h>

#define OTHER 9 /* no member */

static void *volatile leaked;

struct broken_options {
    const char *breaks;
};

struct broken {
    const char *breaks;
    atomic_int n_sent;
    struct tenrec_msg *kept; /* delivered too late */
    tenrec_peer kept_from;
    bool resumed;
    unsigned char *placed; /* memory of a delivered tensor */
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
    if (breaks(self, "key"))
        msg->key_len = 0;
    if (breaks(self, "deadline"))
        msg->deadline_ns = 0;
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

static void deliver_own(struct tenrec_agent *self, tenrec_peer from)
{
    struct tenrec_msg *own = self->host->msg_new(self, 0, 0);

    if (!own)
        return;
    own->type = TENREC_MSG_CALL;
    self->host->deliver_outer(self, from, own);
}

static void foreign_release(struct tenrec_msg *msg)
{
    free(msg);
}

/* The message as a copy, but for the bytes of its tensors. */
static struct tenrec_msg *released_early(struct tenrec_msg *msg)
{
    const size_t tensors = (size_t)msg->n_tensors * msg->tensor_size;
    struct tenrec_msg *own = malloc(sizeof *own + tensors + msg->payload_len);

    if (!own)
        return msg;
    *own = *msg;
    own->tensors = memcpy(own + 1, msg->tensors, tensors);
    own->payload = memcpy((char *)(own + 1) + tensors, msg->payload, msg->payload_len);
    own->release = foreign_release;
    msg->release(msg);
    return own;
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
    if (breaks(self, "accepts") && !self->host->accepts(self))
        deliver_own(self, to);
    if (breaks(self, "refusal")) {
        msg->release(msg);
        tenrec_done_fail(done, TENREC_ECONNECT, "no listener");
        return;
    }
    if (breaks(self, "released early"))
        msg = released_early(msg);
    self->host->send_inner(self, to, msg, done);
}

/* ---- on the way in ---- */

/* A message of the plugin's own memory in the place of the core's. */
static struct tenrec_msg *foreign_copy(struct tenrec_msg *msg)
{
    struct tenrec_msg *own = calloc(1, sizeof *own);

    if (!own)
        return msg;
    own->size = sizeof *own;
    own->type = msg->type;
    own->id = msg->id;
    own->route = msg->route;
    own->release = foreign_release;
    msg->release(msg);
    return own;
}

static void deliver_tensors(struct tenrec_agent *self, tenrec_peer from, struct tenrec_msg *msg)
{
    static unsigned char elsewhere[6 << 20];
    tenrec_error err;

    if (breaks(self, "placed twice"))
        self->host->place(self, from, msg, &err);
    for (uint32_t i = 0; breaks(self, "place") && i < msg->n_tensors; i++) {
        struct tenrec_tensor_desc *t = tenrec_msg_tensor(msg, i);

        if (t->bytes <= sizeof elsewhere)
            t->data = memcpy(elsewhere, t->data, t->bytes);
    }
}

/* Writes to the memory of the tensor that was delivered before. */
static void written_late(struct broken *b, const struct tenrec_msg *msg)
{
    if (b->placed)
        *b->placed ^= 1;
    b->placed = msg->n_tensors ? tenrec_msg_tensor(msg, 0)->data : NULL;
}

static void broken_deliver(struct tenrec_agent *self, tenrec_peer from, struct tenrec_msg *msg)
{
    struct broken *b = self->impl;

    if (breaks(self, "sender"))
        from = OTHER;
    if (breaks(self, "foreign"))
        msg = foreign_copy(msg);
    if (breaks(self, "caller lost"))
        self->host->caller_lost(self, from, NULL);
    if (breaks(self, "resume") && b->resumed) {
        b->kept = msg;
        return;
    }
    deliver_tensors(self, from, msg);
    if (breaks(self, "written late"))
        written_late(b, msg);
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

/* Tells of the loss, as what it wraps does. */
static tenrec_status lost_twice(struct tenrec_agent *self, tenrec_peer peer, tenrec_error *err)
{
    tenrec_error why;

    (void)err;
    tenrec_fail(&why, TENREC_EPEER_LOST, "asked to go");
    self->host->peer_lost(self, peer, &why);
    return TENREC_OK;
}

static void broken_resume(struct tenrec_agent *self)
{
    ((struct broken *)self->impl)->resumed = true;
}

static void *broken_thread(void *arg)
{
    for (;;)
        pause();
    return arg;
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
    pthread_t thread;

    if (!b)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory");
    b->breaks = ((const struct broken_options *)in->options)->breaks;
    self->impl = b;
    self->ops = &ops;
    ops.poll = breaks(self, "poll") ? broken_poll : NULL;
    ops.disconnect = breaks(self, "disconnect") ? broken_disconnect : NULL;
    ops.disconnect = breaks(self, "lost twice") ? lost_twice : ops.disconnect;
    ops.resume = breaks(self, "resume") ? broken_resume : NULL;
    if (breaks(self, "thread"))
        pthread_create(&thread, NULL, broken_thread, NULL);
    if (breaks(self, "descriptor"))
        (void)!open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (breaks(self, "memory"))
        leaked = malloc(24);
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

/* The same plugin by another name, with a symbol of its own. */
#ifdef STRAYING
TENREC_EXPORT void helper_of_mine(void);
void helper_of_mine(void)
{
}
#define NAME "straying"
#else
#define NAME "broken"
#endif

TENREC_EXPORT const struct tenrec_plugin tenrec_plugin = {
    TENREC_PLUGIN_HEADER,
    TENREC_PLUGIN_OPTIONS(options, struct broken_options),
    .flags = TENREC_PLUGIN_WRAPS | TENREC_PLUGIN_UNLOADABLE,
    .name = NAME,
    .version = "1.0",
    .summary = "Breaks a rule.",
};
