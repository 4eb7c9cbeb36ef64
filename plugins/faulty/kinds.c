/* SPDX-License-Identifier: Apache-2.0 */
#include "options.h"

#define SCRIPT_RET 0x201 /* torch's number; this library never sends it */

#define OTHER_REQUEST ((kinds_mask)1 << 61)
#define OTHER_RESPONSE ((kinds_mask)1 << 62)
#define OTHER ((kinds_mask)1 << 63)

static const char script[] = "calls of this library have torch's PYTHON_... types";
static const char autograd[] = "this library has no autograd contexts";
static const char profiling[] = "this library profiles without extra messages";

/* Logs show the first name of a type, whose place in the table is that of the type's bit. A family
 * name (CALL) means both types, torch's own name only its type. `never` says why this library
 * sends no such message. */
static const struct {
    const char *name;
    int32_t type[2];
    const char *never;
} names[] = {
    { "CALL", { TENREC_MSG_CALL, TENREC_MSG_SCRIPT_CALL }, NULL },
    { "REMOTE_CALL", { TENREC_MSG_REMOTE_CALL, TENREC_MSG_SCRIPT_REMOTE_CALL }, NULL },
    { "RREF_FETCH_CALL", { TENREC_MSG_RREF_FETCH_CALL, TENREC_MSG_SCRIPT_RREF_FETCH_CALL }, NULL },
    { "RET", { TENREC_MSG_RET, SCRIPT_RET }, NULL },
    { "RREF_FETCH_RET", { TENREC_MSG_RREF_FETCH_RET, TENREC_MSG_SCRIPT_RREF_FETCH_RET }, NULL },
    { "PYTHON_CALL", { TENREC_MSG_CALL }, NULL },
    { "SCRIPT_CALL", { TENREC_MSG_SCRIPT_CALL }, script },
    { "PYTHON_REMOTE_CALL", { TENREC_MSG_REMOTE_CALL }, NULL },
    { "SCRIPT_REMOTE_CALL", { TENREC_MSG_SCRIPT_REMOTE_CALL }, script },
    { "PYTHON_RREF_FETCH_CALL", { TENREC_MSG_RREF_FETCH_CALL }, NULL },
    { "SCRIPT_RREF_FETCH_CALL", { TENREC_MSG_SCRIPT_RREF_FETCH_CALL }, script },
    { "PYTHON_RET", { TENREC_MSG_RET }, NULL },
    { "SCRIPT_RET", { SCRIPT_RET }, script },
    { "REMOTE_RET", { TENREC_MSG_REMOTE_RET }, NULL },
    { "PYTHON_RREF_FETCH_RET", { TENREC_MSG_RREF_FETCH_RET }, NULL },
    { "SCRIPT_RREF_FETCH_RET", { TENREC_MSG_SCRIPT_RREF_FETCH_RET }, script },
    { "RREF_USER_DELETE", { TENREC_MSG_RREF_USER_DELETE }, NULL },
    { "RREF_FORK_REQUEST", { TENREC_MSG_RREF_FORK_REQUEST }, NULL },
    { "RREF_CHILD_ACCEPT", { TENREC_MSG_RREF_CHILD_ACCEPT }, NULL },
    { "RREF_ACK", { TENREC_MSG_RREF_ACK }, NULL },
    { "EXCEPTION", { TENREC_MSG_EXCEPTION }, NULL },
    { "ONE_WAY_CALL", { TENREC_MSG_ONE_WAY_CALL }, NULL },
    { "CANCEL", { TENREC_MSG_CANCEL }, NULL },
    { "GATHER", { TENREC_MSG_GATHER }, NULL },
    { "GATHER_RET", { TENREC_MSG_GATHER_RET }, NULL },
    { "BULK_READ", { TENREC_MSG_BULK_READ }, NULL },
    { "BULK_WRITE", { TENREC_MSG_BULK_WRITE }, NULL },
    { "BULK_READ_RET", { TENREC_MSG_BULK_READ_RET }, NULL },
    { "BULK_WRITE_RET", { TENREC_MSG_BULK_WRITE_RET }, NULL },
    { "BULK_DONE", { TENREC_MSG_BULK_READ_RET, TENREC_MSG_BULK_WRITE_RET }, NULL },
    { "CLEANUP_AUTOGRAD_CONTEXT_REQ", { TENREC_MSG_CLEANUP_AUTOGRAD_CONTEXT_REQ }, autograd },
    { "CLEANUP_AUTOGRAD_CONTEXT_RESP", { TENREC_MSG_CLEANUP_AUTOGRAD_CONTEXT_RESP }, autograd },
    { "FORWARD_AUTOGRAD_REQ", { TENREC_MSG_FORWARD_AUTOGRAD_REQ }, autograd },
    { "FORWARD_AUTOGRAD_RESP", { TENREC_MSG_FORWARD_AUTOGRAD_RESP }, autograd },
    { "BACKWARD_AUTOGRAD_REQ", { TENREC_MSG_BACKWARD_AUTOGRAD_REQ }, autograd },
    { "BACKWARD_AUTOGRAD_RESP", { TENREC_MSG_BACKWARD_AUTOGRAD_RESP }, autograd },
    { "RREF_BACKWARD_REQ", { TENREC_MSG_RREF_BACKWARD_REQ }, autograd },
    { "RREF_BACKWARD_RESP", { TENREC_MSG_RREF_BACKWARD_RESP }, autograd },
    { "RUN_WITH_PROFILING_REQ", { TENREC_MSG_RUN_WITH_PROFILING_REQ }, profiling },
    { "RUN_WITH_PROFILING_RESP", { TENREC_MSG_RUN_WITH_PROFILING_RESP }, profiling },
};
#define N_NAMES (sizeof names / sizeof names[0])

