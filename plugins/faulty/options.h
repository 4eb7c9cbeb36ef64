/* SPDX-License-Identifier: Apache-2.0 */
/* options.h - the options of a faulty agent (their table is in plugin.c). */
#ifndef FAULTY_OPTIONS_H
#define FAULTY_OPTIONS_H

#include <stdint.h>
#include <tenrec/plugin.h>

struct faulty_rule_options {
    const char *name; /* "" when not set */
    const char *what; /* one of OPTIONS_ACTIONS; NULL when not set */
    struct tenrec_option_list on;
    struct tenrec_option_list to;
    struct tenrec_option_list from; /* of names and ranks, or "*" */
    double probability;
    int64_t after_messages;
    uint64_t after_ms;
    int64_t times; /* 0: no limit */
    const char *count_by;
    uint64_t by_ms;
    uint64_t bytes_per_second; /* 0: not set */
};

struct faulty_options {
    struct tenrec_option_list messages_to_fail; /* of names */
    int64_t num_fail_sends;
    struct tenrec_option_map messages_to_delay; /* from names to durations */
    const char *count_by;
    const char *past_deadline; /* "send" or "drop" */
    int64_t seed;              /* 0: a random seed */
    struct tenrec_option_records rules;
};

#define OPTIONS_ACTIONS "fail|fail_in_flight|drop|duplicate|delay|reorder|corrupt|disconnect|slow"

/* Rule `i` of the list. */
static inline const struct faulty_rule_options *options_rule(const struct faulty_options *o,
                                                             size_t i)
{
    return (const struct faulty_rule_options *)o->rules.v + i;
}

/* The label of rule `i` in the log and debug info: its name, or "rule2". */
#define OPTIONS_LABEL_MAX 48
static inline const char *options_label(const struct faulty_options *o, size_t i,
                                        char buf[OPTIONS_LABEL_MAX])
{
    const char *name = options_rule(o, i)->name;

    if (*name)
        snprintf(buf, OPTIONS_LABEL_MAX, "%s", name);
    else
        snprintf(buf, OPTIONS_LABEL_MAX, "rule%zu", i + 1);
    return buf;
}

/* kinds.c: message types and their names in rules. */

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
    "GATHER_RET|BULK_READ|BULK_WRITE|BULK_READ_RET|BULK_WRITE_RET|BULK_DONE|FORWARD_AUTOGRAD_REQ|" \
    "FORWARD_AUTOGRAD_RESP|BACKWARD_AUTOGRAD_REQ|"                                                 \
    "BACKWARD_AUTOGRAD_RESP|CLEANUP_AUTOGRAD_CONTEXT_RESP|RUN_WITH_PROFILING_REQ|"                 \
    "RUN_WITH_PROFILING_RESP|RREF_BACKWARD_REQ|RREF_BACKWARD_RESP"

#endif
