/* SPDX-License-Identifier: Apache-2.0 */
/* plugin.c - the option tables of faulty, and the checks that span options. */
#include "options.h"
#include "rule.h"

#define RULE_AT(field) offsetof(struct faulty_rule_options, field)
static const struct tenrec_option rule_options[] = {
    { .key = "do",
      .type = TENREC_OPT_STRING,
      .offset = RULE_AT(what),
      .choices = OPTIONS_ACTIONS,
      .help = "The fault that a hit message suffers." },
    { .key = "name",
      .type = TENREC_OPT_STRING,
      .offset = RULE_AT(name),
      .def = "",
      .help = "Label of the rule in the log and debug info; default rule1, rule2 ..." },
    { .key = "on",
      .type = TENREC_OPT_LIST,
      .item = TENREC_OPT_STRING,
      .offset = RULE_AT(on),
      .def = "[]",
      .choices = KINDS_ALL,
      .help = "Message types that the rule hits; none means all but barriers and gathers." },
    { .key = "to",
      .type = TENREC_OPT_LIST,
      .item = TENREC_OPT_STRING,
      .offset = RULE_AT(to),
      .def = "[]",
      .help = "Receivers, by name or rank, of the sent messages that the rule hits; none means "
              "all." },
    { .key = "from",
      .type = TENREC_OPT_LIST,
      .item = TENREC_OPT_STRING,
      .offset = RULE_AT(from),
      .def = "[]",
      .help = "Senders of the received messages that the rule hits; \"*\" means all. Without this "
              "option the rule hits sent messages." },
    { .key = "probability",
      .type = TENREC_OPT_DOUBLE,
      .offset = RULE_AT(probability),
      .def = "1",
      .max = 1,
      .help = "Probability that the rule hits a matching message." },
    { .key = "after_messages",
      .type = TENREC_OPT_INT,
      .offset = RULE_AT(after_messages),
      .def = "0",
      .max = INT64_MAX,
      .help = "Number of matching messages that pass before the rule begins." },
    { .key = "after",
      .type = TENREC_OPT_DURATION,
      .offset = RULE_AT(after_ms),
      .def = "0s",
      .help = "Time from the start of the worker, or from the change of the rules, until the rule "
              "begins." },
    { .key = "times",
      .type = TENREC_OPT_INT,
      .offset = RULE_AT(times),
      .def = "0",
      .max = INT64_MAX,
      .help = "Maximum number of hits; 0 means no limit." },
    { .key = "count_by",
      .type = TENREC_OPT_STRING,
      .offset = RULE_AT(count_by),
      .def = "all",
      .choices = COUNTS_WORDS_ALL,
      .help = "`times` counts all hits of the rule together, or those of the same payload, type or "
              "destination." },
    { .key = "by",
      .type = TENREC_OPT_DURATION,
      .offset = RULE_AT(by_ms),
      .def = "100ms",
      .help = "How long delay holds a message, and how long reorder waits for a message to "
              "overtake it." },
    { .key = "bytes_per_second",
      .type = TENREC_OPT_SIZE,
      .offset = RULE_AT(bytes_per_second),
      .def = "0",
      .help = "Bandwidth of a slow link to or from each worker, payload and tensors." },
};
static const struct tenrec_option_record rule_record =
    TENREC_OPTION_RECORD(rule_options, struct faulty_rule_options);

#define AT(field) offsetof(struct faulty_options, field)
static const struct tenrec_option options[] = {
    { .key = "messages_to_fail",
      .type = TENREC_OPT_LIST,
      .item = TENREC_OPT_STRING,
      .offset = AT(messages_to_fail),
      .def = "[]",
      .choices = KINDS_TORCH,
      .help = "Message types whose first sends fail; torch's names, or CALL, REMOTE_CALL and "
              "RREF_FETCH_CALL for both kinds of each." },
    { .key = "num_fail_sends",
      .type = TENREC_OPT_INT,
      .offset = AT(num_fail_sends),
      .def = "0",
      .max = INT64_MAX,
      .help = "How many sends of each distinct message fail before one succeeds." },
    { .key = "count_by",
      .type = TENREC_OPT_STRING,
      .offset = AT(count_by),
      .def = "payload",
      .choices = COUNTS_WORDS,
      .help =
          "Property that makes messages distinct for num_fail_sends; torch counts by payload." },
    { .key = "messages_to_delay",
      .type = TENREC_OPT_MAP,
      .item = TENREC_OPT_DURATION,
      .offset = AT(messages_to_delay),
      .flags = TENREC_OPT_PLAIN_SECONDS,
      .def = "{}",
      .choices = KINDS_TORCH,
      .help = "Message types to send later, and the delay of each." },
    { .key = "past_deadline",
      .type = TENREC_OPT_STRING,
      .offset = AT(past_deadline),
      .def = "send",
      .choices = "send|drop",
      .help = "Send or drop a message whose deadline expired while it was held; torch sends it." },
    { .key = "seed",
      .type = TENREC_OPT_INT,
      .offset = AT(seed),
      .def = "0",
      .max = INT64_MAX,
      .help =
          "Seed of random faults; 0 draws one and logs it. Set the logged seed to repeat a run." },
    { .key = "rules",
      .type = TENREC_OPT_RECORDS,
      .offset = AT(rules),
      .def = "[]",
      .help = "Other faults: a list of maps. The first rule that hits a message applies.",
      .record = &rule_record },
};

