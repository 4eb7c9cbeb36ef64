/* SPDX-License-Identifier: Apache-2.0 */
/* backend.h - chains of backends: the agents of one worker, from the user to the wire.
 *
 * layer[0] is the outermost. The chain is built from the wire outwards, started
 * outwards and shut down inwards; an op that an agent lacks passes to the next agent.
 * send, deliver and poll cost one pointer chase per link. */
#ifndef TENREC_BACKEND_BACKEND_H
#define TENREC_BACKEND_BACKEND_H

#include <stdatomic.h>
#include <tenrec/agent.h>
#include <tenrec/plugin.h>
#include <tenrec/proof.h>

struct plugin;
struct chain;
struct loop;
struct node;

/* One entry of `backends:`, loaded and checked (chain_config_open makes these). */
struct chain_layer {
    const char *name;       /* of the entry; borrowed until chain_close */
    const char *where;      /* "a.yaml:7:3" or ""; borrowed during open */
    struct plugin *backend; /* shared until chain_close */
    const void *options;    /* filled and checked; borrowed until chain_close */
};

/* Decides which peers may speak with the agents of a chain. */
struct chain_guard {
    enum tenrec_security_mode (*mode)(const struct chain_guard *g);
    const struct tenrec_extension *extensions; /* of the agents' host */
    /* Checks that the innermost agent, which listens at `address`, can demand what `g` asks for.
     * errors: ECONFIG */
    tenrec_status (*check)(const struct chain_guard *g, const struct tenrec_plugin *innermost,
                           const char *address, tenrec_error *err);
};

