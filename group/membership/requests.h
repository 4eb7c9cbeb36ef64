/* SPDX-License-Identifier: Apache-2.0 */
/* requests.h - the queue of changes of a group's list: workers that wait for its lock ask the
 * holder to do their changes with its own, in one view.
 *
 * A request stands beside the ticket of its worker (lease.h). A joiner that holds the lock gives
 * ids to all that ask to join, waits for their records and enters them with itself; any holder
 * removes the members that requests name. A request that the holder cannot serve is called: its
 * worker acquires the lock and finds out why. So a worker relies on no other: if the holder dies,
 * the next one finds the same requests, with the ids that were given. */
#ifndef TENREC_MEMBERSHIP_REQUESTS_H
#define TENREC_MEMBERSHIP_REQUESTS_H

#include "group/membership/lease.h"
#include "group/membership/member_record.h"

struct membership_list;
struct membership_view;

enum request_kind { REQUEST_JOIN = 1, REQUEST_REMOVE = 2 };

enum request_state {
    REQUEST_OPEN,
    REQUEST_RESERVED, /* the joiner has an id, and no record yet */
    REQUEST_READY,    /* its record is complete */
    REQUEST_REFUSED,  /* it is left to its worker */
};

struct request {
    int64_t ticket;
    enum request_kind kind;
    enum request_state state;
    tenrec_peer id; /* to remove; or the joiner's: wished, -1 for any, then reserved */
    int64_t incarnation;
    bool died;
    tenrec_peer by; /* the member that removes */
    int64_t by_incarnation;
    char name[TENREC_NAME_MAX + 1]; /* of a joiner: its pattern, then its name */
    struct member_place place;      /* of a joiner's process, with the next two */
    int64_t pid, start;
    struct member record; /* owns; of a joiner */
};

struct requests {
    struct request *list; /* owns; by ticket */
    size_t n, room;
    int64_t from, to; /* the tickets that were looked at */
};

/* ret->data is NULL when out of memory. */
void request_pack(const struct request *q, struct store_value *ret);
/* errors: EPROTOCOL */
tenrec_status request_unpack(const struct store_value *value, struct request *ret,
                             tenrec_error *err);

/* The answer to a joiner. errors: EPROTOCOL */
tenrec_status request_read_answer(const char *text, tenrec_peer wished, tenrec_peer *ret_id,
                                  int64_t *ret_incarnation, tenrec_error *err);

void request_write_answer(const struct request *q, char ret[LEASE_ANSWER]);

/* Keys of tickets, or of joiners, and what is under them. */
struct ticket_keys {
    char (*text)[LEASE_KEY];
    const char **key;
    struct store_value *value;
    size_t n;
};

/* errors: ENOMEM */
tenrec_status ticket_keys_init(struct ticket_keys *k, size_t most, tenrec_error *err);
void ticket_keys_finish(struct ticket_keys *k);
void ticket_keys_add(struct ticket_keys *k, const struct lease *l, int64_t ticket,
                     enum lease_word word);

void ticket_keys_set(struct ticket_keys *k, const struct lease *l, int64_t ticket,
                     enum lease_word word, const char *text);

/* All below need the lock of the list, `r`. */

/* An id that a holder has given. */
struct reservation {
    int64_t ticket;
    tenrec_peer id;
    int64_t incarnation;
};

struct reservations {
    struct reservation *list; /* owns; by ticket */
    size_t n, room;
    struct store_value raw; /* as it is stored */
};

/* A malformed list counts as empty. errors: ENOMEM, and the store's */
tenrec_status reservations_read(struct membership_list *r, uint64_t deadline_ns,
                                struct reservations *ret, tenrec_error *err);
const struct reservation *reservations_find(const struct reservations *s, int64_t ticket);
/* The ticket has none yet. errors: ENOMEM */
tenrec_status reservations_add(struct reservations *s, const struct reservation *one,
                               tenrec_error *err);
/* Stores the list, without the tickets before `from`, which are served. *ret_done is false when
 * another holder has changed it. */
tenrec_status reservations_replace(struct membership_list *r, struct reservations *s, int64_t from,
                                   uint64_t deadline_ns, bool *ret_done, tenrec_error *err);
void reservations_finish(struct reservations *s);

/* Reads the requests that have arrived. */
tenrec_status requests_load(struct membership_list *r, uint64_t deadline_ns, tenrec_error *err);

/* Gives ids to the joiners that have none. `reserved`: this worker has its own. */
tenrec_status requests_reserve(struct membership_list *r, uint64_t deadline_ns, bool *ret_some,
                               tenrec_error *err);

/* Waits for the records of these joiners until `until_ns`, and refuses the others. */
tenrec_status requests_await(struct membership_list *r, uint64_t until_ns, uint64_t deadline_ns,
                             tenrec_error *err);

/* Changes `v` as the requests say; its version stays. Returns the number of changes. */
size_t requests_remove(const struct requests *q, struct membership_view *v);
tenrec_status requests_enter(const struct requests *q, struct membership_view *v,
                             tenrec_error *err);

/* `v` is the list now: answers what was asked; with `joins` also joiners. The lock calls the next
 * worker then. */
void requests_finish(struct membership_list *r, const struct membership_view *v, bool joins,
                     uint64_t deadline_ns);

void requests_forget(struct requests *q);

#endif
