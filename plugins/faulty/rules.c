#include "rules.h"

#define BIT(type) ((rules_mask)1 << ((type)-0x100))

static const char script[] = "calls of this library are of the kind that torch numbers PYTHON_...";
static const char autograd[] = "this library has no autograd contexts";

/* The first three mean both members of their family, torch's own names their
 * number only. `never` says why a rule cannot hit what is sent from here. */
static const struct {
    const char *name;
    rules_mask mask;
    const char *never;
} names[] = {
    { "CALL", BIT(TENREC_MSG_CALL) | BIT(TENREC_MSG_SCRIPT_CALL), NULL },
    { "REMOTE_CALL", BIT(TENREC_MSG_REMOTE_CALL) | BIT(TENREC_MSG_SCRIPT_REMOTE_CALL), NULL },
    { "RREF_FETCH_CALL", BIT(TENREC_MSG_RREF_FETCH_CALL) | BIT(TENREC_MSG_SCRIPT_RREF_FETCH_CALL),
      NULL },
    { "PYTHON_CALL", BIT(TENREC_MSG_CALL), NULL },
    { "SCRIPT_CALL", BIT(TENREC_MSG_SCRIPT_CALL), script },
    { "PYTHON_REMOTE_CALL", BIT(TENREC_MSG_REMOTE_CALL), NULL },
    { "SCRIPT_REMOTE_CALL", BIT(TENREC_MSG_SCRIPT_REMOTE_CALL), script },
    { "PYTHON_RREF_FETCH_CALL", BIT(TENREC_MSG_RREF_FETCH_CALL), NULL },
    { "SCRIPT_RREF_FETCH_CALL", BIT(TENREC_MSG_SCRIPT_RREF_FETCH_CALL), script },
    { "RREF_USER_DELETE", BIT(TENREC_MSG_RREF_USER_DELETE), NULL },
    { "RREF_FORK_REQUEST", BIT(TENREC_MSG_RREF_FORK_REQUEST), NULL },
    { "RREF_CHILD_ACCEPT", BIT(TENREC_MSG_RREF_CHILD_ACCEPT), NULL },
    { "CLEANUP_AUTOGRAD_CONTEXT_REQ", BIT(TENREC_MSG_CLEANUP_AUTOGRAD_CONTEXT_REQ), autograd },
};
#define N_NAMES (sizeof names / sizeof names[0])

rules_mask rules_of(const char *name)
{
    for (size_t i = 0; i < N_NAMES; i++)
        if (strcmp(names[i].name, name) == 0)
            return names[i].mask;
    return 0;
}

const char *rules_never(const char *name)
{
    for (size_t i = 0; i < N_NAMES; i++)
        if (strcmp(names[i].name, name) == 0)
            return names[i].never;
    return NULL;
}
