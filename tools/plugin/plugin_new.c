/* SPDX-License-Identifier: Apache-2.0 */
/* plugin_new.c - `tenrec plugin new`: a folder with a plugin that compiles, and its test. */
#include "plugin/templates.h"
#include "tool.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define NAME_MAX_LEN 40

struct kind {
    const char *name;
    const char *const *source; /* in which `word` stands for the plugin's name */
    const char *word;
    const char *test; /* arguments of tenrec, behind `make test` */
    const char *meson_test;
    const char *config;
};

static const struct kind kinds[] = {
    { "backend", template_backend, "echo", "conformance --workers 1 NAME.yaml",
      "test('conformance', find_program('tenrec'), protocol: 'tap',\n"
      "  args: ['conformance', '--tap', '--workers', '1', plugin])\n",
      "# It reaches its own worker only, so far: then remove '--workers 1' from its test.\n"
      "backend: NAME\n"
      "backends:\n"
      "  NAME: { plugin: ./NAME.so }\n" },
    { "wrapper", template_wrapper, "NAME", "conformance NAME.yaml",
      "test('conformance', find_program('tenrec'), protocol: 'tap',\n"
      "  args: ['conformance', '--tap', '--around', 'tensorpipe', plugin])\n",
      "backend: NAME\n"
      "backends:\n"
      "  NAME: { plugin: ./NAME.so, wraps: tensorpipe }\n"
      "  tensorpipe: { plugin: tensorpipe }\n" },
    { "store", template_store, "drawer", "conformance --workers 1 NAME://test NAME.yaml",
      "test('conformance', find_program('tenrec'), protocol: 'tap',\n"
      "  args: ['conformance', '--tap', '--workers', '1', plugin])\n",
      "# It reaches its own process only, so far: then remove '--workers 1' from its test.\n"
      "init_method: NAME://here\n"
      "stores:\n"
      "  NAME: { plugin: ./NAME.so }\n" },
    { "observer", template_observer, "tray", "conformance --address NAME.spans ./NAME.so",
      "test('conformance', find_program('tenrec'), protocol: 'tap',\n"
      "  args: ['conformance', '--tap', '--address', 'NAME.spans', plugin])\n",
      "observe: { traces: NAME.spans, traces_observer: NAME, traces_ratio: 1 }\n"
      "observers:\n"
      "  NAME: { plugin: ./NAME.so }\n" },
};

#define N_KINDS (sizeof kinds / sizeof *kinds)

/* Writes `line` with `with` in the place of each `word`. */
static void new_put_line(FILE *f, const char *line, const char *word, const char *with)
{
    const char *at;

    while ((at = strstr(line, word)) != NULL) {
        fprintf(f, "%.*s%s", (int)(at - line), line, with);
        line = at + strlen(word);
    }
    fputs(line, f);
}

static void new_put_template(FILE *f, const char *const *lines, const struct kind *k,
                             const char *name)
{
    for (; *lines; lines++) {
        if (strcmp(*lines, "\ttenrec TEST\n") == 0) {
            fputs("\ttenrec ", f);
            new_put_line(f, k->test, "NAME", name);
            fputc('\n', f);
        } else if (strcmp(*lines, "MESON_TEST\n") == 0) {
            new_put_line(f, k->meson_test, "NAME", name);
        } else {
            new_put_line(f, *lines, "NAME", name);
        }
    }
}

/* Opens a new file of the folder. */
static FILE *new_open(const struct tool *self, const char *folder, const char *name,
                      const char *end)
{
    char path[PATH_MAX];
    FILE *f;

    snprintf(path, sizeof path, "%s/%s%s", folder, name, end);
    f = fopen(path, "wx");
    if (!f)
        tool_fail(self, "cannot make %s: %s", path, strerror(errno));
    return f;
}

static int new_close(const struct tool *self, FILE *f)
{
    const int failed = ferror(f);

    if (fclose(f) || failed)
        return tool_fail(self, "cannot write: %s", strerror(errno));
    return TOOL_OK;
}

static int new_write(const struct tool *self, const struct kind *k, const char *name,
                     const char *folder)
{
    FILE *f = new_open(self, folder, name, ".c");

    if (!f)
        return TOOL_FAILED;
    for (const char *const *line = k->source; *line; line++)
        new_put_line(f, *line, k->word, name);
    if (new_close(self, f) || !(f = new_open(self, folder, "Makefile", "")))
        return TOOL_FAILED;
    new_put_template(f, template_makefile, k, name);
    if (new_close(self, f) || !(f = new_open(self, folder, "meson.build", "")))
        return TOOL_FAILED;
    new_put_template(f, template_meson, k, name);
    if (new_close(self, f) || !(f = new_open(self, folder, name, ".yaml")))
        return TOOL_FAILED;
    new_put_line(f, k->config, "NAME", name);
    return new_close(self, f);
}

static bool new_is_name(const char *name)
{
    const size_t n = strlen(name);

    return n > 0 && n <= NAME_MAX_LEN &&
           strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") == n && name[0] >= 'a' &&
           name[0] <= 'z';
}

static int plugin_main(const struct tool *self, int argc, char **argv)
{
    const char *kind = "backend", *name, *folder;
    const struct tool_option options[] = { { "kind", 'k', TOOL_TEXT, &kind, 0, 0 } };
    const struct kind *k = kinds;
    int status = tool_options(self, argc, argv, false, options, 1);

    if (status != TOOL_GO_ON)
        return status;
    if (argc - optind < 2 || argc - optind > 3 || strcmp(argv[optind], "new") != 0)
        return tool_misuse(self, "expected 'new NAME [FOLDER]'");
    while (k < kinds + N_KINDS && strcmp(k->name, kind) != 0)
        k++;
    if (k == kinds + N_KINDS)
        return tool_misuse(self, "--kind is '%s', expected backend, wrapper, store or observer",
                           kind);
    name = argv[optind + 1];
    folder = argc - optind == 3 ? argv[optind + 2] : name;
    if (!new_is_name(name))
        return tool_misuse(self,
                           "'%s' is no name of a plugin: up to %d of a-z, 0-9 and _, a letter "
                           "first",
                           name, NAME_MAX_LEN);
    if (mkdir(folder, 0777))
        return tool_fail(self, "cannot make the folder %s: %s", folder, strerror(errno));
    status = new_write(self, k, name, folder);
    if (status == TOOL_OK)
        printf("%s: %s %s that compiles, and its test; next: make -C %s test\n", folder,
               *k->name == 'o' ? "an" : "a", k->name, folder);
    return status;
}

const struct tool tool_plugin = {
    .name = "plugin",
    .usage = "new NAME [--kind backend|wrapper|store|observer] [FOLDER]",
    .summary = "begin a plugin",
    .help =
        "Makes FOLDER (default: NAME) with NAME.c, which compiles and works, a Makefile, a\n"
        "meson.build, and a configuration NAME.yaml that uses it. 'make test' checks the plugin\n"
        "by 'tenrec conformance'. docs/plugin-guide.md explains the source.\n"
        "\n"
        "  -k, --kind K   backend (default), wrapper, store or observer",
    .main = plugin_main,
};
