/* SPDX-License-Identifier: Apache-2.0 */
/* sample.h - an option table with every type, and small helpers. */
#ifndef TENREC_TESTS_CONFIG_SAMPLE_H
#define TENREC_TESTS_CONFIG_SAMPLE_H

#include "core/config/config.h"

#include "../testing.h"

#include <unistd.h>

struct sample {
    bool keepalive;
    int64_t port;
    double factor;
    uint64_t delay;
    uint64_t limit;
    const char *progress;
    const char *ifname;
    const char *password;
    struct tenrec_option_list transports;
    struct tenrec_option_list ports;
    struct tenrec_option_map delays;
    struct tenrec_option_map labels;
    struct tenrec_option_records rules;
};

struct sample_rule {
    const char *name;
    double chance;
    struct tenrec_option_list on;
    struct tenrec_option_map weights;
};

#define AT(field) offsetof(struct sample, field)
#define RULE_AT(field) offsetof(struct sample_rule, field)
/* clang-format off */
static const struct tenrec_option sample_rule_options[] = {
    { "do", TENREC_OPT_STRING, 0, RULE_AT(name), 0, NULL, 0, 0, "drop|delay", "Help." },
    { "chance", TENREC_OPT_DOUBLE, 0, RULE_AT(chance), 0, "1", 0, 1, NULL, "Help." },
    { "on", TENREC_OPT_LIST, TENREC_OPT_STRING, RULE_AT(on), 0, "[]", 0, 0, "CALL|RET", "Help." },
    { "weights", TENREC_OPT_MAP, TENREC_OPT_INT, RULE_AT(weights), 0, "{}", 0, 0, NULL, "Help." },
};
static const struct tenrec_option_record sample_rule =
    TENREC_OPTION_RECORD(sample_rule_options, struct sample_rule);
static const struct tenrec_option sample_options[] = {
    { "keepalive", TENREC_OPT_BOOL, 0, AT(keepalive), 0, "true", 0, 0, NULL, "Help." },
    { "port", TENREC_OPT_INT, 0, AT(port), 0, "0", 0, 65535, NULL, "Help." },
    { "factor", TENREC_OPT_DOUBLE, 0, AT(factor), 0, "1.5", 0, 10, NULL, "Help." },
    { "delay", TENREC_OPT_DURATION, 0, AT(delay), 0, "5ms", 0, 3600000, NULL, "Help." },
    { "limit", TENREC_OPT_SIZE, 0, AT(limit), 0, "64KiB", 1024, 0, NULL, "Help." },
    { "progress", TENREC_OPT_STRING, 0, AT(progress), 0, "adaptive", 0, 0, "busy|adaptive|sleep", "Help." },
    { "ifname", TENREC_OPT_STRING, 0, AT(ifname), 0, NULL, 0, 0, NULL, "Help." },
    { "password", TENREC_OPT_STRING, 0, AT(password), TENREC_OPT_SECRET, "", 0, 0, NULL, "Help." },
    { "transports", TENREC_OPT_LIST, TENREC_OPT_STRING, AT(transports), 0, "[uv]", 0, 0, "shm|uv|cma", "Help." },
    { "ports", TENREC_OPT_LIST, TENREC_OPT_INT, AT(ports), 0, "[]", 1, 9, NULL, "Help." },
    { "delays", TENREC_OPT_MAP, TENREC_OPT_DURATION, AT(delays), TENREC_OPT_PLAIN_SECONDS, "{}", 0, 0, "CALL|SCRIPT_CALL", "Help." },
    { "labels", TENREC_OPT_MAP, TENREC_OPT_STRING, AT(labels), 0, "{a: b}", 0, 0, NULL, "Help." },
    { "rules", TENREC_OPT_RECORDS, 0, AT(rules), 0, "[]", 0, 0, NULL, "Help.", &sample_rule },
};
/* clang-format on */

static const struct tenrec_plugin sample = {
    TENREC_PLUGIN_HEADER,
    .name = "sample",
    TENREC_PLUGIN_OPTIONS(sample_options, struct sample),
};

/* Each case begins without a variable of ours. */
static inline void clean_environment(void)
{
    char name[128];

    for (size_t i = 0; environ[i];) {
        size_t n = strcspn(environ[i], "=");
        if (strncmp(environ[i], "TENREC_", 7) != 0 || n >= sizeof name) {
            i++;
            continue;
        }
        memcpy(name, environ[i], n);
        name[n] = '\0';
        unsetenv(name);
    }
}

static inline struct tenrec_config *config_of(const char *text)
{
    struct tenrec_config *config = NULL;
    tenrec_error err = { 0 };

    if (tenrec_config_parse(text, "t.yaml", &config, &err) != TENREC_OK)
        fail_msg("%s", err.text);
    return config;
}

/* The values in force, one "key = value (source)" per line. */
struct shown {
    char text[8192];
};

static inline void show_line(void *arg, const char *key, const char *value, const char *source)
{
    struct shown *shown = arg;
    size_t n = strlen(shown->text);

    snprintf(shown->text + n, sizeof shown->text - n, "%s = %s (%s)\n", key, value, source);
}

static inline void assert_shown(const struct shown *shown, const char *line)
{
    char whole[512];
    size_t n = strlen(line);

    snprintf(whole, sizeof whole, "%s\n", line);
    for (const char *p = shown->text; (p = strstr(p, whole)); p += n) {
        if (p == shown->text || p[-1] == '\n')
            return;
    }
    fail_msg("no line '%s' in:\n%s", line, shown->text);
}

#endif
