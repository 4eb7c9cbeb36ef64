/* SPDX-License-Identifier: Apache-2.0 */
/* prometheus.h - the parts of the observer that prometheus.c joins. */
#ifndef PROMETHEUS_PROMETHEUS_H
#define PROMETHEUS_PROMETHEUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <tenrec/error.h>
#include <tenrec/observer_plugin.h>

/* text.c: the metrics of this process in Prometheus' text format 0.0.4. */

struct text_options {
    int64_t bucket_step; /* a bucket for each n-th power of two */
    bool server_address; /* durations apart by the called worker */
};

/* ret      a text with a NUL behind its `len` bytes, freed by the caller
 * errors   ENOMEM */
tenrec_status text_make(struct tenrec_observer *self, const struct text_options *o, char **ret,
                        size_t *ret_len, tenrec_error *err);

/* address.c: "127.0.0.1:9464", "[::1]:9464", "localhost:9464" or "unix:/run/tenrec.sock", and a
 * socket that listens there. */

struct address {
    union {
        struct sockaddr any;
        struct sockaddr_storage storage;
        struct sockaddr_un local;
    } u;
    socklen_t len;
    bool beyond; /* other hosts can connect */
};

/* errors: EINVAL */
tenrec_status address_parse(const char *text, struct address *ret, tenrec_error *err);

/* Replaces a Unix socket of this user that no process listens on any more.
 *
 * ret      a socket that the caller closes
 * errors   EOS */
tenrec_status address_listen(const struct address *a, int *ret, tenrec_error *err);

/* neighbours.c: the folder in which the processes of a user that share an address find each other:
 * a lock, which the serving process holds, and a socket per process. */

struct neighbours {
    char folder[TENREC_PRIVATE_FOLDER_MAX + sizeof "/tenrec-metrics-0123456789abcdef"];
    int lock;               /* of the file, which is held or not */
    struct sockaddr_un own; /* this process's socket */
};

/* Makes what is missing.
 *
 * within   the folder of this user
 * errors   EOS */
tenrec_status neighbours_open(struct neighbours *n, const char *within, const char *address,
                              tenrec_error *err);
void neighbours_close(struct neighbours *n);

/* Returns true if this process holds the lock, which ends with the process. */
bool neighbours_lock(const struct neighbours *n);
void neighbours_unlock(const struct neighbours *n);

/* Calls `fn` with the socket of each other process. */
void neighbours_each(const struct neighbours *n,
                     void (*fn)(void *arg, const struct sockaddr_un *at), void *arg);

/* share.c: the socket at which a process gives its text to the serving one. */

/* ret      a socket that the caller closes
 * errors   EOS */
tenrec_status share_listen(const struct sockaddr_un *at, int *ret, tenrec_error *err);

/* Accepts one connection of this user, writes the text, and closes it. May block for a second. */
void share_answer(struct tenrec_observer *self, const struct text_options *o, int listener);

/* merge.c: joins the texts of several processes: the format wants all lines of a metric together.
 */

struct merge_text {
    char *data; /* owns */
    size_t len;
};

/* Writes the metrics of `n` texts, each of which begins a metric by "# HELP NAME ". A text that
 * begins otherwise is left out. Returns the number of those, or -1 without memory. */
int merge_texts(const struct merge_text *text, size_t n, FILE *to);

/* gather.c: reads the texts of the neighbours at once, within one deadline. */

struct gather {
    struct merge_text *text; /* owns, and each text */
    size_t n;
    unsigned missing; /* processes that did not answer in full before the deadline */
};

/* Removes the sockets of processes that have ended. Returns false without memory; gather_finish is
 * due all the same. */
bool gather_texts(const struct neighbours *from, uint32_t timeout_ms, struct gather *ret);
void gather_finish(struct gather *g);

/* endpoint.c: the HTTP server: GET /metrics. */

struct MHD_Daemon;

/* Makes the answer, on the server's thread.
 *
 * ret      malloced; the server frees it
 * errors   ENOMEM */
typedef tenrec_status endpoint_text_fn(void *arg, char **ret, size_t *ret_len, tenrec_error *err);

struct endpoint {
    endpoint_text_fn *fn;
    void *arg;
    struct MHD_Daemon *daemon; /* NULL: not started */
};

/* listener   taken on success; `fn` and `arg` are set
 * errors     EOS */
tenrec_status endpoint_start(struct endpoint *e, int listener, tenrec_error *err);
void endpoint_stop(struct endpoint *e); /* also if not started */

#endif