/* The identity of this worker, for all agents of the chain. */
struct chain_identity {
    tenrec_peer me;
    uint32_t world; /* number of members; 0 in a dynamic group */
    bool links;     /* members of other groups may come ([AG-42]), if the backend knows such */
    uint64_t incarnation;
    uint64_t token;                  /* as in struct tenrec_member */
    const char *name;                /* borrowed until chain_close */
    const char *host_address;        /* likewise; NULL: "" */
    const struct chain_guard *guard; /* likewise; NULL: every peer may speak */
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

/* The layer above the outermost agent. Called from any thread, concurrently; each
 * function means the same as in struct tenrec_host. */
struct chain_user {
    void (*deliver)(void *arg, tenrec_peer from, struct tenrec_msg *msg); /* takes msg */
    tenrec_status (*place)(void *arg, tenrec_peer from, struct tenrec_msg *msg, tenrec_error *err);
    bool (*accepts)(void *arg);                                                /* NULL: always */
    void (*peer_lost)(void *arg, tenrec_peer peer, const tenrec_error *why);   /* NULL: ignored */
    void (*caller_lost)(void *arg, tenrec_peer peer, const tenrec_error *why); /* NULL: ignored */
    bool (*needs)(void *arg, tenrec_peer peer);                                /* NULL: always */
    /* Of messages with tensors; the others are of message_new. NULL: so are these. */
    struct tenrec_msg *(*msg_new)(uint64_t payload_len, uint32_t n_tensors);
    /* Of messages with a payload of TENREC_LARGE_PAYLOAD bytes or more. NULL, and where it returns
     * NULL: as the others. */
    struct tenrec_msg *(*large_new)(void *arg, uint64_t payload_len, uint32_t n_tensors);
    const struct chain_sharing *sharing; /* NULL: nothing is shared */
    /* For the answer to `msg`, or in its place; NULL when out of memory. NULL: the text of `why`.
     */
    struct tenrec_msg *(*exception_new)(const struct tenrec_msg *msg, const tenrec_error *why);
    void *arg;
};

/* Makes all agents; starts nothing. `user` is copied, `loop` borrowed until
 * chain_close. errors: ECONFIG (wraps missing or needless; a plugin that proves nothing and can be
 * reached by strangers, while `security` asks for a proof), EPLUGIN, ENOMEM and those of a plugin's
 * init. */
tenrec_status chain_open(const struct chain_layer *layer, size_t n, const struct chain_identity *id,
                         struct loop *loop, const struct chain_user *user, struct chain **ret,
                         tenrec_error *err);

/* The address for peers; "" when no agent has one. Owned by the chain. */
const char *chain_address(struct chain *c);

/* Puts other options of an entry in force: those of the map, and defaults. Blocks on nothing.
 *
 * errors   EBUSY (the chain starts or stops, its group changes, or another change is under way),
 *          ENOTFOUND (no such entry in the chain, with the nearest name), EUNSUPPORTED (its agent
 *          cannot change), ECONFIG, ENOMEM and those of the plugin */
tenrec_status chain_change(struct chain *c, const char *name, const struct node *options,
                           tenrec_error *err);

/* The devices of the first agent with the op: their number and operations. The agent's
 * plugin stays mapped from then on. errors: EUNSUPPORTED (no devices, with the reason),
 * EPLUGIN */
tenrec_status chain_devices(struct chain *c, const struct tenrec_device_ops **ret, uint32_t *ret_n,
                            tenrec_error *err);

/* Passes the used devices to every agent of the chain. */
tenrec_status chain_use_devices(struct chain *c, const struct tenrec_device *device, uint32_t n,
                                tenrec_error *err);

/* Starts from the wire outwards. After a failure the started agents are shut down
 * again, and the chain can only be closed. The members and their strings are borrowed until
 * chain_shutdown has returned. */
tenrec_status chain_start(struct chain *c, const struct tenrec_member *member, uint32_t n,
                          tenrec_error *err);

/* Takes the message always and calls `done` exactly once (ESHUTDOWN when the chain
 * does not run). */
void chain_send(struct chain *c, tenrec_peer to, struct tenrec_msg *msg, struct tenrec_done done);

/* EUNSUPPORTED at once when no agent can be polled, or the chain does not run. */
tenrec_status chain_poll(struct chain *c, tenrec_peer peer, const struct tenrec_wait *wait);

/* The same two without a step through the chain, for each call: the outermost agents that have the
 * operations, and what they are while the chain runs or does not. */
typedef void chain_send_fn(struct tenrec_agent *self, tenrec_peer to, struct tenrec_msg *msg,
                           struct tenrec_done done);
typedef tenrec_status chain_poll_fn(struct tenrec_agent *self, tenrec_peer peer,
                                    const struct tenrec_wait *wait);
struct chain_port {
    _Atomic(chain_send_fn *) send;
    struct tenrec_agent *sender;
    _Atomic(chain_poll_fn *) poll;
    struct tenrec_agent *poller;
};

/* Borrowed until chain_close. */
const struct chain_port *chain_port(struct chain *c);

/* EUNSUPPORTED at once when no agent can be led, or the chain does not run. */
tenrec_status chain_lead(struct chain *c, const struct tenrec_wait *wait);

void chain_resume(struct chain *c);
/* Asks the outermost agent with the op; returns false while the chain does not run. */
bool chain_maps(struct chain *c, tenrec_peer peer, struct tenrec_route route);
tenrec_status chain_disconnect(struct chain *c, tenrec_peer peer, tenrec_error *err);

/* Adds the bytes that arrived from each peer below `n`, as the outermost agent counts them that
 * does; nothing if none does. */
void chain_received(struct chain *c, uint64_t *received, uint32_t n);

/* Waits at most `ms` milliseconds in all until every send has completed, also the sends that
 * agents hold. */
tenrec_status chain_drain(struct chain *c, uint32_t ms, tenrec_error *err);

void chain_member_joined(struct chain *c, const struct tenrec_member *member);
void chain_member_left(struct chain *c, tenrec_peer id);
/* Returns true if members of other groups may come. */
bool chain_links(const struct chain *c);
/* What the guard proves itself by to that member, in place of its own means; borrowed until the
 * chain's shutdown. */
void chain_member_set_key(struct chain *c, tenrec_peer id, void *key);

/* Stops all agents, outermost first. On return every pending send has completed and no
 * callback of the user runs, but for sends that other threads are making at the time. A
 * second call does nothing. Not from a callback. */
void chain_shutdown(struct chain *c);

/* Shuts the chain down unless that has been done, and frees it. No other thread may be
 * in a call with `c`. NULL is fine. */
void chain_close(struct chain *c);

/* Pushes the agents' counters, "<config name>." before each key. */
void chain_debug_info(struct chain *c, tenrec_sink_fn *sink, void *arg);

size_t chain_depth(const struct chain *c);
/* The name of link `i` in the configuration, and its plugin; 0 is the outermost. */
const char *chain_name(const struct chain *c, size_t i);
const struct tenrec_plugin *chain_plugin(const struct chain *c, size_t i);
/* enum tenrec_plugin_flags of the plugin at the wire. */
uint32_t chain_innermost_flags(const struct chain *c);

/* The backends of a configuration, loaded and with their options filled: the layers of a chain.
 * Starts nothing. */

struct chain_config;
struct tenrec_config;

/* The chain that `backend:` begins. The configuration may be changed or dropped
 * afterwards.
 *
 * errors   with the position: ECONFIG (also from a plugin's construct), EPLUGIN,
 *          EABI, EEXIST, ENOMEM
 */
tenrec_status chain_config_open(const struct tenrec_config *config, struct chain_config **ret,
                                tenrec_error *err);

/* Outermost first; borrowed until chain_config_close. For chain_open. */
const struct chain_layer *chain_config_layers(const struct chain_config *s, size_t *ret_n);

/* After the chain is closed. NULL is fine. */
void chain_config_close(struct chain_config *s);

/* The memory of messages.
 *
 * One allocation holds the message, its descriptors and its payload; small ones are
 * recycled. Messages to send and messages that a backend fills from the wire are made
 * here. */

/* Zeroed, with `payload_len` bytes (not zeroed) at ->payload and `n_tensors`
 * zeroed descriptors at ->tensors. NULL: out of memory or far too large. Any thread;
 * ->release may be called on another thread. */
struct tenrec_msg *message_new(uint64_t payload_len, uint32_t n_tensors);

/* As in struct tenrec_budget; of a message of another maker the charge ends at once. */
void message_carry(struct tenrec_msg *msg, struct tenrec_account *a, uint64_t n,
                   const struct tenrec_account_limits *limits);

/* Charges `n` bytes more that will be made of `msg`, until its release, if it carries a charge.
 * errors: EAGAIN */
tenrec_status message_charge(const struct tenrec_msg *msg, uint64_t n, tenrec_error *err);

#endif
