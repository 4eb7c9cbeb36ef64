/* SPDX-License-Identifier: Apache-2.0 */
/* inproc - carries messages between workers of one process. For tests: a
 * second backend with real peers, threads, lost connections and full queues,
 * and no wire. */
#include "inside.h"
#include "pretend.h"

#include <inttypes.h>
#include <stdlib.h>
#include <time.h>

struct inproc_options {
    const char *group;
    int64_t max_queued_messages;
    int64_t devices;
};

static uint64_t deadline_in(uint32_t ms)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec + (uint64_t)ms * 1000000;
}

static void inproc_resume(struct tenrec_agent *self)
{
    struct inproc *a = self->impl;

    pthread_mutex_lock(&hub_lock);
    a->paused = false;
    pthread_cond_broadcast(&hub_moved);
    pthread_mutex_unlock(&hub_lock);
}

/* --- life ----------------------------------------------------------------- */

/* Others may call before our start, as they may connect where a port is open. */
static const char *inproc_address(struct tenrec_agent *self)
{
    struct inproc *a = self->impl;

    pthread_mutex_lock(&hub_lock);
    if (!a->entered)
        a->entered = hub_enter(a, NULL) == TENREC_OK;
    pthread_mutex_unlock(&hub_lock);
    return a->address;
}

static tenrec_status inproc_start(struct tenrec_agent *self, const struct tenrec_member *member,
                                  uint32_t n, tenrec_error *err)
{
    struct inproc *a = self->impl;
    tenrec_status st = TENREC_OK;
    int r;

    pthread_mutex_lock(&hub_lock);
    for (uint32_t i = 0; i < n && st == TENREC_OK; i++) {
        st = hub_peer_add(a, member->id);
        member = (const void *)((const char *)member + member->size);
    }
    if (st != TENREC_OK)
        tenrec_fail(err, st, "no memory for %u members", n);
    else if (!a->entered)
        st = hub_enter(a, err);
    a->entered |= st == TENREC_OK;
    a->serving = st == TENREC_OK;
    pthread_mutex_unlock(&hub_lock);
    if (st != TENREC_OK)
        return st;
    r = pthread_create(&a->thread, NULL, deliver_run, a);
    if (r == 0)
        return TENREC_OK;
    pthread_mutex_lock(&hub_lock);
    a->serving = a->entered = false;
    hub_leave(a);
    pthread_mutex_unlock(&hub_lock);
    return tenrec_fail_errno(err, TENREC_EOS, r, "cannot start a thread");
}

static void inproc_member_joined(struct tenrec_agent *self, const struct tenrec_member *member)
{
    tenrec_status st;

    pthread_mutex_lock(&hub_lock);
    st = hub_peer_add(self->impl, member->id);
    pthread_mutex_unlock(&hub_lock);
    if (st != TENREC_OK)
        self->host->log(self, TENREC_LOG_ERROR, "no memory for member %d", member->id);
}

static void inproc_member_left(struct tenrec_agent *self, tenrec_peer id)
{
    pthread_mutex_lock(&hub_lock);
    hub_peer_remove(self->impl, id);
    pthread_mutex_unlock(&hub_lock);
}

static tenrec_status inproc_disconnect(struct tenrec_agent *self, tenrec_peer id, tenrec_error *err)
{
    struct inproc *a = self->impl, *other;
    struct envelope *list = NULL, **end = &list;
    struct peer *p;
    tenrec_error why;

    pthread_mutex_lock(&hub_lock);
    p = hub_peer(a, id);
    if (!p) {
        pthread_mutex_unlock(&hub_lock);
        return tenrec_fail(err, TENREC_EPEER_UNKNOWN, "there is no worker %d", id);
    }
    other = hub_find(a->group, id);
    if (other) {
        end = hub_recall(other, a, end);
        hub_recall(a, other, end);
        hub_break(other, a->me, "the other side disconnected");
    }
    hub_break(a, id, "disconnected");
    p = hub_peer(a, id);
    if (p->state == LINK_BROKEN)
        tell_lost(a, p);
    pthread_mutex_unlock(&hub_lock);
    tenrec_fail(&why, TENREC_EPEER_LOST, "worker %d: disconnected", id);
    settle_all(list, &why);
    return TENREC_OK;
}

static tenrec_status inproc_drain(struct tenrec_agent *self, uint32_t ms, tenrec_error *err)
{
    struct inproc *a = self->impl;
    const uint64_t deadline = deadline_in(ms);
    uint64_t left;

    pthread_mutex_lock(&hub_lock);
    while (a->pending && hub_wait(deadline))
        ;
    left = a->pending;
    pthread_mutex_unlock(&hub_lock);
    if (!left)
        return TENREC_OK;
    return tenrec_fail(err, TENREC_ETIMEDOUT, "%" PRIu64 " sends are left after %u ms", left, ms);
}

static void inproc_shutdown(struct tenrec_agent *self)
{
    struct inproc *a = self->impl;
    struct envelope *mine = NULL, **end = &mine, *theirs = NULL;
    tenrec_error canceled, lost;

    tenrec_fail(&canceled, TENREC_ECANCELED, "%s is shut down", a->address);
    tenrec_fail(&lost, TENREC_EPEER_LOST, "%s is shut down", a->address);
    pthread_mutex_lock(&hub_lock);
    a->serving = false;
    for (struct inproc *other = hub_agents(); other; other = other->next) {
        if (strcmp(other->group, a->group) != 0)
            continue;
        end = hub_recall(other, a, end);
        if (other == a)
            continue;
        hub_break(other, a->me, "shut down");
        hub_break(a, other->me, "shut down");
    }
    hub_recall(a, NULL, &theirs);
    hub_leave(a);
    a->entered = false;
    pthread_cond_broadcast(&hub_moved);
    pthread_mutex_unlock(&hub_lock);
    settle_all(mine, &canceled);
    settle_all(theirs, &lost);
    pretend_finish();
    /* A message that another thread copies now. */
    pthread_mutex_lock(&hub_lock);
    while (a->pending)
        hub_wait(0);
    pthread_mutex_unlock(&hub_lock);
    pthread_join(a->thread, NULL);
    pretend_finish(); /* messages hold tensors, and these the memory of others */
}

