/* SPDX-License-Identifier: Apache-2.0 */
/* datagram.h - an agent, and the other ends that it talks to. */
#ifndef DATAGRAM_DATAGRAM_H
#define DATAGRAM_DATAGRAM_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <tenrec/plugin.h>

enum { REQUESTS, ANSWERS, N_SOCKETS };
/* The "@" says that the socket has an abstract name of this host: other hosts cannot reach it. */
#define ADDRESS_PREFIX "datagram://@"

enum { NAME_LEN = 32, CHUNK = 60000, LINKS_MAX = 4096 };

struct datagram_options {
    uint64_t max_message, max_queued_bytes;
};

/* In front of each datagram; of one host, so in its byte order. All zero but `link`: a question
 * whether the receiver is still there. */
struct head {
    uint64_t link;          /* of the sender; not 0 */
    uint64_t total, offset; /* bytes of the message, and of it before this datagram */
};

struct outgoing {
    struct outgoing *next;
    struct tenrec_done done;
    uint64_t total, sent;
    unsigned char bytes[];
};

/* The other end: a worker that is called (`peer`), or a caller that is answered. */
struct link {
    struct link *next;
    char name[NAME_LEN + 1]; /* of its sockets */
    bool called;
    tenrec_peer peer; /* called */
    uint64_t number;  /* ours when called, else the caller's */
    uint64_t serial;  /* for routes */
    bool used;        /* a message went this way */
    struct outgoing *first, **last;
    unsigned char *in; /* the message that arrives; owns */
    uint64_t in_len, in_room;
};

struct member {
    tenrec_peer id;
    bool here;
    char name[NAME_LEN + 1];
};

struct datagram {
    struct tenrec_agent *self;
    const struct datagram_options *opt;
    tenrec_peer me;
    char address[sizeof ADDRESS_PREFIX + NAME_LEN];
    int fd[N_SOCKETS], wake_fd;
    bool serving;
    pthread_t thread;
    atomic_bool stopping;

    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t idle;
    struct member *member;
    size_t n_members;
    struct link *links; /* their `in` is the thread's */
    uint64_t serials, n_links, queued_bytes, n_queued;
};

/* ---- link.c; with the lock unless they say otherwise ---- */

/* The member of that id; NULL: none. */
struct member *member_find(struct datagram *d, tenrec_peer id);
/* The member whose sockets have this name; TENREC_ANONYMOUS: none. */
tenrec_peer member_named(const struct datagram *d, const char *name);
/* Takes the lock. errors: ENOMEM */
tenrec_status member_add(struct datagram *d, const struct tenrec_member *member);

/* NULL: no such member, or no room. */
struct link *link_to_peer(struct datagram *d, tenrec_peer to);
/* NULL: it has ended. */
struct link *link_by_route(struct datagram *d, struct tenrec_route route);
/* That of an answer is ours; a caller that is new gets one. NULL: none. Takes the lock. */
struct link *link_of_datagram(struct datagram *d, int which, const char *name,
                              const struct head *head);
/* The link behind `l`, or the first; the thread alone removes links. Takes the lock. */
struct link *link_after(struct datagram *d, const struct link *l);
/* Ends a link whose other end is gone (`number`: an errno), or as the worker shuts down (0), and
 * all that waits there. Without the lock, on the thread. */
void link_end(struct datagram *d, struct link *l, tenrec_status code, int number);

/* ---- send.c ---- */

socklen_t address_of(const char *name, int which, struct sockaddr_un *ret);
void datagram_send(struct tenrec_agent *self, tenrec_peer to, struct tenrec_msg *msg,
                   struct tenrec_done done);
/* The thread's: sends what the kernel takes; returns true if it takes no more. */
bool send_all(struct datagram *d);
/* Finds out which other ends are gone. */
void send_questions(struct datagram *d);
/* Completes a message, and frees it; without the lock. */
void outgoing_end(struct datagram *d, struct outgoing *o, const tenrec_error *why);

/* ---- receive.c ---- */

/* Returns false if the queue is empty. */
bool receive_one(struct datagram *d, int which);

#endif