const struct tenrec_plugin tenrec_plugin = {
    TENREC_PLUGIN_HEADER,
    TENREC_PLUGIN_OPTIONS(options, struct faulty_options),
    .flags = TENREC_PLUGIN_WRAPS | TENREC_PLUGIN_UNLOADABLE | TENREC_PLUGIN_SETUID,
    .name = "faulty",
    .version = "1.1",
    .summary = "Wraps any agent and injects faults into its messages.",
};

/* ---- checks that span options ------------------------------------------------ */

static tenrec_status check_delays(const struct faulty_options *o, tenrec_error *err)
{
    for (size_t i = 0; i < o->messages_to_delay.n; i++) {
        const struct tenrec_option_pair *a = &o->messages_to_delay.v[i];
        if (a->value.ms > UINT32_MAX)
            return tenrec_fail(
                err, TENREC_ECONFIG,
                "messages_to_delay: '%s' has an infinite delay, expected at most %us", a->key,
                UINT32_MAX / 1000);
        for (size_t k = 0; k < i; k++) {
            const struct tenrec_option_pair *b = &o->messages_to_delay.v[k];
            if (kinds_of(a->key) & kinds_of(b->key))
                return tenrec_fail(err, TENREC_ECONFIG,
                                   "messages_to_delay: '%s' and '%s' mean the same messages",
                                   b->key, a->key);
        }
    }
    return TENREC_OK;
}

/* Letters, digits, '_' and '-': the name becomes part of a key of debug info. */
static bool is_name(const char *name)
{
    static const char good[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";

    return strlen(name) <= 40 && name[strspn(name, good)] == '\0';
}

static tenrec_status check_rule(const struct faulty_rule_options *r, tenrec_error *err)
{
    if (!r->what)
        return tenrec_fail(err, TENREC_ECONFIG,
                           "'do' is missing, expected one of " OPTIONS_ACTIONS);
    if (!is_name(r->name))
        return tenrec_fail(err, TENREC_ECONFIG,
                           "name '%s': expected at most 40 letters, digits, '_' and '-'", r->name);
    if (r->from.n && r->to.n)
        return tenrec_fail(err, TENREC_ECONFIG,
                           "has 'to' and 'from': a rule hits either sent or received messages");
    if (r->from.n && strncmp(r->what, "fail", 4) == 0)
        return tenrec_fail(err, TENREC_ECONFIG,
                           "'%s' with 'from': only a send can fail; use drop or corrupt", r->what);
    if ((strcmp(r->what, "slow") == 0) != (r->bytes_per_second != 0))
        return tenrec_fail(err, TENREC_ECONFIG,
                           "'bytes_per_second' and 'do: slow' require each other");
    if (r->by_ms > UINT32_MAX || r->after_ms > UINT32_MAX)
        return tenrec_fail(err, TENREC_ECONFIG, "'%s' is infinite, expected at most %us",
                           r->by_ms > UINT32_MAX ? "by" : "after", UINT32_MAX / 1000);
    return TENREC_OK;
}

static tenrec_status check_rules(const struct faulty_options *o, tenrec_error *err)
{
    char label[OPTIONS_LABEL_MAX], other[OPTIONS_LABEL_MAX];

    for (size_t i = 0; i < o->rules.n; i++) {
        tenrec_status st = check_rule(options_rule(o, i), err);
        options_label(o, i, label);
        for (size_t k = 0; k < i && st == TENREC_OK; k++)
            if (strcmp(options_label(o, k, other), label) == 0)
                st = tenrec_fail(err, TENREC_ECONFIG, "name '%s' is used by the rule at %s", label,
                                 o->rules.where[k]);
        if (st != TENREC_OK) {
            tenrec_error_prefix(err, "rule %zu at %s", i + 1, o->rules.where[i]);
            return st;
        }
    }
    return TENREC_OK;
}

tenrec_status tenrec_construct_options(void *opts, tenrec_error *err)
{
    tenrec_status st = check_delays(opts, err);

    return st == TENREC_OK ? check_rules(opts, err) : st;
}