kinds_mask kinds_bit(int32_t type)
{
    for (size_t i = 0; i < N_NAMES; i++)
        if (names[i].type[0] == type)
            return (kinds_mask)1 << i;
    if (type & TENREC_MSG_REQUEST_BIT)
        return OTHER_REQUEST;
    return type & TENREC_MSG_RESPONSE_BIT ? OTHER_RESPONSE : OTHER;
}

/* All types with this bit except barriers and gathers, which a rule has to name. */
static kinds_mask kinds_group(int32_t bit, kinds_mask other)
{
    kinds_mask mask = other;

    for (size_t i = 0; i < N_NAMES; i++)
        if ((names[i].type[0] & bit) && names[i].type[0] != TENREC_MSG_GATHER &&
            names[i].type[0] != TENREC_MSG_GATHER_RET)
            mask |= (kinds_mask)1 << i;
    return mask;
}

kinds_mask kinds_of(const char *name)
{
    if (strcmp(name, "REQUEST") == 0)
        return kinds_group(TENREC_MSG_REQUEST_BIT, OTHER_REQUEST);
    if (strcmp(name, "RESPONSE") == 0)
        return kinds_group(TENREC_MSG_RESPONSE_BIT, OTHER_RESPONSE);
    for (size_t i = 0; i < N_NAMES; i++)
        if (strcmp(names[i].name, name) == 0)
            return kinds_bit(names[i].type[0]) |
                   (names[i].type[1] ? kinds_bit(names[i].type[1]) : 0);
    return 0;
}

kinds_mask kinds_of_all(const struct tenrec_option_list *list)
{
    kinds_mask mask = 0;

    for (size_t i = 0; i < list->n; i++)
        mask |= kinds_of(list->v[i].s);
    return list->n ? mask : kinds_of("REQUEST") | kinds_of("RESPONSE") | OTHER;
}

const char *kinds_never(const char *name)
{
    for (size_t i = 0; i < N_NAMES; i++)
        if (strcmp(names[i].name, name) == 0)
            return names[i].never;
    return NULL;
}

const char *kinds_text(int32_t type, char buf[KINDS_TEXT_MAX])
{
    for (size_t i = 0; i < N_NAMES; i++)
        if (names[i].type[0] == type) {
            snprintf(buf, KINDS_TEXT_MAX, "%s", names[i].name);
            return buf;
        }
    snprintf(buf, KINDS_TEXT_MAX, "0x%x", (unsigned)type);
    return buf;
}
