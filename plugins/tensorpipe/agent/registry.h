/* SPDX-License-Identifier: Apache-2.0 */
/* registry.h - the transports and channels that TensorPipe's peers register, and which of them can
 * be used. A config may name all of them; unusable ones are skipped, and reported with the
 * reason. */
#ifndef TENSORPIPE_REGISTRY_H
#define TENSORPIPE_REGISTRY_H

#include <tenrec/agent.h>
#include <tenrec/plugin.h>

#define REGISTRY_WHY 160

struct registry_entry {
    const char *name;
    bool host; /* for tensors in host memory (channels) */
    /* Whether this build and this machine can; else why not. NULL: always. */
    bool (*viable)(char why[], size_t cap);
};

/* The better ones first; they end with a name of NULL. */
extern const struct registry_entry registry_transports[], registry_channels[];

/* For the choices of options. */
#define REGISTRY_TRANSPORTS "shm|ibv|uv"
#define REGISTRY_CHANNELS "cma|mpt_uv|xth|basic|cuda_xth|cuda_ipc|cuda_gdr|cuda_basic"

bool registry_viable(const struct registry_entry *k, char why[REGISTRY_WHY]);

/* At least one of `list` must be here. errors: ECONFIG */
tenrec_status registry_check(const struct registry_entry *all, const char *what,
                             const struct tenrec_option_list *list, tenrec_error *err);

/* Reports why each entry better than `used` is not used in this process:
 * "not_used.<what>.<name>". */
void registry_tell_unused(const struct registry_entry *all, const char *what, const char *used,
                          const struct tenrec_option_list *list, tenrec_sink_fn *sink, void *arg);

#endif
