/* SPDX-License-Identifier: Apache-2.0 */
#include "core/backend/backend.h"

#include "core/backend/chain_layer.h"
#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/memory.h"
#include "core/base/probe.h"
#include "core/config/config.h"
#include "core/plugin/plugin.h"

#include <stdlib.h>
#include <string.h>

#define MAX_OPS_SIZE 4096 /* of a later version */

/* The links whose agent has the operation `op`, outermost first. */
#define OUTERMOST_FIRST(l, c, op)                                                                  \
    for (struct link *l = (c)->link; l < (c)->link + (c)->n; l++)                                  \
        if (TENREC_HAS(l->agent.ops, op))

#define INNERMOST_FIRST(l, c, op)                                                                  \
    for (struct link *l = (c)->link + (c)->n; l > (c)->link && l--;)                               \
        if (TENREC_HAS(l->agent.ops, op))

/* --- building ------------------------------------------------------------- */

static tenrec_status check_wraps(const struct chain_layer *layer, bool has_inner, tenrec_error *err)
{
    const struct tenrec_plugin *p = plugin_description(layer->backend);
    const bool wraps = p->flags & TENREC_PLUGIN_WRAPS;

    if (wraps == has_inner)
        return TENREC_OK;
    return tenrec_fail(err, TENREC_ECONFIG,
                       wraps ? "plugin '%s' wraps another backend: name it with 'wraps'"
                             : "plugin '%s' wraps nothing: remove 'wraps'",
                       p->name);
}

static tenrec_status check_ops(const struct tenrec_agent *a, tenrec_error *err)
{
    if (!a->ops)
        return tenrec_fail(err, TENREC_EPLUGIN, "the plugin's init set no ops");
    if (a->ops->size < sizeof a->ops->size || a->ops->size > MAX_OPS_SIZE)
        return tenrec_fail(err, TENREC_EPLUGIN, "the agent's ops have %u bytes, expected %zu",
                           a->ops->size, sizeof *a->ops);
    if (!a->inner && !TENREC_HAS(a->ops, send))
        return tenrec_fail(err, TENREC_EPLUGIN, "the agent wraps nothing, so it must have a send");
    return TENREC_OK;
}

/* Undoes link_make. */
static void link_drop(struct link *l)
{
    struct tenrec_agent *a = &l->agent;

    agent_timers_end(&l->chain->after, &l->after);
    if (a->ops && TENREC_HAS(a->ops, destroy))
        a->ops->destroy(a);
    while (l->changed) {
        struct link_options *one = l->changed;

        l->changed = one->next;
        options_drop(one->opts);
        free(one);
    }
    plugin_put(l->backend);
}

/* The agents inside of `l` exist already. */
static tenrec_status link_make(struct link *l, const struct chain_layer *layer,
                               const struct chain_identity *id, tenrec_error *err)
{
    const struct tenrec_init in = {
        .size = sizeof in,
        .me = id->me,
        .world = id->world,
        .incarnation = id->incarnation,
        .name = id->name,
        .backend = layer->name,
        .options = layer->options,
        .host_address = id->host_address ? id->host_address : "",
        .token = id->token,
    };
    tenrec_status st = check_wraps(layer, l->agent.inner, err);

    if (st != TENREC_OK)
        return st;
    l->name = layer->name;
    l->backend = layer->backend;
    l->agent.host = &l->chain->host;
    l->agent.log_part = l->part;
    snprintf(l->part, sizeof l->part, "%s/%s", *id->name ? id->name : "caller", layer->name);
    plugin_validate_begin(err);
    st = plugin_validate_end(plugin_loaded(l->backend)->init(&in, &l->agent, err), "init", err);
    if (st != TENREC_OK) {
        agent_timers_end(&l->chain->after, &l->after);
        return st;
    }
    plugin_share(l->backend);
    st = check_ops(&l->agent, err);
    if (st != TENREC_OK)
        link_drop(l);
    return st;
}

static void send_refused(struct tenrec_agent *self, tenrec_peer to, struct tenrec_msg *msg,
                         struct tenrec_done done)
{
    (void)self;
    (void)to;
    msg->release(msg);
    tenrec_done_fail(done, TENREC_ESHUTDOWN, "this worker is not running");
}

static tenrec_status poll_refused(struct tenrec_agent *self, tenrec_peer peer,
                                  const struct tenrec_wait *wait)
{
    (void)self;
    (void)peer;
    (void)wait;
    return TENREC_EUNSUPPORTED;
}

static void chain_enter(struct chain *c, enum chain_state state)
{
    atomic_store(&c->state, state);
    atomic_store(&c->port.send, state == CHAIN_UP ? c->send : send_refused);
    atomic_store(&c->port.poll, state == CHAIN_UP ? c->poll : poll_refused);
}

