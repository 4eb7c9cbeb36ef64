/* SPDX-License-Identifier: Apache-2.0 */
/* info_print.c - what `tenrec info` has collected, as text. */
#include "info/info.h"
#include "outside.h"

#include <jansson.h>
#include <string.h>

static void print_viable(const json_t *backend, const char *key)
{
    const json_t *list = json_object_get(backend, key), *row;
    size_t i;

    json_array_foreach(list, i, row)
    {
        bool viable = json_is_true(json_object_get(row, "viable"));
        const char *more = inspect_text(row, viable ? "note" : "reason");

        printf("  %-12s%-12s%s%s%s\n", i ? "" : key, inspect_text(row, "name"),
               viable ? "viable" : "not viable", *more ? (viable ? ", " : ": ") : "", more);
    }
}

#define OPTION_COLUMN 27
#define LINE_COLUMNS 100

/* Words at OPTION_COLUMN, broken at blanks and bars. */
static void print_wrapped(const char *words)
{
    size_t column = 0;

    while (*words) {
        size_t n = strcspn(words, " |"), blank = words[n] == ' ';

        n += words[n] == '|';
        if (column && OPTION_COLUMN + column + n > LINE_COLUMNS)
            column = 0;
        if (!column)
            printf("\n%*s", OPTION_COLUMN, "");
        else if (words[-1] == ' ')
            printf(" ");
        printf("%.*s", (int)n, words);
        column += n + blank;
        words += n + blank;
    }
}

/* Prints the allowed values: "uv|shm" or "1 to 64". */
static void print_allowed(const json_t *option)
{
    const json_t *choices = json_object_get(option, "choices"), *row;
    const json_t *end[2] = { json_object_get(option, "min"), json_object_get(option, "max") };
    char words[1024] = "one of ";
    size_t i;

    if (choices) {
        json_array_foreach(choices, i, row)
        {
            size_t n = strlen(words);

            snprintf(words + n, sizeof words - n, "%s%s", i ? "|" : "", json_string_value(row));
        }
        print_wrapped(words);
    }
    if (!end[0])
        return;
    for (i = 0; i < 2; i++) {
        if (!end[i])
            printf(" and more");
        else if (json_is_string(end[i]))
            printf("%s%s", i ? " to " : ", ", json_string_value(end[i]));
        else
            printf("%s%" JSON_INTEGER_FORMAT, i ? " to " : ", ", json_integer_value(end[i]));
    }
}

/* Prints one option; `outer` is the list of maps that it belongs to, or NULL. */
static void print_option(const json_t *option, const char *outer)
{
    char name[128];

    snprintf(name, sizeof name, "%s%s%s", outer ? outer : "", outer ? "[]." : "",
             inspect_text(option, "name"));
    printf("    %-*s %s, default %s", OPTION_COLUMN - 5, name, inspect_text(option, "type"),
           *inspect_text(option, "default") ? inspect_text(option, "default") : "\"\"");
    print_allowed(option);
    print_wrapped(inspect_text(option, "help"));
    printf("\n");
}

static void print_plugin(const json_t *b, const char *kind)
{
    const json_t *flags = json_object_get(b, "flags"), *row, *of_map;
    const char *key;
    size_t i, k;

    printf("\n%s%s %s - %s\n", kind, inspect_text(b, "name"), inspect_text(b, "version"),
           inspect_text(b, "summary"));
    printf("  %-12s%s\n", "file", inspect_text(b, "path"));
    if (*inspect_text(b, "build_id"))
        printf("  %-12s%s\n", "build id", inspect_text(b, "build_id"));
    printf("  %-12s%s\n", "abi", inspect_text(b, "abi"));
    if (json_array_size(flags)) {
        printf("  %-12s", "flags");
        json_array_foreach(flags, i, row) printf("%s%s", i ? ", " : "", json_string_value(row));
        printf("\n");
    }
    print_viable(b, "transports");
    print_viable(b, "channels");
    json_object_foreach((json_t *)(uintptr_t)json_object_get(b, "probe"), key, row)
        printf("  %-12s%s\n", key, json_string_value(row));
    if (json_object_get(b, "probe_error"))
        printf("  %-12s%s\n", "not known", inspect_text(b, "probe_error"));
    json_array_foreach(json_object_get(b, "options"), i, row)
    {
        if (i == 0)
            printf("  options\n");
        print_option(row, NULL);
        json_array_foreach(json_object_get(row, "keys"), k, of_map)
            print_option(of_map, inspect_text(row, "name"));
    }
}

static void print_summary(const json_t *all)
{
    const json_t *list = json_object_get(all, "backends"), *row;
    const json_t *stores = json_object_get(all, "stores");
    const json_t *observers = json_object_get(all, "observers");
    size_t i;

    printf("tenrec %s, %zu backend%s", inspect_text(all, "version"), json_array_size(list),
           json_array_size(list) == 1 ? "" : "s");
    if (json_array_size(stores))
        printf(", %zu store%s", json_array_size(stores), json_array_size(stores) == 1 ? "" : "s");
    if (json_array_size(observers))
        printf(", %zu observer%s", json_array_size(observers),
               json_array_size(observers) == 1 ? "" : "s");
    json_array_foreach(json_object_get(all, "folders"), i, row)
        printf("%s%s", i ? ", " : "; plugin folders: ", json_string_value(row));
    printf("\n");
}

void info_print(const json_t *all)
{
    const json_t *list = json_object_get(all, "backends"), *row;
    const json_t *stores = json_object_get(all, "stores");
    const json_t *observers = json_object_get(all, "observers");
    static const char *const section[] = { "worker", "security", "observe" };
    const bool whole = json_object_get(all, "folders") != NULL;
    size_t i;

    if (whole)
        print_summary(all);
    for (size_t k = 0; k < sizeof section / sizeof section[0]; k++) {
        if (json_object_get(all, section[k]))
            printf("\n%s\n  options\n", section[k]);
        json_array_foreach(json_object_get(all, section[k]), i, row) print_option(row, NULL);
    }
    json_array_foreach(list, i, row) print_plugin(row, "");
    json_array_foreach(stores, i, row) print_plugin(row, "store ");
    json_array_foreach(observers, i, row) print_plugin(row, "observer ");
    json_array_foreach(json_object_get(all, "unusable"), i, row)
    {
        if (i == 0)
            printf("\nnot usable\n");
        printf("  %s: %s\n", inspect_text(row, "path"), inspect_text(row, "reason"));
    }
    list = json_object_get(all, "values");
    if (list)
        printf("\nin force with %s\n", inspect_text(all, "config"));
    json_array_foreach(list, i, row)
        printf("  %-44s %-28s %s\n", inspect_text(row, "key"), inspect_text(row, "value"),
               inspect_text(row, "source"));
}
