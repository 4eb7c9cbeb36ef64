/* SPDX-License-Identifier: Apache-2.0 */
/* secret_handover.h - the way of a secret from a launcher to the workers of its run.
 *
 * A worker inherits the descriptor of a sealed memfd (TENREC_SECRET_FD). A program that has closed
 * it, and other processes of the launcher's user, ask the launcher at a Unix socket in the abstract
 * namespace (TENREC_SECRET_SOCKET), which answers processes of its own user alone (SO_PEERCRED).
 * Both variables name places, not secrets. Another shell, which has no variables, derives the name
 * of the socket from the address of the run's store. */
#ifndef TENREC_SECRET_SECRET_HANDOVER_H
#define TENREC_SECRET_SECRET_HANDOVER_H

#include "security/secret/secret.h"

#define SECRET_FD_VARIABLE "TENREC_SECRET_FD"
#define SECRET_SOCKET_VARIABLE "TENREC_SECRET_SOCKET"
#define SECRET_FILE_VARIABLE "TENREC_SECRET_FILE"

/* ---- the launcher's side --------------------------------------------------- */

/* Makes a sealed memfd that holds the secret, without FD_CLOEXEC. errors: EOS */
tenrec_status secret_memfd_new(const struct secret *s, int *ret_fd, tenrec_error *err);

struct secret_giver; /* a listening socket; owns no thread */

#define SECRET_NAME_MAX 108 /* bytes of a socket's name, with its NUL */

/* The name for the launcher of this user that serves a store at `host`:`port`. */
void secret_giver_derive(const char *host, uint16_t port, char ret[SECRET_NAME_MAX]);

/* Listens at an abstract name; NULL: a random one.
 * errors: EEXIST (another process has the name), EOS, ENOMEM */
tenrec_status secret_giver_open(struct secret *s, const char *name, struct secret_giver **ret,
                                tenrec_error *err);
void secret_giver_close(struct secret_giver *g);             /* NULL is fine */
int secret_giver_fd(const struct secret_giver *g);           /* readable: call secret_giver_serve */
const char *secret_giver_name(const struct secret_giver *g); /* for SECRET_SOCKET_VARIABLE */
/* Answers all waiting processes: those of this user get the secret, others nothing. Never blocks.
 */
void secret_giver_serve(struct secret_giver *g);

/* ---- the worker's side ----------------------------------------------------- */

/* Reads the secret that the environment announces: of the descriptor, else of the socket, else of
 * the file, and marks the descriptor as close-on-exec. *ret is NULL and the status OK if none is
 * announced. An announced secret that cannot be had is an error, which names the variable: ECONFIG,
 * ETIMEDOUT (the socket, after `ms`), ENOMEM. ret_source: "the launcher", "TENREC_SECRET_FILE";
 * static */
tenrec_status secret_inherit(uint32_t ms, struct secret **ret, const char **ret_source,
                             tenrec_error *err);

/* Asks the giver at `name`. errors: ECONNECT (no process listens there), ECONFIG (the giver is
 * another user's, or refuses us), ETIMEDOUT, ENOMEM */
tenrec_status secret_ask(const char *name, uint32_t ms, struct secret **ret, tenrec_error *err);

#endif
