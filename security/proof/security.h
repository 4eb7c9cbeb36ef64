/* SPDX-License-Identifier: Apache-2.0 */
/* security.h - the demands of this process on its peers, and its means to prove itself: the section
 * `security:` of the configuration, with the secret in hand. */
#ifndef TENREC_PROOF_SECURITY_H
#define TENREC_PROOF_SECURITY_H

#include "core/backend/backend.h"
#include "security/secret/secret.h"

#include <stdbool.h>

struct chain_addition;
struct rules;
struct tenrec_config;
struct tls;

enum security_mode { SECURITY_NONE, SECURITY_SECRET, SECURITY_TLS, SECURITY_MTLS };

/* Peers that can prove nothing, and are let in nevertheless. */
enum security_plain { PLAIN_NONE, PLAIN_SAME_USER, PLAIN_LOOPBACK, PLAIN_ALL };

/* Counted, immutable; shared by threads. */
struct security {
    struct chain_guard guard; /* for chains; first: their agents' services find the rest by it */
    enum security_mode mode;
    bool written;            /* the configuration names the mode */
    const char *mode_source; /* "cluster.yaml:3:9", "the launcher", "default"; lives as long */
    struct secret *secret;   /* NULL in modes none and mtls */
    struct tls *tls;         /* of modes tls and mtls, else NULL */
    enum security_plain store_plain;
    enum security_plain plain_peers;
    struct rules *rules; /* security/rules.h; NULL: every caller may call everything */
};

/* Reads the section and gets the secret: of `secret_file`, else what the environment announces
 * (secret_handover.h). Without a section the mode is `secret` if a secret is announced, else
 * `none`.
 *
 * config        NULL: no section
 * deadline_ns   of the launcher's answer, which is awaited for 5 s at most
 * ret           security_drop
 * errors        ECONFIG with the position (mode secret without a secret; a mode that this build
 *               lacks), those of secret_inherit and secret_read_file */
tenrec_status security_open(const struct tenrec_config *config, uint64_t deadline_ns,
                            struct security **ret, tenrec_error *err);
/* The same for a launcher, which announces a secret itself: `announced` (shared; NULL: none) stands
 * for what the environment announces, and `source` for where it is from.
 * errors: as above, but for those of secret_inherit */
tenrec_status security_open_with(const struct tenrec_config *config, struct secret *announced,
                                 const char *source, struct security **ret, tenrec_error *err);
/* security_open with the configuration that TENREC_CONFIG names, for a program without a worker.
 * errors: also those of tenrec_config_load */
tenrec_status security_open_default(uint64_t deadline_ns, struct security **ret, tenrec_error *err);
struct security *security_share(struct security *s);
void security_drop(struct security *s); /* NULL is fine */

/* The section in the options of a chain. */
extern const struct chain_addition security_addition;

const char *security_mode_name(enum security_mode mode); /* "secret" */

#endif