static void inproc_destroy(struct tenrec_agent *self)
{
    struct inproc *a = self->impl;
    struct envelope *theirs = NULL;
    tenrec_error lost;

    pthread_mutex_lock(&hub_lock);
    if (a->entered) { /* it never started */
        hub_recall(a, NULL, &theirs);
        hub_leave(a);
    }
    pthread_mutex_unlock(&hub_lock);
    tenrec_fail(&lost, TENREC_EPEER_LOST, "%s did not start", a->address);
    settle_all(theirs, &lost);
    free(a->peer);
    free(a);
}

static void push(tenrec_sink_fn *sink, void *arg, const char *key, uint64_t n)
{
    char value[24];

    snprintf(value, sizeof value, "%" PRIu64, n);
    sink(arg, key, value);
}

static void inproc_debug_info(struct tenrec_agent *self, tenrec_sink_fn *sink, void *arg)
{
    struct inproc *a = self->impl;
    uint64_t sent, received, queued, pending;

    pthread_mutex_lock(&hub_lock);
    sent = a->sent;
    received = a->received;
    queued = a->queued;
    pending = a->pending;
    pthread_mutex_unlock(&hub_lock);
    push(sink, arg, "sent", sent);
    push(sink, arg, "received", received);
    push(sink, arg, "queued", queued);
    push(sink, arg, "pending", pending);
    if (a->n_devices > 0) /* how tests find what is behind them */
        push(sink, arg, "devices", (uint64_t)(uintptr_t)&pretend_ops);
}

static tenrec_status inproc_devices(struct tenrec_agent *self, const struct tenrec_device_ops **ret,
                                    uint32_t *ret_n, tenrec_error *err)
{
    struct inproc *a = self->impl;

    if (a->n_devices == 0)
        return tenrec_fail(err, TENREC_EUNSUPPORTED, "the option `devices` is 0");
    *ret = &pretend_ops.ops;
    *ret_n = a->n_devices;
    return TENREC_OK;
}

static tenrec_status inproc_use_devices(struct tenrec_agent *self,
                                        const struct tenrec_device *device, uint32_t n,
                                        tenrec_error *err)
{
    struct inproc *a = self->impl;

    for (uint32_t i = 0; i < n; i++)
        if (device[i].kind != TENREC_CUDA || (uint32_t)device[i].index >= a->n_devices)
            return tenrec_fail(err, TENREC_EINVAL, "there is no device %d", device[i].index);
    return TENREC_OK;
}

static const struct tenrec_agent_ops inproc_ops = {
    .size = sizeof inproc_ops,
    .address = inproc_address,
    .start = inproc_start,
    .member_joined = inproc_member_joined,
    .member_left = inproc_member_left,
    .send = inproc_send,
    .resume = inproc_resume,
    .disconnect = inproc_disconnect,
    .drain = inproc_drain,
    .shutdown = inproc_shutdown,
    .destroy = inproc_destroy,
    .debug_info = inproc_debug_info,
    .devices = inproc_devices,
    .use_devices = inproc_use_devices,
};

tenrec_status tenrec_construct_options(void *opts, tenrec_error *err)
{
    const struct inproc_options *o = opts;

    if (!*o->group || strlen(o->group) > 100)
        return tenrec_fail(err, TENREC_ECONFIG, "group: expected 1 to 100 characters");
    return TENREC_OK;
}

tenrec_status tenrec_init_agent(const struct tenrec_init *in, struct tenrec_agent *self,
                                tenrec_error *err)
{
    const struct inproc_options *o = in->options;
    struct inproc *a = calloc(1, sizeof *a);

    if (!a)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for the inproc agent");
    a->agent = self;
    a->me = in->me;
    a->group = o->group;
    a->limit = (uint32_t)o->max_queued_messages;
    a->n_devices = (uint32_t)o->devices;
    a->last = &a->first;
    snprintf(a->address, sizeof a->address, "inproc://%s/%d", o->group, in->me);
    self->ops = &inproc_ops;
    self->impl = a;
    return TENREC_OK;
}

static const struct tenrec_option options[] = {
    { .key = "group",
      .type = TENREC_OPT_STRING,
      .offset = offsetof(struct inproc_options, group),
      .def = "main",
      .help = "Workers of one process that name the same group reach each other." },
    { .key = "max_queued_messages",
      .type = TENREC_OPT_INT,
      .offset = offsetof(struct inproc_options, max_queued_messages),
      .def = "1024",
      .min = 1,
      .max = UINT32_MAX,
      .help = "So many may wait for a worker before a send to it fails or waits." },
    { .key = "devices",
      .type = TENREC_OPT_INT,
      .offset = offsetof(struct inproc_options, devices),
      .def = "0",
      .min = 0,
      .max = 8,
      .help = "Devices that each worker pretends to have." },
};

const struct tenrec_plugin tenrec_plugin = {
    TENREC_PLUGIN_HEADER,
    TENREC_PLUGIN_OPTIONS(options, struct inproc_options),
    .flags = TENREC_PLUGIN_UNLOADABLE | TENREC_PLUGIN_LOOPBACK_ONLY,
    .name = "inproc",
    .version = "1.0",
    .summary = "Carries messages between workers of one process.",
};
