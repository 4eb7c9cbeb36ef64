/* SPDX-License-Identifier: Apache-2.0 */
/* address.h - "127.0.0.1:9464", "[::1]:9464", "localhost:9464" or "unix:/run/tenrec.sock", and a
 * socket that listens there. */
#ifndef PROMETHEUS_ADDRESS_H
#define PROMETHEUS_ADDRESS_H

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <tenrec/error.h>

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

#endif
