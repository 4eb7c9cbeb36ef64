/* SPDX-License-Identifier: Apache-2.0 */
/* tenrec/proof.h - the proof that a peer belongs to the group, for backends.
 *
 * An extension of struct tenrec_host. A backend that uses it makes the proof the first exchange of
 * each connection, before it parses anything else, and sets TENREC_PLUGIN_PROVES. The core knows
 * the secret, this worker and the members; the backend carries the bytes:
 *
 *     p = dial or listen;  send output;  until proved: receive, take, send output;  close
 *
 * The messages of such a connection are placed and delivered with TENREC_MSG_PROVED, by which the
 * core knows a tool that has the secret from a stranger, and a program what to believe.
 *
 * The proof is bytes in, bytes out: no function here blocks, and the deadline is the backend's. The
 * exchange proves; it encrypts nothing: in the modes tls and mtls it runs within a session of
 * tenrec/tls.h, to which it is bound. docs/plugin-guide.md has an example.
 *
 * Threads: any, but one at a time for one proof.
 */
#ifndef TENREC_PROOF_H
#define TENREC_PROOF_H

#include <string.h>
#include <tenrec/agent.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TENREC_EXTENSION_PROOF 1u

/* The first bytes of each record. A connection that begins otherwise is that of a plain peer, which
 * proves nothing. */
#define TENREC_PROOF_MAGIC "TNRP"
#define TENREC_PROOF_MAGIC_LEN 4
#define TENREC_PROOF_LABEL_MAX 64

/* What this process asks of its peers: `security: mode:` of the configuration. */
enum tenrec_security_mode {
    TENREC_SECURITY_NONE,
    TENREC_SECURITY_SECRET,
    TENREC_SECURITY_TLS,
    TENREC_SECURITY_MTLS,
};

struct tenrec_proof; /* opaque: the proof of one connection */
struct tenrec_tls;   /* tenrec/tls.h */

/* The other side, as it has proved to be. */
struct tenrec_proved {
    uint32_t size;  /* sizeof(struct tenrec_proved), set by the backend */
    tenrec_peer id; /* TENREC_ANONYMOUS: a tool that has the secret and is no member */
    uint64_t incarnation;
    const char *name;  /* borrowed until close; "" if it has none */
    const void *label; /* that the dialler gave; borrowed until close */
    size_t label_len;
};

/* Grows at its end: the extension has its size. */
struct tenrec_proof_service {
    struct tenrec_extension extension; /* TENREC_EXTENSION_PROOF */

    /* In mode none a backend neither sends a proof nor waits for one. */
    enum tenrec_security_mode (*mode)(const struct tenrec_agent *self);

    /* Returns true if the peer of a connected socket may do without a proof: always in mode none,
     * else by `security: plain_peers:`, for which the kernel is asked whose process it is. With fd
     * -1: whether any peer may. */
    bool (*admits_plain)(const struct tenrec_agent *self, int fd);

    /* Returns true if a process of this host and user has the other end of a connected socket. */
    bool (*peer_is_ours)(const struct tenrec_agent *self, int fd);

    /* The proof of a connection that this worker makes to the member `to`. Its first bytes wait in
     * `output`.
     *
     * tls     the session of this connection after its handshake, which lives longer; NULL: none
     * label   at most TENREC_PROOF_LABEL_MAX bytes that belong to the connection, such as what it
     *         is for; copied. The listener learns them as the dialler meant them
     * errors  EPEER_UNKNOWN (no such member), EINVAL, EOS, ENOMEM */
    tenrec_status (*dial)(const struct tenrec_agent *self, tenrec_peer to, struct tenrec_tls *tls,
                          const void *label, size_t label_len, struct tenrec_proof **ret,
                          tenrec_error *err);

    /* The proof of a connection that came in. Also in mode none, for a connection that begins with
     * TENREC_PROOF_MAGIC: take then refuses it, with a reason for both sides.
     * errors: EOS, ENOMEM */
    tenrec_status (*listen)(const struct tenrec_agent *self, struct tenrec_tls *tls,
                            struct tenrec_proof **ret, tenrec_error *err);

    /* Takes received bytes: at most as many as belong to the proof, *ret_used of them.
     *
     * returns  OK also while more must come. EPERM: one side refuses the other, with the reason for
     *          people; EPROTOCOL: the bytes are no proof. After an error send what `output` gives,
     *          then end the connection. */
    tenrec_status (*take)(const struct tenrec_agent *self, struct tenrec_proof *p, const void *in,
                          size_t n, size_t *ret_used, tenrec_error *err);

    /* The bytes to send now; *ret_len is 0 if there are none. Borrowed until the next take. They
     * count as sent. */
    const void *(*output)(const struct tenrec_agent *self, struct tenrec_proof *p, size_t *ret_len);

    /* Returns true, and the other side's identity, once both sides have proved the secret and
     * nothing of the proof is left to receive. The peer of a listener is a member that this worker
     * knows, a member to be of a dynamic group, or a tool. */
    bool (*proved)(const struct tenrec_agent *self, const struct tenrec_proof *p,
                   struct tenrec_proved *ret);

    void (*close)(const struct tenrec_agent *self, struct tenrec_proof *p); /* NULL is fine */
};

/* Returns the service, or NULL if the core is older: then as in mode none. */
static inline const struct tenrec_proof_service *tenrec_proof_service(const struct tenrec_host *h)
{
    return (const struct tenrec_proof_service
                *)(const void *)(TENREC_HAS(h, extensions)
                                     ? tenrec_extension_find(
                                           h->extensions, TENREC_EXTENSION_PROOF,
                                           (uint32_t)sizeof(struct tenrec_proof_service))
                                     : NULL);
}

/* Returns true if these first bytes of a connection, at least TENREC_PROOF_MAGIC_LEN, begin a
 * proof. */
static inline bool tenrec_proof_begins(const void *bytes)
{
    return memcmp(bytes, TENREC_PROOF_MAGIC, TENREC_PROOF_MAGIC_LEN) == 0;
}

#ifdef __cplusplus
}
#endif

#endif
