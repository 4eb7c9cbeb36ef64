/* SPDX-License-Identifier: Apache-2.0 */
/* http.h - requests of HTTP with bodies of JSON, by libcurl. */
#ifndef STORE_HTTP_H
#define STORE_HTTP_H

#include <jansson.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tenrec/error.h>

#define HTTP_HANDLES_MAX 4 /* idle ones that are kept, each with its connections */

/* The result of a request, by whether a retry may help. */
enum http_end {
    HTTP_OK,
    HTTP_AGAIN, /* this endpoint has failed */
    HTTP_LATE,  /* the deadline expired */
    HTTP_NEVER, /* a retry cannot help */
};

/* Receives a line of an answer with status 200 that goes on; borrows it. False ends the request,
 * with HTTP_OK. */
typedef bool http_line_fn(void *arg, const json_t *line);

/* Borrows all. */
struct http_request {
    const char *method; /* NULL: POST, or GET without a body */
    const char *url;
    const char *body;          /* NULL: none */
    const char *type;          /* of the body; NULL: JSON */
    const char *authorization; /* a whole header; NULL or "": none */
    http_line_fn *fn;          /* NULL: the answer is one object */
    void *arg;
};

struct http;

/* The handles of one store. Zeroed before http_pool_init. */
struct http_pool {
    const char *server;                         /* in texts of errors: "etcd" */
    const char *ca_file, *cert_file, *key_file; /* of TLS; "": none */
    char address[80];                           /* of the server that answered first, or "" */
    pthread_mutex_t lock;                       /* guards the rest */
    struct http *idle[HTTP_HANDLES_MAX];
    size_t n_idle;
};

void http_pool_init(struct http_pool *s);
void http_pool_finish(struct http_pool *s); /* no request is under way */

/* ret       the status of HTTP: an answer that is an error is HTTP_OK here
 * ret_body  the answer, NULL if it is no JSON; NULL where `fn` had it; owned by the caller
 * ret_sent  the server may have received the request once more than it answered */
enum http_end http_ask(struct http_pool *s, const struct http_request *r, uint64_t deadline_ns,
                       long *ret, json_t **ret_body, bool *ret_sent, tenrec_error *err);

/* Copies a text from the network as one line of printed characters. */
void http_line(const char *from, size_t room, char *ret);

#endif
