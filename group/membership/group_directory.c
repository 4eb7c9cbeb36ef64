/* SPDX-License-Identifier: Apache-2.0 */
#include "group/membership/group_directory.h"

#include "core/base/text.h"
#include "group/membership/membership.h"
#include "group/store/store.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* No key of a group: these begin with "tenrec/". One line for each group, the latest
 * first: "<name> <world> <incarnation> <run>". */
#define KEY "tenrec.groups"

enum { MOST = 32, LINE_MAX_BYTES = 320, TRIES = 64 };

static const char *line_end(const char *line)
{
    return line + strcspn(line, "\n");
}

static bool line_is_of(const char *line, const char *name)
{
    size_t len = strlen(name);

    return strncmp(line, name, len) == 0 && line[len] == ' ';
}

/* Returns the list `old` with `line`, the one of group `name`, in front; NULL: out of memory. */
static char *list_with(const char *name, const char *line, const char *old)
{
    char *text = malloc(strlen(line) + strlen(old) + 2);
    int kept = 1;
    size_t n;

    if (!text)
        return NULL;
    n = strlen(line);
    memcpy(text, line, n);
    for (const char *end; *old && kept < MOST; old = *end ? end + 1 : end) {
        size_t len;
        end = line_end(old);
        len = (size_t)(end - old);
        if (len == 0 || line_is_of(old, name))
            continue;
        memcpy(text + n, old, len);
        text[n + len] = '\n';
        n += len + 1;
        kept++;
    }
    text[n] = '\0';
    return text;
}

tenrec_status group_directory_announce(struct tenrec_store *s, const char *name, const char *run,
                                       int32_t world, int64_t incarnation, uint64_t deadline_ns,
                                       tenrec_error *err)
{
    char line[LINE_MAX_BYTES], *seen = NULL, *mine, *now;
    tenrec_status st;
    bool done;

    snprintf(line, sizeof line, "%s %d %" PRId64 " %s\n", name, (int)world, incarnation, run);
    /* Another worker may change the list between the read and the swap. */
    for (int i = 0; i < TRIES; i++) {
        if (!(mine = list_with(name, line, seen ? seen : ""))) {
            free(seen);
            return tenrec_fail(err, TENREC_ENOMEM, "no memory for the list of groups");
        }
        st = store_swap_text(s, KEY, seen ? seen : "", mine, deadline_ns, &now, err);
        free(seen);
        done = st != TENREC_OK || strcmp(now, mine) == 0;
        free(mine);
        seen = now;
        if (done) {
            free(seen);
            return st;
        }
    }
    free(seen);
    return tenrec_fail(err, TENREC_EAGAIN, "the list of groups in %s changes too often",
                       tenrec_store_name(s));
}

static bool read_line(const char *line, struct group_directory_entry *ret)
{
    long long incarnation;
    int world, used = 0;

    *ret = (struct group_directory_entry){ .world = 0 };
    if (sscanf(line, "%127[^ \n] %d %lld%n", ret->name, &world, &incarnation, &used) != 3 ||
        line[used] != ' ' || world < 0 || world > RANKS_MAX || incarnation < 1)
        return false;
    line += used + 1;
    snprintf(ret->run, sizeof ret->run, "%.*s", (int)(line_end(line) - line), line);
    ret->world = world;
    ret->incarnation = incarnation;
    return true;
}

static tenrec_status fail_unknown(const struct tenrec_store *s, const char *list, const char *name,
                                  tenrec_error *err)
{
    struct group_directory_entry e;
    char all[160] = "";
    struct suggestion near;
    size_t n = 0;

    suggest_init(&near, name);
    for (const char *line = list; *line; line = line_end(line) + (*line_end(line) != '\0')) {
        if (!read_line(line, &e))
            continue;
        suggest_try(&near, e.name);
        if (n < sizeof all)
            n += (size_t)snprintf(all + n, sizeof all - n, "%s\"%s\"", n ? ", " : "", e.name);
    }
    if (!*all)
        return tenrec_fail(err, TENREC_EGROUP, "%s has no group of workers", tenrec_store_name(s));
    return tenrec_fail(err, TENREC_EGROUP, "%s has no group \"%s\"%s; its groups are %s%s",
                       tenrec_store_name(s), name, suggest_guess(&near), all,
                       n < sizeof all ? "" : " ...");
}

tenrec_status group_directory_find(struct tenrec_store *s, const char *name, uint64_t deadline_ns,
                                   struct group_directory_entry *ret, tenrec_error *err)
{
    struct store_value value;
    const char *list, *line;
    tenrec_status st = ranks_check_name("group name", name, err);

    if (st != TENREC_OK || (st = store_read(s, KEY, deadline_ns, &value, err)) != TENREC_OK)
        return st;
    list = line = value.data ? value.data : "";
    while (*line && !line_is_of(line, name))
        line = line_end(line) + (*line_end(line) != '\0');
    if (!*line)
        st = fail_unknown(s, list, name, err);
    else if (!read_line(line, ret))
        st = tenrec_fail(err, TENREC_EPROTOCOL,
                         "malformed entry in the list of groups of %s: \"%s\"",
                         tenrec_store_name(s), name);
    free(value.data);
    return st;
}

tenrec_status group_directory_part(struct tenrec_store *s, const char *name, const char *run,
                                   struct tenrec_store **ret, tenrec_error *err)
{
    char text[400];
    tenrec_status st = ranks_check_name("group name", name, err);

    if (st != TENREC_OK)
        return st;
    snprintf(text, sizeof text, "tenrec/%s%s%s", name, *run ? "/" : "", run);
    return tenrec_store_open_prefix(s, text, ret, err);
}
