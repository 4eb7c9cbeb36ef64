/* SPDX-License-Identifier: Apache-2.0 */
/* security.h - the demands of this process on its peers, and its means to prove itself: the section
 * `security:` of the configuration, with the secret in hand. */
#ifndef TENREC_PROOF_SECURITY_H
#define TENREC_PROOF_SECURITY_H

#include "core/backend/backend.h"
#include "security/secret/secret.h"

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <tenrec/error.h>
#include <tenrec/proof.h>
#include <tenrec/tls.h>

struct chain_addition;
struct rules;
struct tenrec_config;
struct tls;
struct tls_session;

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
    struct rules *rules; /* rules.h; NULL: every caller may call everything */
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

/* Whether a peer that proves nothing is let in. */

/* Checks the other end of a TCP connection, with the addresses of both ends. Does not wait.
 *
 * errors: EPERM with the reason, for the log */
tenrec_status plain_peer_check(enum security_plain plain, const struct sockaddr *theirs,
                               const struct sockaddr *ours, tenrec_error *err);
/* The same of a connected socket: asks the kernel whose process the peer is. errors: EPERM */
tenrec_status plain_socket_check(enum security_plain plain, int fd, tenrec_error *err);

/* The user whose process holds the other end of a TCP connection within this host,
 * as the kernel tells by sock_diag. */

/* Finds the user of the open socket that is bound to `theirs` and connected to `ours`, the other
 * way round than our end. Does not wait: the kernel answers within the request.
 *
 * errors   ENOTFOUND (no process of this network namespace holds it open), EOS (the kernel does not
 *          tell) */
tenrec_status socket_owner_find(const struct sockaddr *theirs, const struct sockaddr *ours,
                                uid_t *ret, tenrec_error *err);

/* The guard of chains: the proof service of their agents (tenrec/proof.h), and behind it the one
 * for TLS; for the room only. A guard lies in a struct security. */

extern const struct chain_guard chain_proof_guard;

/* The TLS service of a chain (tenrec/tls.h). What backends call struct tenrec_tls. */
static inline struct tls_session *chain_tls_session(struct tenrec_tls *t)
{
    return (struct tls_session *)(void *)t;
}

extern const struct tenrec_tls_service chain_tls_service;

#endif