const struct chain_port *chain_port(struct chain *c)
{
    return &c->port;
}

/* Resolves the next agent for each op of the fast path. */
static void links_connect(struct chain *c)
{
    struct chain_port *port = &c->port;

    c->poll = poll_refused;
    for (size_t i = c->n; i-- > 0;) {
        struct link *l = &c->link[i];
        struct tenrec_agent *a = &l->agent;
        l->inner_send = c->send;
        l->inner_sender = port->sender;
        if (TENREC_HAS(a->ops, send)) {
            c->send = a->ops->send;
            port->sender = a;
        }
        if (TENREC_HAS(a->ops, poll)) {
            c->poll = a->ops->poll;
            port->poller = a;
        }
    }
    for (size_t i = 1; i < c->n; i++) {
        struct link *l = &c->link[i], *outer = &c->link[i - 1];
        bool has = TENREC_HAS(outer->agent.ops, deliver);
        l->outer_deliver = has ? outer->agent.ops->deliver : outer->outer_deliver;
        l->outer_deliverer = has ? &outer->agent : outer->outer_deliverer;
    }
    chain_enter(c, CHAIN_NEW);
}

static const char *links_address(struct chain *c)
{
    const char *address = NULL;

    OUTERMOST_FIRST (l, c, address)
        if (!address)
            address = l->agent.ops->address(&l->agent);
    return address ? address : "";
}

tenrec_status chain_open(const struct chain_layer *layer, size_t n, const struct chain_identity *id,
                         struct loop *loop, const struct chain_user *user, struct chain **ret,
                         tenrec_error *err)
{
    struct chain *c;
    size_t made = n; /* [made, n) exist */
    tenrec_status st;
    const bool links =
        id->links && (plugin_description(layer[n - 1].backend)->flags & TENREC_PLUGIN_LINKS);

    c = memory_new(1, sizeof *c + n * sizeof c->link[0]);
    if (!c)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for a chain of %zu backends", n);
    st = agent_timers_init(&c->after, loop, err);
    if (st != TENREC_OK)
        goto err_free;
    c->n = n;
    c->user = *user;
    c->id = *id;
    c->id.links = links;
    c->id.world = links ? 0 : id->world; /* to the agents, members may come */
    c->host = chain_host;
    c->host.extensions = id->guard ? id->guard->extensions : NULL;
    chain_members_init(&c->members, c->id.world == 0);
    c->members.links = links;
    pthread_mutex_init(&c->life, NULL);
    pthread_mutex_init(&c->group, NULL);
    for (; made > 0; made--) { /* from the wire outwards */
        struct link *l = &c->link[made - 1];
        l->chain = c;
        if (made < n) {
            l->agent.inner = &c->link[made].agent;
            c->link[made].agent.outer = &l->agent;
        }
        st = link_make(l, &layer[made - 1], &c->id, err);
        if (st != TENREC_OK) {
            tenrec_error_prefix(err, "%s%sbackend '%s'", layer[made - 1].where,
                                *layer[made - 1].where ? ": " : "", layer[made - 1].name);
            goto err_links;
        }
    }
    links_connect(c);
    c->address = links_address(c);
    if (id->guard)
        st = id->guard->check(id->guard, chain_plugin(c, n - 1), c->address, err);
    if (st != TENREC_OK) {
        tenrec_error_prefix(err, "backend '%s'", c->link[n - 1].name);
        goto err_links;
    }
    *ret = c;
    return TENREC_OK;

err_links:
    for (size_t i = made; i < n; i++)
        link_drop(&c->link[i]);
    pthread_mutex_destroy(&c->group);
    pthread_mutex_destroy(&c->life);
    chain_members_finish(&c->members);
    agent_timers_finish(&c->after);
err_free:
    free(c);
    return st;
}

/* Returns `st`, and prefixes its error with the agent, which may have left the status out. */
static tenrec_status link_prefix(const struct link *l, tenrec_status st, tenrec_error *err)
{
    if (st != TENREC_OK)
        tenrec_error_prefix(err, "backend '%s'", l->name);
    if (st != TENREC_OK && err)
        err->code = st;
    return st;
}

/* --- life ----------------------------------------------------------------- */

/* Outermost first: a wrapper may hold delayed sends, and its timers send them now. */
static void links_shutdown(struct chain *c)
{
    for (size_t i = 0; i < c->n; i++) {
        struct link *l = &c->link[i];
        agent_timers_end(&c->after, &l->after);
        if (l->started && TENREC_HAS(l->agent.ops, shutdown))
            l->agent.ops->shutdown(&l->agent);
        l->started = false;
    }
}

