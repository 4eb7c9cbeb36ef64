/* rules.h - which messages a rule means, by torch's names. */
#ifndef FAULTY_RULES_H
#define FAULTY_RULES_H

#include <stdatomic.h>
#include <tenrec/plugin.h>

/* Message types as bits: 0x100 + i is bit i. All that can be named are there. */
typedef uint32_t rules_mask;

/* The bit of a type; 0 for one that no rule can name. */
static inline rules_mask rules_bit(int32_t type)
{
    return type >= 0x100 && type < 0x120 ? (rules_mask)1 << (type - 0x100) : 0;
}

struct rule {
    const char *name;
    rules_mask mask;
    uint32_t delay_ms; /* of a delay */
    atomic_ullong hits;
};

/* The names as `choices` of an option. */
#define RULES_CHOICES                                                                              \
    "CALL|REMOTE_CALL|RREF_FETCH_CALL|PYTHON_CALL|SCRIPT_CALL|PYTHON_REMOTE_CALL|"                 \
    "SCRIPT_REMOTE_CALL|PYTHON_RREF_FETCH_CALL|SCRIPT_RREF_FETCH_CALL|RREF_USER_DELETE|"           \
    "RREF_FORK_REQUEST|RREF_CHILD_ACCEPT|CLEANUP_AUTOGRAD_CONTEXT_REQ"

/* What `name` means; 0 when it is none. */
rules_mask rules_of(const char *name);

/* Why no message of this library is hit by `name`; NULL when some are. */
const char *rules_never(const char *name);

#endif
