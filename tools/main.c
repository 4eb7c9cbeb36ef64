/* SPDX-License-Identifier: Apache-2.0 */
/* main.c - the `tenrec` command: a table of sub-commands. */
#include "core/base/text.h"
#include "tool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <tenrec/rpc.h>
#include <unistd.h>

static const struct tool *const tools[] = { &tool_info,   &tool_check,      &tool_run,
                                            &tool_perf,   &tool_ping,       &tool_top,
                                            &tool_dump,   &tool_set,        &tool_secret,
                                            &tool_plugin, &tool_conformance };

#define N_TOOLS (sizeof tools / sizeof tools[0])

static const struct tool *main_find(const char *name)
{
    for (size_t i = 0; i < N_TOOLS; i++)
        if (!strcmp(tools[i]->name, name))
            return tools[i];
    return NULL;
}

static void print_overview(FILE *to)
{
    fprintf(to, "usage: tenrec COMMAND ...\n\n");
    for (size_t i = 0; i < N_TOOLS; i++)
        fprintf(to, "  %-13s%s\n", tools[i]->name, tools[i]->summary);
    fprintf(to, "  %-13s%s\n", "help",
            "show this list, or with 'help COMMAND' the help of a command");
    fprintf(to, "\n'tenrec --version' prints the version.\n");
}

static int main_unknown(const char *name)
{
    struct suggestion near;

    suggest_init(&near, name);
    for (size_t i = 0; i < N_TOOLS; i++)
        suggest_try(&near, tools[i]->name);
    suggest_try(&near, "help");
    fprintf(stderr, "tenrec: no command '%s'%s; the commands are", name, suggest_guess(&near));
    for (size_t i = 0; i < N_TOOLS; i++)
        fprintf(stderr, " %s,", tools[i]->name);
    fprintf(stderr, " help\n");
    return TOOL_MISUSED;
}

static int main_help(const char *name)
{
    const struct tool *t;

    if (!name) {
        print_overview(stdout);
        return TOOL_OK;
    }
    t = main_find(name);
    if (!t)
        return main_unknown(name);
    tool_print_help(t);
    return TOOL_OK;
}

static int main_run(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : NULL;
    const struct tool *t;

    if (!name) {
        print_overview(stderr);
        return TOOL_MISUSED;
    }
    if (!strcmp(name, "help") || !strcmp(name, "--help") || !strcmp(name, "-h"))
        return main_help(argc > 2 ? argv[2] : NULL);
    if (!strcmp(name, "version") || !strcmp(name, "--version") || !strcmp(name, "-V")) {
        printf("tenrec %s\n", tenrec_version_text());
        return TOOL_OK;
    }
    t = main_find(name);
    if (!t)
        return main_unknown(name);
    return t->main(t, argc - 1, argv + 1);
}

/* A socket must not get the number of a standard file that the shell closed (>&-).
 * Reads from /dev/null see the end of the file, and writes fail. */
static void occupy_standard_files(void)
{
    int fd;

    do
        fd = open("/dev/null", O_RDONLY);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0)
        close(fd);
}

int main(int argc, char **argv)
{
    int rc;

    occupy_standard_files();
    rc = main_run(argc, argv);
    /* Buffered output may fail only now, on a full disk. */
    if (fflush(stdout) || ferror(stdout)) {
        fprintf(stderr, "tenrec: cannot write to stdout: %s\n", strerror(errno));
        return rc ? rc : TOOL_FAILED;
    }
    return rc;
}
