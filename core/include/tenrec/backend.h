/* tenrec/backend.h - the backends of this process.
 *
 * A backend is registered when its plugin file is loaded, which the config
 * does by itself; a program that brings its own calls tenrec_register_backend
 * and names it in the config like any other. Handles and agents stay valid
 * while others register.
 */
#ifndef TENREC_BACKEND_H
#define TENREC_BACKEND_H

#include <stdbool.h>
#include <tenrec/plugin.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* Adds a backend under plugin->name.
 *
 * plugin   borrows it and both functions until tenrec_unload_backend
 * errors   EEXIST (there is one of that name), EPLUGIN, EABI (the description
 *          is out of contract), EINVAL, ENOMEM
 * threads  any
 * source   torch.distributed.rpc.backend_registry.register_backend
 */
tenrec_status tenrec_register_backend(const struct tenrec_plugin *plugin,
                                      tenrec_construct_options_fn *construct,
                                      tenrec_init_agent_fn *init, tenrec_error *err);

/* Is there a backend of that name? Looks at no file.
 *
 * threads  any
 * source   torch.distributed.rpc.backend_registry.backend_registered
 */
bool tenrec_backend_registered(const char *name);

/* Loads the plugin file and registers it; a file that is loaded already is
 * loaded once only.
 *
 * name_or_path  as `plugin:` in the config: <name>.so is looked for in the
 *               folders of TENREC_PLUGIN_PATH, then among the installed ones
 * errors   EPLUGIN (not found, no plugin), EABI (of another ABI), EEXIST
 *          (another file or the program has one of that name), ENOMEM
 * threads  any
 */
tenrec_status tenrec_load_backend(const char *name_or_path, tenrec_error *err);

/* Takes a backend out again. Its file is unmapped when the plugin allows it,
 * and TENREC_DLCLOSE=0 is not set.
 *
 * errors   ENOTFOUND, EBUSY (agents use it; says how many)
 * threads  any
 */
tenrec_status tenrec_unload_backend(const char *name, tenrec_error *err);

/* ---- a backend without RPC ------------------------------------------------
 *
 * What tenrec_init_rpc does with its backend, for programs that move messages
 * themselves: tests of a plugin, other protocols. Who is there and where is up
 * to the program. */

struct tenrec_config;              /* tenrec/config.h */
struct tenrec_rpc_backend_options; /* opaque: loaded and filled, nothing started */
struct tenrec_backend_agent;       /* opaque: a backend and what it wraps */

/* Loads the backend that `backend:` names, and what it wraps, and fills and
 * checks their options.
 *
 * config   borrowed during the call
 * ret      owns: tenrec_rpc_backend_options_drop
 * errors   ECONFIG, EPLUGIN, EABI, EEXIST, ENOMEM; all with the place
 * threads  any
 * source   torch.distributed.rpc.backend_registry.construct_rpc_backend_options
 */
tenrec_status tenrec_construct_rpc_backend_options(const struct tenrec_config *config,
                                                   struct tenrec_rpc_backend_options **ret,
                                                   tenrec_error *err);

/* After all agents made of them. NULL is fine. */
void tenrec_rpc_backend_options_drop(struct tenrec_rpc_backend_options *options);

/* Who takes what comes in. Called from any thread, several at once. */
struct tenrec_backend_user {
    uint32_t size; /* sizeof(struct tenrec_backend_user) */
    uint32_t reserved;
    /* Takes msg. Its tensors lie in memory that goes with it. */
    void (*deliver)(void *arg, tenrec_peer from, struct tenrec_msg *msg);
    /* The connection to `peer` broke; may be NULL. */
    void (*peer_lost)(void *arg, tenrec_peer peer, const tenrec_error *why);
    void *arg;
};

/* Makes the agents. They have an address then, and wait for
 * tenrec_backend_start.
 *
 * options  borrows until tenrec_backend_drop
 * user     copied
 * me       id, incarnation and name (borrows until tenrec_backend_drop) of this
 *          end; its address is ignored
 * world    how many members there will be; 0 when that is not known
 * ret      owns: tenrec_backend_drop
 * errors   EINVAL, EOS, ENOMEM and what the plugin says
 * threads  any
 * source   torch.distributed.rpc.backend_registry.init_backend
 */
tenrec_status tenrec_init_backend(const struct tenrec_rpc_backend_options *options,
                                  const struct tenrec_backend_user *user,
                                  const struct tenrec_member *me, uint32_t world,
                                  struct tenrec_backend_agent **ret, tenrec_error *err);

/* Where others reach it; "" when the backend has no addresses. Lives as long. */
const char *tenrec_backend_address(struct tenrec_backend_agent *agent);

/* Begins to serve. Once.
 *
 * member   all, this one included; the array is borrowed during the call, its
 *          strings until tenrec_backend_drop
 * errors   EINVAL and what the plugin says
 */
tenrec_status tenrec_backend_start(struct tenrec_backend_agent *agent,
                                   const struct tenrec_member *member, uint32_t n,
                                   tenrec_error *err);

/* A message to fill: zeroed, with `payload_len` bytes at ->payload (not zeroed)
 * and `n_tensors` descriptors. NULL: out of memory. Any thread. */
struct tenrec_msg *tenrec_backend_message(uint64_t payload_len, uint32_t n_tensors);

/* Takes msg always, and tells `done` exactly once; an answer carries id and
 * route of its request. Any thread. */
void tenrec_backend_send(struct tenrec_backend_agent *agent, tenrec_peer to, struct tenrec_msg *msg,
                         struct tenrec_done done);

/* Pushes counters and states, "<name in the config>." before each key. */
void tenrec_backend_debug_info(struct tenrec_backend_agent *agent, tenrec_sink_fn *sink, void *arg);

/* Stops and frees it: what is pending is told done before it returns. Not from
 * a callback, and no other thread may be in a call with it. NULL is fine. */
void tenrec_backend_drop(struct tenrec_backend_agent *agent);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
