/* SPDX-License-Identifier: Apache-2.0 */
/* plugin.c - the option tables of faulty, and what spans several options. */
#include "counts.h"
#include "kinds.h"
#include "options.h"

#define RULE_AT(field) offsetof(struct faulty_rule_options, field)
static const struct tenrec_option rule_options[] = {
    { .key = "do",
      .type = TENREC_OPT_STRING,
      .offset = RULE_AT(what),
      .choices = OPTIONS_ACTIONS,
      .help = "What happens to a message that the rule hits." },
    { .key = "name",
      .type = TENREC_OPT_STRING,
      .offset = RULE_AT(name),
      .def = "",
      .help = "How the log and debug info call the rule; else rule1, rule2 ..." },
    { .key = "on",
      .type = TENREC_OPT_LIST,
      .item = TENREC_OPT_STRING,
      .offset = RULE_AT(on),
      .def = "[]",
      .choices = KINDS_ALL,
      .help = "Message types that it hits; none means all but barriers and gathers." },
    { .key = "to",
      .type = TENREC_OPT_LIST,
      .item = TENREC_OPT_STRING,
      .offset = RULE_AT(to),
      .def = "[]",
      .help = "Workers, by name or rank, to whom messages are hit as they are sent; none means "
              "all." },
    { .key = "from",
      .type = TENREC_OPT_LIST,
      .item = TENREC_OPT_STRING,
      .offset = RULE_AT(from),
      .def = "[]",
      .help = "Workers whose messages are hit as they arrive; \"*\" means all. A rule without "
              "looks at what is sent." },
    { .key = "probability",
      .type = TENREC_OPT_DOUBLE,
      .offset = RULE_AT(probability),
      .def = "1",
      .max = 1,
      .help = "How likely a message that could be hit is." },
    { .key = "after_messages",
      .type = TENREC_OPT_INT,
      .offset = RULE_AT(after_messages),
      .def = "0",
      .max = INT64_MAX,
      .help = "So many messages of these types and workers go through before the rule begins." },
    { .key = "after",
      .type = TENREC_OPT_DURATION,
      .offset = RULE_AT(after_ms),
      .def = "0s",
      .help = "The rule begins so long after the worker has started." },
    { .key = "times",
      .type = TENREC_OPT_INT,
      .offset = RULE_AT(times),
      .def = "0",
      .max = INT64_MAX,
      .help = "How often it hits at most; 0 means without limit." },
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
      .help = "How long delay holds a message, and how long reorder waits for another one to pass "
              "it." },
    { .key = "bytes_per_second",
      .type = TENREC_OPT_SIZE,
      .offset = RULE_AT(bytes_per_second),
      .def = "0",
      .help = "What a slow link carries, payload and tensors, to or from each worker." },
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
      .help = "How many sends of each distinct message fail before it goes through." },
    { .key = "count_by",
      .type = TENREC_OPT_STRING,
      .offset = AT(count_by),
      .def = "payload",
      .choices = COUNTS_WORDS,
      .help = "What makes messages distinct for num_fail_sends; torch counts by payload." },
    { .key = "messages_to_delay",
      .type = TENREC_OPT_MAP,
      .item = TENREC_OPT_DURATION,
      .offset = AT(messages_to_delay),
      .flags = TENREC_OPT_PLAIN_SECONDS,
      .def = "{}",
      .choices = KINDS_TORCH,
      .help = "Message types that are sent later, and by how much." },
    { .key = "past_deadline",
      .type = TENREC_OPT_STRING,
      .offset = AT(past_deadline),
      .def = "send",
      .choices = "send|drop",
      .help =
          "What becomes of a message whose deadline passed while it was held; torch sends it." },
    { .key = "seed",
      .type = TENREC_OPT_INT,
      .offset = AT(seed),
      .def = "0",
      .max = INT64_MAX,
      .help = "What chance begins with; 0 draws one and logs it, so that it can be set here to see "
              "the same again." },
    { .key = "rules",
      .type = TENREC_OPT_RECORDS,
      .offset = AT(rules),
      .def = "[]",
      .help = "What else goes wrong: a list of maps. The first rule that hits a message has it.",
      .record = &rule_record },
};

const struct tenrec_plugin tenrec_plugin = {
    TENREC_PLUGIN_HEADER,
    TENREC_PLUGIN_OPTIONS(options, struct faulty_options),
    .flags = TENREC_PLUGIN_WRAPS | TENREC_PLUGIN_UNLOADABLE,
    .name = "faulty",
    .version = "1.1",
    .summary = "Wraps any agent, and injects faults into what it carries.",
};

/* ---- what the core cannot see ------------------------------------------------ */

static tenrec_status check_delays(const struct faulty_options *o, tenrec_error *err)
{
    for (size_t i = 0; i < o->messages_to_delay.n; i++) {
        const struct tenrec_option_pair *a = &o->messages_to_delay.v[i];
        if (a->value.ms > UINT32_MAX)
            return tenrec_fail(err, TENREC_ECONFIG,
                               "messages_to_delay: '%s' is delayed for ever, expected at most %us",
                               a->key, UINT32_MAX / 1000);
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

/* Letters, digits, '_' and '-': it becomes part of a key of debug info. */
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
                           "has 'to' and 'from': a rule is for what is sent or for what arrives");
    if (r->from.n && strncmp(r->what, "fail", 4) == 0)
        return tenrec_fail(err, TENREC_ECONFIG,
                           "'%s' with 'from': only a send can fail; use drop or corrupt", r->what);
    if ((strcmp(r->what, "slow") == 0) != (r->bytes_per_second != 0))
        return tenrec_fail(err, TENREC_ECONFIG,
                           "'bytes_per_second' and 'do: slow' need each other");
    if (r->by_ms > UINT32_MAX || r->after_ms > UINT32_MAX)
        return tenrec_fail(err, TENREC_ECONFIG, "'%s' is for ever, expected at most %us",
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
                st = tenrec_fail(err, TENREC_ECONFIG, "name '%s' is that of the rule at %s", label,
                                 o->rules.place[k]);
        if (st != TENREC_OK) {
            tenrec_error_prefix(err, "rule %zu at %s", i + 1, o->rules.place[i]);
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
