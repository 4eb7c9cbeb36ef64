/* SPDX-License-Identifier: Apache-2.0 */
#include "tool.h"

#include "base/suggest.h"

#include <errno.h>
#include <getopt.h>
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

int tool_bad_option(const struct tool *self, int got, char **argv, const struct option *known)
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

int tool_take_number(const struct tool *self, const char *what, int min, int max, int *ret)
{
    int64_t n;

    if (!tool_number(optarg, min, max, &n))
        return tool_misuse(self, "%s is '%s', expected a number from %d to %d", what, optarg, min,
                           max);
    *ret = (int)n;
    return TOOL_OK;
}

bool tool_readable(const char *path, char **ret)
{
    if (access(path, R_OK))
        return false;
    *ret = realpath(path, NULL);
    return *ret != NULL;
}
