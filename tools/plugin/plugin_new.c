/* SPDX-License-Identifier: Apache-2.0 */
/* plugin_new.c - `tenrec plugin new`: a folder with a plugin that compiles, and its test. */
#include "plugin/templates.h"
#include "tool.h"

#include <dirent.h>
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
    const char *const *source_cc; /* in which NAME does */
    const char *test;             /* arguments of tenrec, behind `make test` */
    const char *meson_test;
    const char *config;
};

/* What the build files of a language have in the place of @WORDS@. */
struct language {
    const char *name, *meson, *suffix, *compiler, *flags, *standard, *warnings, *exports,
        *meson_exports;
};

static const struct language languages[] = {
    { "c", "c", "c", "CC", "CFLAGS", "gnu11", "", "", "" },
    { "c++", "cpp", "cc", "CXX", "CXXFLAGS", "gnu++20", " -Wno-missing-field-initializers",
      " -Wl,--version-script=exports.map",
      ",\n  cpp_args: '-Wno-missing-field-initializers',\n"
      "  link_args: '-Wl,--version-script=' + meson.current_source_dir() / 'exports.map', "
      "link_depends: 'exports.map'" },
};

#define N_LANGUAGES (sizeof languages / sizeof *languages)

/* What is begun. */
struct plan {
    const struct kind *kind;
    const struct language *language;
    const char *name, *folder;
};

