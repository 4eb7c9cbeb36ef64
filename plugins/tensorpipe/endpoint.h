/* SPDX-License-Identifier: Apache-2.0 */
/* endpoint.h - what an agent shares with its connections, channels and pipes.
 *
 * It is the first part of struct agent. Folders below agent/ use the endpoint only; a pipe that
 * needs the agent calls it through `owner`. */
#ifndef TENSORPIPE_ENDPOINT_H
#define TENSORPIPE_ENDPOINT_H

#include "admission/handshakes.h"
#include "options.h"
#include "reactor/reactor.h"
#include "transport/transport.h"
#include "wire/handshake/brochure.h"
#include <tenrec/proof.h>
#include <tenrec/tls.h>

#define ENDPOINT_PEERS 32768 /* ids are torch's int16 */
#define ENDPOINT_LOCKS 16    /* of the connections to peers */

struct channels;
struct cuda;
struct peer;
struct pipe_owner;
struct pipe_table;

enum agent_state { AGENT_MADE, AGENT_STARTED, AGENT_STOPPING, AGENT_STOPPED };
enum progress { PROGRESS_BUSY, PROGRESS_ADAPTIVE, PROGRESS_SLEEP };

struct counters {
    atomic_uint_fast64_t answers_dropped, messages_dropped, messages_skipped;
    atomic_uint_fast64_t pipes_opened, pipes_accepted, pipes_parted, pipes_broken;
    atomic_uint_fast64_t handshakes_failed;
    atomic_uint_fast64_t tensors_pulled, pulls_refused, tensors_shared, tensors_mapped;
    atomic_uint_fast64_t proofs, proofs_refused; /* of incoming connections */
    atomic_uint_fast64_t hellos; /* that were parsed: the first bytes behind a proof */
};

static inline void counter_add(atomic_uint_fast64_t *counter, uint64_t n)
{
    atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}

struct endpoint {
    struct tenrec_agent *self;
    const struct tenrec_host *host;
    const struct tenrec_proof_service *proof; /* NULL: of an older core */
    bool proves;                              /* connections begin with a proof */
    const struct tenrec_tls_service *tls;     /* NULL: of an older core */
    const struct tp_options *options;
    const struct pipe_owner *owner;
    atomic_int state;  /* enum agent_state */
    atomic_uint polls; /* calls of poll so far, about */
    /* Operations that run now and are not inside of a peer; shutdown waits for the last of both. */
    atomic_uint inside;
    enum progress progress;
    bool one_cpu, many_cpus;
    tenrec_peer me;
    _Atomic(struct peer *) *peers; /* ENDPOINT_PEERS of them, by id; a lock of peer_locks to add */
    const struct tenrec_member *start; /* its members, which `peers` may lack; until shutdown */
    uint32_t n_start;
    atomic_int peers_end; /* above all ids that were ever in use */
    pthread_mutex_t peer_locks[ENDPOINT_LOCKS];
    struct reactor_task reclaim; /* to post when a poller took data events from the loop */
    atomic_uint spinners;        /* callers that spin now */
    atomic_uint drainers;        /* threads that wait until all sends are complete */

    uint64_t incarnation;
    uint64_t token; /* 0: none, as of a caller that is no member */
    bool dynamic;   /* unknown members may join */
    uint32_t scope; /* the interface of link-local addresses; 0: unknown */
    char name[TENREC_NAME_MAX + 1];
    uint64_t capabilities; /* enum identity_capability, of ours */
    /* Those that are in use, the preferred first, ended by NULL; and as the offer has them. */
    const struct transport *transports[TRANSPORTS_MAX + 1];
    struct wire_transport offered[TRANSPORTS_MAX];
    struct wire_offer offer;

    struct reactor reactor;
    struct handshakes handshakes; /* incoming ones under way */
    struct pipe_table *pipes;
    struct channels *channels;
    struct cuda *cuda;
    struct counters count;
};

#define endpoint_log(ep, level, ...)                                                               \
    do {                                                                                           \
        if ((ep)->host->log_enabled((ep)->self, level))                                            \
            (ep)->host->log((ep)->self, level, __VA_ARGS__);                                       \
    } while (0)

#endif
