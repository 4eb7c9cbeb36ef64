/* SPDX-License-Identifier: Apache-2.0 */
#include "tool.h"

#include "core/base/text.h"
#include "core/config/value.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

TENREC_PRINTF(2, 0)
static void tool_complain(const struct tool *self, const char *fmt, va_list ap)
{
    char raw[1024], text[1024];

    vsnprintf(raw, sizeof raw, fmt, ap);
    tenrec_text_escape(text, sizeof text, raw, ""); /* the text may quote a peer */
    fflush(stdout);
    fprintf(stderr, "tenrec %s: %s", self->name, text);
}

int tool_fail(const struct tool *self, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    tool_complain(self, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
    return TOOL_FAILED;
}

int tool_misuse(const struct tool *self, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    tool_complain(self, fmt, ap);
    va_end(ap);
    fprintf(stderr, "; see 'tenrec help %s'\n", self->name);
    return TOOL_MISUSED;
}

/* Compares "--confg=x" up to the '='. */
static void offer_options(struct suggestion *near, char *word, const struct option *known)
{
    word[strcspn(word, "=")] = '\0';
    suggest_init(near, word + strspn(word, "-"));
    for (; known->name; known++)
        suggest_try(near, known->name);
}

/* What getopt_long just refused (it returned '?' or ':') of those that it knew. */
static int tool_bad_option(const struct tool *self, int got, char **argv,
                           const struct option *known)
{
    const char *word = argv[optind - 1];
    struct suggestion near;

    if (got == ':')
        return tool_misuse(self, "option '%s' requires a value", word);
    if (optopt && strncmp(word, "--", 2) != 0)
        return tool_misuse(self, "unknown option '-%c'", optopt);
    if (optopt)
        return tool_misuse(self, "option '%s' takes no value", word);
    offer_options(&near, argv[optind - 1], known);
    if (suggest_name(&near))
        return tool_misuse(self, "unknown option '%s' (did you mean '--%s'?)", word,
                           suggest_name(&near));
    return tool_misuse(self, "unknown option '%s'", word);
}

void tool_print_help(const struct tool *self)
{
    printf("usage: tenrec %s %s\n\n%s\n", self->name, self->usage, self->help);
}

bool tool_number(const char *text, int64_t min, int64_t max, int64_t *ret)
{
    char *end;
    long long v;

    if (*text < '0' || *text > '9')
        return false;
    errno = 0;
    v = strtoll(text, &end, 10);
    if (errno || *end || v < min || v > max)
        return false;
    *ret = v;
    return true;
}

bool tool_readable(const char *path, char **ret)
{
    if (access(path, R_OK))
        return false;
    *ret = realpath(path, NULL);
    return *ret != NULL;
}

static int take_value(const struct tool *self, const struct tool_option *o)
{
    char most[QUANTITY_TEXT_MAX];
    tenrec_error err;
    int64_t n;

    switch (o->kind) {
    case TOOL_FLAG:
        *(bool *)o->value = true;
        return TOOL_GO_ON;
    case TOOL_TEXT:
        *(const char **)o->value = optarg;
        return TOOL_GO_ON;
    case TOOL_NUMBER:
        if (!tool_number(optarg, o->min, o->max, &n))
            return tool_misuse(self, "--%s is '%s', expected a number from %d to %d", o->name,
                               optarg, (int)o->min, (int)o->max);
        *(int *)o->value = (int)n;
        return TOOL_GO_ON;
    case TOOL_DURATION:
        if (quantity_duration(optarg, false, o->value, &err))
            return tool_misuse(self, "--%s: %s", o->name, err.text);
        if (o->min && *(uint64_t *)o->value == 0)
            return tool_misuse(self, "--%s: '%s': expected more than 0", o->name, optarg);
        return TOOL_GO_ON;
    case TOOL_SIZE:
        if (quantity_size(optarg, o->value, &err))
            return tool_misuse(self, "--%s: %s", o->name, err.text);
        if (*(uint64_t *)o->value > (uint64_t)o->max)
            return tool_misuse(self, "--%s is '%s', expected at most %s", o->name, optarg,
                               quantity_print_size((uint64_t)o->max, most));
        return TOOL_GO_ON;
    }
    return TOOL_MISUSED;
}

int tool_options(const struct tool *self, int argc, char **argv, bool first,
                 const struct tool_option *option, size_t n)
{
    struct option known[TOOL_OPTIONS_MAX + 2] = { 0 };
    char letters[2 * TOOL_OPTIONS_MAX + 4] = "";
    int c, status = TOOL_GO_ON;
    size_t len = (size_t)snprintf(letters, sizeof letters, "%s:h", first ? "+" : "");

    for (size_t i = 0; i < n; i++) {
        const bool flag = option[i].kind == TOOL_FLAG;

        known[i] = (struct option){ option[i].name, flag ? no_argument : required_argument, NULL,
                                    UCHAR_MAX + 1 + (int)i };
        if (option[i].letter)
            len += (size_t)snprintf(letters + len, sizeof letters - len, "%c%s", option[i].letter,
                                    flag ? "" : ":");
    }
    known[n] = (struct option){ "help", no_argument, NULL, 'h' };
    opterr = 0;
    while (status == TOOL_GO_ON && (c = getopt_long(argc, argv, letters, known, NULL)) != -1) {
        size_t i = 0;

        while (i < n && c != option[i].letter && c != UCHAR_MAX + 1 + (int)i)
            i++;
        if (i < n) {
            status = take_value(self, &option[i]);
        } else if (c == 'h') {
            tool_print_help(self);
            return TOOL_OK;
        } else {
            return tool_bad_option(self, c, argv, known);
        }
    }
    return status;
}
