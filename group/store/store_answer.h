/* SPDX-License-Identifier: Apache-2.0 */
/* store_answer.h - the inside of a session, for the two files that share it: store_session.c runs a
 * session, store_answer.c executes requests. */
#ifndef TENREC_STORE_STORE_ANSWER_H
#define TENREC_STORE_STORE_ANSWER_H

#include "group/store/store_request.h"
#include "group/store/store_session.h"

enum store_session_state {
    STORE_READING,
    STORE_WAITING, /* for keys or in a barrier: only CANCEL_WAIT is accepted */
};

struct store_session {
    struct store_hub *hub;
    const struct store_session_ops *ops;
    void *arg;
    enum store_dialect dialect;
    enum store_session_state state;
    bool dead;
    bool spoke; /* a whole request was received */
    struct bytes in, out;
    struct store_parser parser;
    size_t need;         /* bytes in `in` that the parser waits for */
    size_t n_answered;   /* of the list of a MULTI_GET that is being answered; LIST_KEYS: buckets */
    size_t answered_len; /* and their bytes in the list */
    uint64_t n_changes;  /* of the table when a LIST_KEYS began */
    uint64_t begun_ns;   /* when the incomplete request began; 0: no such request */
    size_t unread, held; /* bytes, counted in the hub's */
    struct store_session *prev, *next;
    struct store_link *links; /* the keys that it waits for and watches */
    size_t n_missing;         /* of them, those of the WAIT */
    bool ready;
    struct store_session *ready_prev, *ready_next;
};

/* Runs one request and adds its answer to s->out. Returns false when the peer does not
 * read its answers and the request must continue later. */
bool store_answer(struct store_session *s, const struct store_request *r);

/* Hangs the session on a key, once for each kind. Returns false when the store is full. */
bool store_session_hang(struct store_session *s, struct store_entry *e, enum store_link_kind kind);
void store_session_unhang(struct store_session *s, struct store_link *link);
/* Drops all links but those of kind `keep` (-1: all). */
void store_session_unhang_all(struct store_session *s, int keep);

/* Answers a waiting session, and queues it behind the running one. */
void store_session_release(struct store_session *s);
/* Queues a session, which then writes, behind the running one. */
void store_session_make_ready(struct store_session *s);
/* Sends the bytes in `out`, when they are many. */
void store_session_flush_much(struct store_session *s);
/* Sends pending answers and closes. `why`: static. */
void store_session_kill(struct store_session *s, const char *why);

#endif
