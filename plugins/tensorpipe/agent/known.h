/* SPDX-License-Identifier: Apache-2.0 */
/* known.h - the transports and channels that TensorPipe's peers register, and
 * which of them can be used. A config may name all of them; what cannot be used
 * here is skipped, and people are told why. */
#ifndef TENSORPIPE_KNOWN_H
#define TENSORPIPE_KNOWN_H

#include <tenrec/agent.h>
#include <tenrec/plugin.h>

#define KNOWN_WHY 160

struct known {
    const char *name;
    bool host; /* for tensors in host memory (channels) */
    /* Whether this build and this machine can; else why not. NULL: always. */
    bool (*viable)(char why[], size_t cap);
};

/* The better ones first; they end with a name of NULL. */
extern const struct known known_transports[], known_channels[];

/* For the choices of options. */
#define KNOWN_TRANSPORTS "shm|tenrec_ring|ibv|uv"
#define KNOWN_CHANNELS "cma|mpt_uv|xth|basic|cuda_xth|cuda_ipc|cuda_gdr|cuda_basic"

bool known_viable(const struct known *k, char why[KNOWN_WHY]);

/* At least one of `list` must be here. errors: ECONFIG */
tenrec_status known_check(const struct known *all, const char *what,
                          const struct tenrec_option_list *list, tenrec_error *err);

/* Tells why each one that is better than `used` is not used by anybody here:
 * "not_used.<what>.<name>". */
void known_tell_unused(const struct known *all, const char *what, const char *used,
                       const struct tenrec_option_list *list, tenrec_sink_fn *sink, void *arg);

#endif