/* The caller holds c->life. */
static tenrec_status links_start(struct chain *c, const struct tenrec_member *member, uint32_t n,
                                 tenrec_error *err)
{
    for (size_t i = c->n; i-- > 0;) {
        struct link *l = &c->link[i];
        tenrec_status st = TENREC_OK;
        if (TENREC_HAS(l->agent.ops, start))
            st = link_prefix(l, l->agent.ops->start(&l->agent, member, n, err), err);
        if (st != TENREC_OK)
            return st;
        l->started = true;
    }
    return TENREC_OK;
}

tenrec_status chain_start(struct chain *c, const struct tenrec_member *member, uint32_t n,
                          tenrec_error *err)
{
    tenrec_status st;

    pthread_mutex_lock(&c->life);
    if (atomic_load(&c->state) != CHAIN_NEW) {
        st = tenrec_fail(err, TENREC_EINVAL, "a chain is started once only");
    } else {
        /* Up before `start` returns: a peer may call already and expect an answer. */
        chain_enter(c, CHAIN_UP);
        /* First: a member may connect as soon as an agent serves. */
        chain_members_start(&c->members, member, n);
        st = links_start(c, member, n, err);
        if (st != TENREC_OK) {
            chain_enter(c, CHAIN_STOPPING);
            links_shutdown(c);
            chain_enter(c, CHAIN_STOPPED);
        }
    }
    pthread_mutex_unlock(&c->life);
    return st;
}

void chain_shutdown(struct chain *c)
{
    pthread_mutex_lock(&c->life);
    if (atomic_load(&c->state) != CHAIN_STOPPED) {
        chain_enter(c, CHAIN_STOPPING);
        links_shutdown(c);
        chain_enter(c, CHAIN_STOPPED);
    }
    pthread_mutex_unlock(&c->life);
}

void chain_close(struct chain *c)
{
    if (!c)
        return;
    chain_shutdown(c);
    for (size_t i = 0; i < c->n; i++)
        link_drop(&c->link[i]);
    pthread_mutex_destroy(&c->group);
    pthread_mutex_destroy(&c->life);
    chain_members_finish(&c->members);
    agent_timers_finish(&c->after);
    free(c);
}

/* --- sending and waiting -------------------------------------------------- */

void chain_send(struct chain *c, tenrec_peer to, struct tenrec_msg *msg, struct tenrec_done done)
{
    PROBE3(message__sent, msg->type, to, msg->payload_len);
    c->port.send(c->port.sender, to, msg, done);
}

tenrec_status chain_poll(struct chain *c, tenrec_peer peer, const struct tenrec_wait *wait)
{
    return c->port.poll(c->port.poller, peer, wait);
}

tenrec_status chain_lead(struct chain *c, const struct tenrec_wait *wait)
{
    if (atomic_load(&c->state) != CHAIN_UP)
        return TENREC_EUNSUPPORTED;
    OUTERMOST_FIRST (l, c, lead)
        return l->agent.ops->lead(&l->agent, wait);
    return TENREC_EUNSUPPORTED;
}

/* --- all agents, one after the other -------------------------------------- */

const char *chain_address(struct chain *c)
{
    return c->address;
}

tenrec_status chain_devices(struct chain *c, const struct tenrec_device_ops **ret, uint32_t *ret_n,
                            tenrec_error *err)
{
    OUTERMOST_FIRST (l, c, devices) {
        tenrec_status st = l->agent.ops->devices(&l->agent, ret, ret_n, err);

        if (st == TENREC_OK)
            plugin_keep(l->backend);
        return link_prefix(l, st, err);
    }
    return tenrec_fail(err, TENREC_EUNSUPPORTED, "no backend of '%s' carries memory of devices",
                       c->n ? c->link[0].name : "");
}

tenrec_status chain_use_devices(struct chain *c, const struct tenrec_device *device, uint32_t n,
                                tenrec_error *err)
{
    tenrec_status st = TENREC_OK;

    INNERMOST_FIRST (l, c, use_devices)
        if (st == TENREC_OK)
            st = link_prefix(l, l->agent.ops->use_devices(&l->agent, device, n, err), err);
    return st;
}

void chain_resume(struct chain *c)
{
    if (atomic_load(&c->state) != CHAIN_UP)
        return;
    OUTERMOST_FIRST (l, c, resume)
        l->agent.ops->resume(&l->agent);
}

bool chain_maps(struct chain *c, tenrec_peer peer, struct tenrec_route route)
{
    if (atomic_load(&c->state) != CHAIN_UP)
        return false;
    OUTERMOST_FIRST (l, c, maps)
        return l->agent.ops->maps(&l->agent, peer, route);
    return false;
}

const struct tenrec_extension *link_extension(const struct link *l, uint32_t kind, uint32_t size)
{
    const struct tenrec_agent_ops *ops = l->agent.ops;

    return TENREC_HAS(ops, extensions) ? tenrec_extension_find(ops->extensions, kind, size) : NULL;
}

