/* SPDX-License-Identifier: Apache-2.0 */
/* fake_host.h - a whole tensorpipe agent on a host of the target's, without threads: the
 * caller is the agent's loop. */
#ifndef TENREC_TESTS_FUZZ_FAKE_HOST_H
#define TENREC_TESTS_FUZZ_FAKE_HOST_H

#include "agent/agent.h"

#define FAKE_MEMBERS 4 /* ids 1 and 3 are far, 2 is near; 0 is the agent's own */
#define FAKE_LIFE(id) (1000 + (uint64_t)(id))
#define FAKE_KEPT 16 /* requests that wait for an answer */

/* The behaviour of the host, by bit. */
enum fake_mood {
    MOOD_REFUSES = 1,    /* accepts no requests */
    MOOD_NO_PLACE = 2,   /* wants no tensors */
    MOOD_ECHOES = 4,     /* answers each request while it is delivered */
    MOOD_CALLS = 8,      /* sends a request while it gets an answer */
    MOOD_SHARES = 16,    /* shares each tensor that it sends */
    MOOD_NO_SHARING = 32 /* takes no tensor that is shared */
};

struct fake_host {
    struct tenrec_agent agent;
    struct tenrec_host host;
    struct tp_options options;
    union tenrec_option_value transport[2], channel[5];
    uint32_t mood; /* of enum fake_mood */

    struct tenrec_msg *kept[FAKE_KEPT]; /* requests; owns */
    unsigned n_kept;
    int64_t next_id;     /* of requests */
    unsigned sent, told; /* sends, and completed sends */
    uint64_t sent_bytes; /* of payloads and tensors */
    unsigned sharings, lost, delivered;
    uint64_t share_number;
};

#define FAKE_HAS_DEVICES 0x100 /* of a kind: two of a driver that the target has */

/* `kind` chooses among options. */
void fake_host_start(struct fake_host *h, uint32_t kind);
/* Shuts down, frees all, and checks that each send completed once. */
void fake_host_finish(struct fake_host *h);
struct agent *fake_host_agent(struct fake_host *h);

/* Sends what `s` describes: to a member, or as the answer to a kept request. */
struct fake_message {
    int32_t type;
    uint32_t payload_len, n_tensors, tensor_len, flags;
    uint32_t lag_ms; /* of the deadline; 0: none */
};
void fake_host_send(struct fake_host *h, tenrec_peer to, const struct fake_message *m);
void fake_host_answer(struct fake_host *h, unsigned which, const struct fake_message *m);

/* All that there is to do is done, or `rounds` are over. */
void fake_host_run(struct fake_host *h, unsigned rounds);
/* The clock moves on by so many milliseconds, and timers that are due fire. */
void fake_host_wait(struct fake_host *h, uint32_t ms);
/* A thread that waits for an answer of `peer` reads `times` times; `between` runs
 * before each. */
void fake_host_poll(struct fake_host *h, tenrec_peer peer, unsigned times,
                    void (*between)(void *arg), void *arg);

#endif
