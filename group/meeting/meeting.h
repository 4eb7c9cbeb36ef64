/* SPDX-License-Identifier: Apache-2.0 */
/* meeting.h - where workers meet: from `init_method` and the environment to a rank, a world size
 * and a store that all members share. A group without a world size is dynamic: it has a membership
 * list and no generation. */
#ifndef TENREC_MEETING_MEETING_H
#define TENREC_MEETING_MEETING_H

#include "core/base/loop.h"
#include "group/meeting/launch.h"
#include "group/meeting/process_group.h"
#include "group/membership/generation.h"
#include "group/membership/member_record.h"
#include "group/membership/membership.h"
#include "group/store/store.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <tenrec/error.h>

struct chain_addition;
struct config_settings;
struct security;
struct tenrec_chain_options;

/* The address that this machine advertises to a group: the one from which it
 * reaches the group's store.
 *
 * The machine's host name is not used: it often resolves to 127.0.1.1, or to an address that other
 * hosts cannot reach. */

#define ADVERTISE_ADDRESS_MAX (INET6_ADDRSTRLEN + 16)

/* Writes the address of this machine towards `host`, the host of the store; when that is this
 * machine, the first address that is not loopback. "" when the group is on this host alone (the
 * store is at a loopback address, or `host` is ""), or no address is found. Sends no packet but
 * those of the name lookup. */
void advertise_address_find(const char *host, uint16_t port, uint64_t deadline_ns,
                            char ret[ADVERTISE_ADDRESS_MAX]);

/* Returns true for "localhost", 127.x.y.z and ::1, as written. */
int advertise_address_is_loopback(const char *host);

/* The warning about a worker that any process of other hosts can call. */

/* Returns true if an address that a backend advertises ("uv://10.1.0.1:4000") names an IP address
 * other than loopback. */
bool exposure_is_beyond_loopback(const char *address);

/* Logs one line in the life of the process if the worker listens beyond loopback in mode none, and
 * the configuration does not name that mode. */
void exposure_warn(const struct security *s, const char *worker, const char *address);

/* A group's store, and this process in the group. */

struct rendezvous_options {
    const char *init_method; /* env://, tcp://host:port, file://path, memory://name, or a scheme of
                                a plugin; all but the first may carry ?rank=R&world_size=W */
    const char *group;       /* name of the group */
    int32_t rank;            /* -1: from init_method or the environment */
    int32_t world;           /* 0 or -1: likewise */
    struct stores *stores;   /* for schemes of plugins; borrowed during the call; NULL: those
                                that TENREC_CONFIG and the environment name */
    const char *name;        /* of a worker in a dynamic group; "{rank}" becomes its id */
    uint64_t lease_ms;       /* of a dynamic group's lock */
    bool store_only;         /* opens the store of a dynamic group, and enters no group */
    struct loop *loop;       /* for a store that rank 0 serves; borrowed until the
                                close; NULL: a loop of its own */
    struct security *security; /* of a TCP store's clients, and of the server of rank 0; shared
                                  (counted); NULL: none */
};

/* From the settings of `worker:` and the additions (borrowed) in the options of a chain. */
struct rendezvous_options rendezvous_options_of(const struct tenrec_chain_options *o);

struct rendezvous {
    struct launch launch;                    /* rank, world, local ones, source, run */
    struct tenrec_store *store;              /* owns; the whole store */
    struct tenrec_store_server *server;      /* owns; rank 0 when it serves */
    bool member_serves;                      /* the store ends with rank 0 */
    char own_address[ADVERTISE_ADDRESS_MAX]; /* our address for the others; "" if unknown */
    bool visitor;                            /* from outside: writes nothing */
    bool dynamic;
    struct group_lost lost;             /* set by the user; is_lost NULL: not checked */
    struct generation generation;       /* of a static group; generation.store is its part */
    struct membership_list member_list; /* of a dynamic group: id and name are reserved */
};

/* errors: EINVAL (names the setting), EGROUP (rank is taken), ECONNECT, EOS (cannot serve),
 * ETIMEDOUT, EPERM and the store's; prefixed with the init_method */
tenrec_status rendezvous_open(const struct rendezvous_options *o, uint64_t deadline_ns,
                              struct rendezvous **ret, tenrec_error *err);

/* Checks the syntax of `init_method`; opens nothing. errors: EINVAL, ENOMEM, without passwords */
tenrec_status rendezvous_check(const char *init_method, tenrec_error *err);

/* The same for `worker.init_method` of a configuration. errors: ECONFIG with the position, ENOMEM
 */
tenrec_status rendezvous_check_settings(const struct config_settings *s, tenrec_error *err);

/* This check in the options of a chain. */
extern const struct chain_addition rendezvous_addition;

/* As rendezvous_open, for a visitor (generation_visit). Ignores `rank` and `world`, serves no store
 * and makes no file. */
tenrec_status rendezvous_visit(const struct rendezvous_options *o, uint64_t deadline_ns,
                               struct rendezvous **ret, tenrec_error *err);

/* Leaves the group. A rank 0 that serves the store waits for the last keys of the other ranks, lost
 * members aside; these wait until rank 0 has stopped listening, so that a next start does not find
 * the old store. All until the deadline. NULL is allowed. */
void rendezvous_close(struct rendezvous *r, uint64_t deadline_ns);

/* The workers of a static group: each publishes itself, waits for all and checks that they belong
 * together. */

struct members {
    int32_t n;
    struct record_texts *texts;   /* owns; of those that own none */
    struct tenrec_member *member; /* owns; of a static group, by rank; NULL once they were taken */
    struct member *list;          /* owns; all of their records; NULL: `member` says it all */
};

/* Blocks of texts, to which records point. */
struct record_texts;
void record_texts_drop(struct record_texts *t); /* NULL is fine */

/* Joins under `name`, with the `address` of the agent; other members get `extra` (may be NULL).
 * Blocks until the records of all ranks were read. After success the generation ends as left; also
 * when the members disagree, as all of them then start again.
 *
 * errors: EINVAL (name, address), EGROUP (names the member that disagrees or shares a name),
 * ETIMEDOUT (names the missing ranks), and the store's */
tenrec_status members_join(struct generation *m, const char *name, const char *address,
                           const struct store_value *extra, uint64_t deadline_ns,
                           struct members **ret, tenrec_error *err);

/* Waits for the records of all, as a visitor (generation_visit).
 *
 * errors: EGROUP, ETIMEDOUT (names the missing ranks), and the store's */
tenrec_status members_await(struct generation *m, uint64_t deadline_ns, struct members **ret,
                            tenrec_error *err);
void members_drop(struct members *members);

#endif
