/* SPDX-License-Identifier: Apache-2.0 */
/* options.h - the options of a faulty agent (their table is in plugin.c). */
#ifndef FAULTY_OPTIONS_H
#define FAULTY_OPTIONS_H

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

#endif
