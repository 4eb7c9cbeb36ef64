/* SPDX-License-Identifier: Apache-2.0 */
/* chain.h - the agents of one worker, from the user to the wire.
 *
 * layer[0] is the outermost. The chain is built from the wire outwards, started
 * outwards and shut down inwards; an op that an agent does not have goes on to
 * the next one. send, deliver and poll cost one pointer chase per link. */
#ifndef TENREC_BACKEND_CHAIN_H
#define TENREC_BACKEND_CHAIN_H

#include <tenrec/plugin.h>

struct backend;
struct chain;
struct loop;

/* One entry of `backends:`, loaded and checked (chain_config.h makes these). */
struct chain_layer {
    const char *name;        /* as the config calls it; borrowed until chain_close */
    const char *place;       /* "a.yaml:7:3", or "" when there is none; borrowed during open */
    struct backend *backend; /* shared until chain_close */
    const void *options;     /* filled and checked; borrowed until chain_close */
};

/* Who we are, to all agents of the chain. */
struct chain_identity {
    tenrec_peer me;
    uint32_t world; /* number of members; 0 in a dynamic group */
    uint64_t incarnation;
    uint64_t token;           /* as in struct tenrec_member */
    const char *name;         /* borrowed until chain_close */
    const char *host_address; /* likewise; NULL: "" */
};

/* Shared memory: the host functions of the same names. */
struct chain_sharing {
    struct tenrec_sharing *(*open)(void);
    void (*close)(struct tenrec_sharing *s);
    bool (*share)(struct tenrec_sharing *s, const struct tenrec_tensor_desc *desc,
                  struct tenrec_share *ret);
    void (*share_back)(struct tenrec_sharing *s, struct tenrec_share *share);
    tenrec_status (*shared)(struct tenrec_sharing *s, struct tenrec_share *share,
                            struct tenrec_tensor_desc *desc, tenrec_error *err);
};

/* What lies above the outermost agent. Called from any thread, concurrently;
 * the meaning of each is that of the same name in struct tenrec_host. */
struct chain_user {
    void (*deliver)(void *arg, tenrec_peer from, struct tenrec_msg *msg); /* takes msg */
    /* NULL: message_place */
    tenrec_status (*place)(void *arg, tenrec_peer from, struct tenrec_msg *msg, tenrec_error *err);
    bool (*accepts)(void *arg);                                                /* NULL: always */
    void (*peer_lost)(void *arg, tenrec_peer peer, const tenrec_error *why);   /* NULL: ignored */
    void (*caller_lost)(void *arg, tenrec_peer peer, const tenrec_error *why); /* NULL: ignored */
    /* NULL: message_new */
    struct tenrec_msg *(*msg_new)(void *arg, uint64_t payload_len, uint32_t n_tensors);
    const struct chain_sharing *sharing; /* NULL: nothing is shared */
    void *arg;
};

/* Makes all agents; starts nothing. `user` is copied, `loop` borrowed until
 * chain_close. errors: ECONFIG (wraps missing or needless), EPLUGIN, ENOMEM
 * and what a plugin's init says. */
tenrec_status chain_open(const struct chain_layer *layer, size_t n, const struct chain_identity *id,
                         struct loop *loop, const struct chain_user *user, struct chain **ret,
                         tenrec_error *err);

/* Where peers reach us; "" when no agent says. Owned by the chain. */
const char *chain_address(struct chain *c);

/* The devices of the first agent that has some: how many, and what they can do.
 * Its plugin stays mapped from then on. errors: EUNSUPPORTED (why there are none),
 * EPLUGIN */
tenrec_status chain_devices(struct chain *c, const struct tenrec_device_ops **ret, uint32_t *ret_n,
                            tenrec_error *err);

/* Every agent of the chain hears which devices are used. */
tenrec_status chain_use_devices(struct chain *c, const struct tenrec_device *device, uint32_t n,
                                tenrec_error *err);

/* Starts from the wire outwards. When one fails those that run are shut down
 * again, and the chain can only be closed. The members' strings must live
 * until chain_shutdown returned; the array is borrowed during the call. */
tenrec_status chain_start(struct chain *c, const struct tenrec_member *member, uint32_t n,
                          tenrec_error *err);

/* Takes the message always and tells `done` exactly once (ESHUTDOWN when the
 * chain does not run). */
void chain_send(struct chain *c, tenrec_peer to, struct tenrec_msg *msg, struct tenrec_done done);

/* EUNSUPPORTED at once when no agent can be polled. */
tenrec_status chain_poll(struct chain *c, tenrec_peer peer, const struct tenrec_wait *wait);
/* The same, when no agent can be led, or the chain does not run. */
tenrec_status chain_lead(struct chain *c, const struct tenrec_wait *wait);

void chain_resume(struct chain *c);
/* The outermost agent that knows says it; false while the chain does not run. */
bool chain_maps(struct chain *c, tenrec_peer peer, struct tenrec_route route);
tenrec_status chain_disconnect(struct chain *c, tenrec_peer peer, tenrec_error *err);

/* Waits at most `ms` milliseconds in all until every send was told done. */
tenrec_status chain_drain(struct chain *c, uint32_t ms, tenrec_error *err);

void chain_member_joined(struct chain *c, const struct tenrec_member *member);
void chain_member_left(struct chain *c, tenrec_peer id);

/* Stops all agents, outermost first. Every pending send has been told done and
 * no callback of the user runs when it returns, but those of sends that other
 * threads are just making. A second call does nothing. Not from a callback. */
void chain_shutdown(struct chain *c);

/* Shuts down when that has not been done, and frees all. No other thread may
 * be in a call with `c`. NULL is fine. */
void chain_close(struct chain *c);

/* Pushes the agents' counters, "<config name>." before each key. */
void chain_debug_info(struct chain *c, tenrec_sink_fn *sink, void *arg);

size_t chain_depth(const struct chain *c);
/* How the config calls link `i`, and what plugin it is of; 0 is the outermost. */
const char *chain_name(const struct chain *c, size_t i);
const struct tenrec_plugin *chain_plugin(const struct chain *c, size_t i);
/* enum tenrec_plugin_flags of the one at the wire. */
uint32_t chain_innermost_flags(const struct chain *c);

#endif
