/* store_answer.h - the inside of a session, for the two files that share it:
 * store_session.c runs it, store_answer.c knows what each request does. */
#ifndef TENREC_GROUP_STORE_ANSWER_H
#define TENREC_GROUP_STORE_ANSWER_H

#include "group/store_session.h"

enum store_session_state {
    STORE_READING,
    STORE_WAITING,    /* for keys: only CANCEL_WAIT is taken */
    STORE_IN_BARRIER, /* nothing is taken */
};

struct store_session {
    struct store_hub *hub;
    const struct store_session_ops *ops;
    void *arg;
    enum store_dialect dialect;
    enum store_session_state state;
    bool dead;
    struct bytes in, out;
    size_t need;              /* bytes in `in` before parsing makes sense */
    struct store_link *links; /* what it waits for and watches */
    size_t n_missing;         /* of them, those of the WAIT */
    bool ready;
    struct store_session *ready_prev, *ready_next;
};

/* Runs one request and adds its answer to s->out. */
void store_answer(struct store_session *s, const struct store_request *r);

/* Hangs the session on a key; NULL when the store is full. */
struct store_link *store_session_hang(struct store_session *s, struct store_entry *e,
                                      enum store_link_kind kind);
void store_session_unhang(struct store_session *s, struct store_link *link);
/* Lets go of all links but those of kind `keep` (-1: of none). */
void store_session_unhang_all(struct store_session *s, int keep);

/* Answers a session that waited, and lets it go on after the one that runs. */
void store_session_release(struct store_session *s);
/* Has it run, and so write, after the one that runs. */
void store_session_make_ready(struct store_session *s);
/* Sends what is answered already and closes. `why`: static. */
void store_session_kill(struct store_session *s, const char *why);

#endif