void chain_received(struct chain *c, uint64_t *received, uint32_t n)
{
    const struct tenrec_traffic *ops = NULL;
    size_t i = 0;

    if (atomic_load(&c->state) != CHAIN_UP)
        return;
    for (; i < c->n && !ops; i++)
        ops = (const void *)link_extension(&c->link[i], TENREC_EXTENSION_TRAFFIC, sizeof *ops);
    if (ops)
        ops->received(&c->link[i - 1].agent, received, n);
}

tenrec_status chain_disconnect(struct chain *c, tenrec_peer peer, tenrec_error *err)
{
    bool done = false;

    if (atomic_load(&c->state) != CHAIN_UP)
        return tenrec_fail(err, TENREC_ESHUTDOWN, "this worker is not running");
    OUTERMOST_FIRST (l, c, disconnect) {
        tenrec_status st = l->agent.ops->disconnect(&l->agent, peer, err);

        if (st != TENREC_OK && st != TENREC_EUNSUPPORTED)
            return link_prefix(l, st, err);
        done |= st == TENREC_OK;
    }
    return done ? TENREC_OK : tenrec_fail(err, TENREC_EUNSUPPORTED, "no backend can disconnect");
}

static tenrec_status link_drain_held(struct link *l, uint32_t ms, uint64_t deadline_ns,
                                     tenrec_error *err)
{
    const uint64_t left = agent_timers_drain(&l->chain->after, &l->after, deadline_ns);

    return left ? tenrec_fail(err, TENREC_ETIMEDOUT, "%llu messages are still held after %u ms",
                              (unsigned long long)left, ms)
                : TENREC_OK;
}

tenrec_status chain_drain(struct chain *c, uint32_t ms, tenrec_error *err)
{
    const uint64_t deadline = clock_deadline_ms(ms);

    for (size_t i = 0; i < c->n; i++) {
        struct tenrec_agent *a = &c->link[i].agent;
        tenrec_status st;
        if (!c->link[i].started)
            continue;
        st = link_drain_held(&c->link[i], ms, deadline, err);
        if (st == TENREC_OK && TENREC_HAS(a->ops, drain))
            st = a->ops->drain(a, (uint32_t)clock_left_ms(deadline), err);
        if (st != TENREC_OK)
            return link_prefix(&c->link[i], st, err);
    }
    return TENREC_OK;
}

void chain_member_joined(struct chain *c, const struct tenrec_member *member)
{
    tenrec_error err;

    if (chain_members_add(&c->members, member, &err) != TENREC_OK)
        log_line(TENREC_LOG_ERROR, c->link[0].part, "%s", err.text);
    pthread_mutex_lock(&c->group);
    INNERMOST_FIRST (l, c, member_joined)
        l->agent.ops->member_joined(&l->agent, member);
    pthread_mutex_unlock(&c->group);
}

void chain_member_left(struct chain *c, tenrec_peer id)
{
    tenrec_error err;

    if (chain_members_remove(&c->members, id, &err) != TENREC_OK)
        log_line(TENREC_LOG_ERROR, c->link[0].part, "%s", err.text);
    pthread_mutex_lock(&c->group);
    OUTERMOST_FIRST (l, c, member_left)
        l->agent.ops->member_left(&l->agent, id);
    pthread_mutex_unlock(&c->group);
}

bool chain_links(const struct chain *c)
{
    return c->members.links;
}

void chain_member_set_key(struct chain *c, tenrec_peer id, void *key)
{
    chain_members_set_key(&c->members, id, key);
}

/* --- for people ----------------------------------------------------------- */

struct prefixed {
    tenrec_sink_fn *sink;
    void *arg;
    const char *prefix;
};

static void prefixed_sink(void *arg, const char *key, const char *value)
{
    const struct prefixed *p = arg;
    char full[256];

    snprintf(full, sizeof full, "%s.%s", p->prefix, key);
    p->sink(p->arg, full, value);
}

void chain_debug_info(struct chain *c, tenrec_sink_fn *sink, void *arg)
{
    OUTERMOST_FIRST (l, c, debug_info) {
        struct prefixed p = { sink, arg, l->name };

        l->agent.ops->debug_info(&l->agent, prefixed_sink, &p);
    }
}

size_t chain_depth(const struct chain *c)
{
    return c->n;
}

const char *chain_name(const struct chain *c, size_t i)
{
    return c->link[i].name;
}

const struct tenrec_plugin *chain_plugin(const struct chain *c, size_t i)
{
    return plugin_description(c->link[i].backend);
}

uint32_t chain_innermost_flags(const struct chain *c)
{
    return chain_plugin(c, c->n - 1)->flags;
}
