/* SPDX-License-Identifier: Apache-2.0 */
#include "conformance/case.h"

#include "core/plugin/plugin_file.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <tenrec/log.h>
#include <unistd.h>

static struct conformance_case *cases;
static atomic_int log_errors;

void case_add(struct conformance_case *c)
{
    struct conformance_case **at = &cases;

    /* A compiler may register the cases of a file in any order. */
    while (*at && (strcmp((*at)->file, c->file) != 0 || (*at)->line < c->line))
        at = &(*at)->next;
    c->next = *at;
    *at = c;
}

struct conformance_case *case_first(void)
{
    return cases;
}

/* An error in the log is a failure: the cases give no reason for any. */
static void on_log(void *arg, enum tenrec_log_level level, const char *part, const char *text)
{
    (void)arg;
    if (level != TENREC_LOG_ERROR && !strstr(text, "does not run"))
        return;
    atomic_fetch_add(&log_errors, 1);
    fprintf(stderr, "log of %s: %s\n", part, text);
}

void case_run(const struct conformance_case *c, const struct conformance_setup *setup)
{
    tenrec_log_set_callback(on_log, NULL);
    tenrec_log_set_level(TENREC_LOG_DEBUG);
    if (c->of == OF_OBSERVERS)
        observer_run(c, setup);
    else if (c->of == OF_STORES)
        clients_run(c, setup);
    else
        agent_run(c, setup);
    expect_equal(atomic_load(&log_errors), 0, "the number of errors in the log");
}

void case_check_exports(const char *path)
{
    char name[PLUGIN_SYMBOL_MAX];
    int fd;

    if (!*path)
        expect_not_offered("the file of a plugin");
    fd = open(path, O_RDONLY | O_CLOEXEC);
    expect_here(fd >= 0);
    plugin_file_stray(fd, name);
    close(fd);
    expect(!*name,
           "%s exports the symbol '%s', expected tenrec_plugin and the two functions only: compile "
           "with -fvisibility=hidden",
           path, name);
}
