/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/gather/gather_set.h"

#include "core/base/memory.h"
#include "rpc/future/worker.h"

#include <inttypes.h>
#include <stdlib.h>

#define LINE_EXTRA 20 /* bytes of a line for the incarnation and the line end */

#define EVERYBODY "*" /* no name */

void participants_finish(struct participants *s)
{
    if (s->borrowed)
        return;
    free(s->id);
    free(s->key);
}

static int by_name(const void *a, const void *b, void *arg)
{
    const struct peers *p = arg;

    return strcmp(peers_name(p, *(const tenrec_peer *)a), peers_name(p, *(const tenrec_peer *)b));
}

/* Where names are reused, the incarnation tells them apart. Returns the number of bytes. */
static int write_line(const struct peers *p, tenrec_peer id, char *ret, size_t room)
{
    if (!p->lives)
        return snprintf(ret, room, "%s\n", peers_name(p, id));
    return snprintf(ret, room, "%s#%" PRIx64 "\n", peers_name(p, id), peers_incarnation(p, id));
}

/* Returns true if the set is the whole of a static group, whose members never change. */
static bool nameset_is_whole(const struct peers *p, const struct participants *s)
{
    return !p->lives && p->members > 1 && s->n == atomic_load(&p->n);
}

/* Writes the key of a sorted set. */
static tenrec_status nameset_write(const struct peers *p, struct participants *s, tenrec_error *err)
{
    size_t len = 1, at = 0;

    if (nameset_is_whole(p, s)) {
        s->key = memory_text(EVERYBODY);
    } else {
        for (size_t i = 0; i < s->n; i++)
            len += strlen(peers_name(p, s->id[i])) + LINE_EXTRA;
        s->key = memory_new(len, 1);
        for (size_t i = 0; s->key && i < s->n; i++)
            at += (size_t)write_line(p, s->id[i], s->key + at, len - at);
    }
    return s->key ? TENREC_OK
                  : tenrec_fail(err, TENREC_ENOMEM, "no memory for a set of %zu names", s->n);
}

/* Sorts the ids and writes the key. */
static tenrec_status nameset_order(const struct peers *p, struct participants *s, tenrec_error *err)
{
    bool have_me = false;

    qsort_r(s->id, s->n, sizeof s->id[0], by_name, (void *)(uintptr_t)p);
    for (size_t i = 0; i < s->n; i++) {
        if (s->id[i] == p->me)
            s->me = i;
        have_me = have_me || s->id[i] == p->me;
        if (i > 0 && s->id[i] == s->id[i - 1])
            return tenrec_fail(err, TENREC_EINVAL, "worker '%s' is named twice",
                               peers_name(p, s->id[i]));
    }
    if (!have_me)
        return tenrec_fail(err, TENREC_EINVAL, "this worker ('%s') is not in the set",
                           peers_name(p, p->me));
    return nameset_write(p, s, err);
}

/* Lists all workers of the group. errors: ENOMEM */
static tenrec_status list_all(const struct peers *p, struct participants *s, tenrec_error *err)
{
    const size_t room = atomic_load(&p->top);

    s->id = memory_new(room, sizeof s->id[0]);
    if (!s->id)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for a set of %zu names", room);
    s->n = 0;
    for (size_t i = 0; i < room; i++)
        if (peers_has(p, (tenrec_peer)i))
            s->id[s->n++] = (tenrec_peer)i;
    return TENREC_OK;
}

/* Finds the worker of a line, and cuts the incarnation off. */
static tenrec_status find_line(const struct peers *p, char *line, tenrec_peer *ret,
                               tenrec_error *err)
{
    char *life = strchr(line, '#');
    tenrec_status st;

    if (life)
        *life++ = '\0';
    st = peers_find(p, line, ret, err);
    if (st == TENREC_OK && life && strtoull(life, NULL, 16) != peers_incarnation(p, *ret))
        st = tenrec_fail(err, TENREC_EGROUP,
                         "a gather names another incarnation of '%s' than the present one", line);
    return st;
}

tenrec_status participants_of_names(const struct peers *p, const char *const *names, size_t n,
                                    struct participants *ret, tenrec_error *err)
{
    tenrec_status st = TENREC_OK;

    *ret = (struct participants){ .n = n };
    if (!names)
        st = list_all(p, ret, err);
    else if (!(ret->id = memory_new(n, sizeof ret->id[0])))
        st = tenrec_fail(err, TENREC_ENOMEM, "no memory for a set of %zu names", n);
    for (size_t i = 0; names && i < n && st == TENREC_OK; i++) {
        if (!names[i])
            st = tenrec_fail(err, TENREC_EINVAL, "name %zu of the set is NULL", i);
        else
            st = peers_find(p, names[i], &ret->id[i], err);
    }
    return st == TENREC_OK ? nameset_order(p, ret, err) : st;
}

static tenrec_status list_lines(const struct peers *p, char *lines, struct participants *s,
                                tenrec_error *err)
{
    char *save = NULL;
    tenrec_status st = TENREC_OK;
    size_t n = 1; /* the last name may lack its end of line */

    for (const char *c = lines; *c; c++)
        n += *c == '\n';
    if (!(s->id = memory_new(n, sizeof s->id[0])))
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for a set of %zu names", n);
    for (char *name = strtok_r(lines, "\n", &save); name && st == TENREC_OK;
         name = strtok_r(NULL, "\n", &save))
        st = find_line(p, name, &s->id[s->n++], err);
    return st;
}

tenrec_status participants_of_key(const struct peers *p, const char *key, struct participants *ret,
                                  tenrec_error *err)
{
    char *copy;
    tenrec_status st;

    if (strcmp(key, EVERYBODY) == 0 && !p->lives)
        return participants_of_names(p, NULL, 0, ret, err);
    *ret = (struct participants){ .n = 0 };
    if (!(copy = memory_text(key)))
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for a set of names");
    st = list_lines(p, copy, ret, err);
    free(copy);
    return st == TENREC_OK ? nameset_order(p, ret, err) : st;
}