static const struct kind kinds[] = {
    { "backend", template_backend, "echo", template_backend_cc, "conformance --workers 1 NAME.yaml",
      "test('conformance', find_program('tenrec'), protocol: 'tap',\n"
      "  args: ['conformance', '--tap', '--workers', '1', plugin])",
      "# It reaches its own worker only, so far: then remove '--workers 1' from its test.\n"
      "backend: NAME\n"
      "backends:\n"
      "  NAME: { plugin: ./NAME.so }\n" },
    { "wrapper", template_wrapper, "NAME", template_wrapper_cc, "conformance NAME.yaml",
      "test('conformance', find_program('tenrec'), protocol: 'tap',\n"
      "  args: ['conformance', '--tap', '--around', 'tensorpipe', plugin])",
      "backend: NAME\n"
      "backends:\n"
      "  NAME: { plugin: ./NAME.so, wraps: tensorpipe }\n"
      "  tensorpipe: { plugin: tensorpipe }\n" },
    { "store", template_store, "drawer", template_store_cc,
      "conformance --workers 1 NAME://test NAME.yaml",
      "test('conformance', find_program('tenrec'), protocol: 'tap',\n"
      "  args: ['conformance', '--tap', '--workers', '1', plugin])",
      "# It reaches its own process only, so far: then remove '--workers 1' from its test.\n"
      "init_method: NAME://here\n"
      "stores:\n"
      "  NAME: { plugin: ./NAME.so }\n" },
    { "observer", template_observer, "tray", template_observer_cc,
      "conformance --address NAME.spans ./NAME.so",
      "test('conformance', find_program('tenrec'), protocol: 'tap',\n"
      "  args: ['conformance', '--tap', '--address', 'NAME.spans', plugin])",
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

static void new_put_template(FILE *f, const char *const *lines, const struct plan *p)
{
    const struct language *l = p->language;
    const char *const words[][2] = {
        { "@TEST@", p->kind->test },   { "@MESON_TEST@", p->kind->meson_test },
        { "@LANGUAGE@", l->meson },    { "@SUFFIX@", l->suffix },
        { "@COMPILER@", l->compiler }, { "@FLAGS@", l->flags },
        { "@STANDARD@", l->standard }, { "@WARNINGS@", l->warnings },
        { "@EXPORTS@", l->exports },   { "@MESON_EXPORTS@", l->meson_exports },
    };

    for (; *lines; lines++)
        for (const char *at = *lines; *at;) {
            size_t i = 0, n = 1;

            while (i < sizeof words / sizeof words[0] &&
                   strncmp(at, words[i][0], n = strlen(words[i][0])) != 0)
                i++;
            if (i < sizeof words / sizeof words[0]) {
                new_put_line(f, words[i][1], "NAME", p->name);
            } else if (strncmp(at, "NAME", n = strlen("NAME")) == 0) {
                fputs(p->name, f);
            } else {
                fputc(*at, f);
                n = 1;
            }
            at += n;
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

/* One file of the folder, from a template in which `word` stands for the name (NULL: a template
 * with words of the language). */
static int new_file(const struct tool *self, const struct plan *p, const char *name,
                    const char *end, const char *const *lines, const char *word)
{
    FILE *f = new_open(self, p->folder, name, end);

    if (!f)
        return TOOL_FAILED;
    if (!word)
        new_put_template(f, lines, p);
    for (; word && *lines; lines++)
        new_put_line(f, *lines, word, p->name);
    return new_close(self, f);
}

static int new_write(const struct tool *self, const struct plan *p)
{
    const char *const config[] = { p->kind->config, NULL };
    const bool cc = strcmp(p->language->name, "c++") == 0;
    int status = new_file(self, p, p->name, cc ? ".cc" : ".c",
                          cc ? p->kind->source_cc : p->kind->source, cc ? "NAME" : p->kind->word);

    if (status == TOOL_OK)
        status = new_file(self, p, "Makefile", "", template_makefile, NULL);
    if (status == TOOL_OK)
        status = new_file(self, p, "meson.build", "", template_meson, NULL);
    if (status == TOOL_OK && cc)
        status = new_file(self, p, "exports.map", "", template_exports, "NAME");
    if (status == TOOL_OK)
        status = new_file(self, p, p->name, ".yaml", config, "NAME");
    return status;
}

/* Returns true for a folder with nothing in it. */
static bool new_is_empty(const char *folder)
{
    const int error = errno;
    DIR *d = opendir(folder);
    int n = 0;

    while (d && n < 3 && readdir(d))
        n++;
    if (d)
        closedir(d);
    errno = error;
    return d && n == 2; /* . and .. */
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
    const char *kind = "backend", *language = "c";
    const struct tool_option options[] = { { "kind", '\0', TOOL_TEXT, &kind, 0, 0 },
                                           { "language", '\0', TOOL_TEXT, &language, 0, 0 } };
    struct plan p = { kinds, languages, NULL, NULL };
    int status = tool_options(self, argc, argv, false, options, 2);

    if (status != TOOL_GO_ON)
        return status;
    if (argc - optind < 2 || argc - optind > 3 || strcmp(argv[optind], "new") != 0)
        return tool_misuse(self, "expected 'new NAME [FOLDER]'");
    while (p.kind < kinds + N_KINDS && strcmp(p.kind->name, kind) != 0)
        p.kind++;
    if (p.kind == kinds + N_KINDS)
        return tool_misuse(self, "--kind is '%s', expected backend, wrapper, store or observer",
                           kind);
    while (p.language < languages + N_LANGUAGES && strcmp(p.language->name, language) != 0)
        p.language++;
    if (p.language == languages + N_LANGUAGES)
        return tool_misuse(self, "--language is '%s', expected c or c++", language);
    p.name = argv[optind + 1];
    p.folder = argc - optind == 3 ? argv[optind + 2] : p.name;
    if (!new_is_name(p.name))
        return tool_misuse(self,
                           "'%s' is no name of a plugin: up to %d of a-z, 0-9 and _, a letter "
                           "first",
                           p.name, NAME_MAX_LEN);
    /* An empty folder may be there. */
    if (mkdir(p.folder, 0777) && (errno != EEXIST || !new_is_empty(p.folder)))
        return tool_fail(self, "cannot make the folder %s: %s", p.folder, strerror(errno));
    status = new_write(self, &p);
    if (status == TOOL_OK)
        printf("%s: %s %s that compiles, and its test; next: make -C %s test\n", p.folder,
               *p.kind->name == 'o' ? "an" : "a", p.kind->name, p.folder);
    return status;
}

const struct tool tool_plugin = {
    .name = "plugin",
    .usage = "new NAME [--kind backend|wrapper|store|observer] [--language c|c++] [FOLDER]",
    .summary = "begin a plugin",
    .help =
        "Makes FOLDER (default: NAME) with NAME.c or NAME.cc, which compiles and works, a\n"
        "Makefile, a meson.build, and a configuration NAME.yaml that uses it. 'make test' checks\n"
        "the plugin by 'tenrec conformance'. docs/plugin-guide.md explains the source.\n"
        "\n"
        "      --kind K       backend|wrapper|store|observer; by default backend\n"
        "      --language L   c|c++, C++ of 2020; by default c",
    .main = plugin_main,
};
