/* SPDX-License-Identifier: Apache-2.0 */
/* kinds.h - message types and their names in rules. */
#ifndef FAULTY_KINDS_H
#define FAULTY_KINDS_H

#include <stdint.h>
#include <tenrec/plugin.h>

/* A set of message types: a bit for each named type, and one each for other
 * requests, other responses, and the rest. */
typedef uint64_t kinds_mask;

/* The bit of a type; never 0. */
kinds_mask kinds_bit(int32_t type);

/* The types that `name` means; 0 for an unknown name. */
kinds_mask kinds_of(const char *name);

/* The types that `names` mean together; without names all but barriers and
 * gathers. */
kinds_mask kinds_of_all(const struct tenrec_option_list *names);

/* Why this library sends no message of type `name`; NULL if it sends some. */
const char *kinds_never(const char *name);

/* "CALL", "0x1ab"; returns `buf`. */
#define KINDS_TEXT_MAX 32
const char *kinds_text(int32_t type, char buf[KINDS_TEXT_MAX]);

/* The names as `choices` of an option: those of torch's options ... */
#define KINDS_TORCH                                                                                \
    "CALL|REMOTE_CALL|RREF_FETCH_CALL|PYTHON_CALL|SCRIPT_CALL|PYTHON_REMOTE_CALL|"                 \
    "SCRIPT_REMOTE_CALL|PYTHON_RREF_FETCH_CALL|SCRIPT_RREF_FETCH_CALL|RREF_USER_DELETE|"           \
    "RREF_FORK_REQUEST|RREF_CHILD_ACCEPT|CLEANUP_AUTOGRAD_CONTEXT_REQ"

/* ... and all. */
#define KINDS_ALL                                                                                  \
    KINDS_TORCH                                                                                    \
    "|REQUEST|RESPONSE|RET|PYTHON_RET|SCRIPT_RET|REMOTE_RET|RREF_FETCH_RET|"                       \
    "PYTHON_RREF_FETCH_RET|SCRIPT_RREF_FETCH_RET|RREF_ACK|EXCEPTION|ONE_WAY_CALL|CANCEL|GATHER|"   \
    "GATHER_RET|FORWARD_AUTOGRAD_REQ|FORWARD_AUTOGRAD_RESP|BACKWARD_AUTOGRAD_REQ|"                 \
    "BACKWARD_AUTOGRAD_RESP|CLEANUP_AUTOGRAD_CONTEXT_RESP|RUN_WITH_PROFILING_REQ|"                 \
    "RUN_WITH_PROFILING_RESP|RREF_BACKWARD_REQ|RREF_BACKWARD_RESP"

#endif
