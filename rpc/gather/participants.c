/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/gather/gather_set.h"

#include "core/base/memory.h"
#include "rpc/future/worker.h"

#include <endian.h>
#include <inttypes.h>
#include <stdlib.h>
#include <xxhash.h>

#define LINE_EXTRA 20 /* bytes of a line for the incarnation and the line end */

/* All members. No name begins with it. In a dynamic group the hash follows it. */
#define EVERYBODY "*"

struct participants *participants_share(struct participants *s)
{
    atomic_fetch_add(&s->shares, 1);
    return s;
}

void participants_drop(struct participants *s)
{
    if (!s || atomic_fetch_sub(&s->shares, 1) > 1)
        return;
    free(s->id);
    free(s->text);
    free(s);
}

bool participants_has(const struct participants *s, tenrec_peer id)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->id[i] == id)
            return true;
    return false;
}

static int by_id(const void *a, const void *b, void *unused)
{
    const tenrec_peer x = *(const tenrec_peer *)a, y = *(const tenrec_peer *)b;

    (void)unused;
    return (x > y) - (x < y);
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

static void hash_bytes(const void *data, size_t len, struct set_hash *ret)
{
    const XXH128_hash_t hash = XXH3_128bits(data, len);

    snprintf(ret->digits, sizeof ret->digits, "%016" PRIx64 "%016" PRIx64, hash.high64, hash.low64);
}

bool participants_are_hashed(const char *text)
{
    return text[0] == EVERYBODY[0];
}

bool participants_hash(const char *text, struct set_hash *ret)
{
    if (!participants_are_hashed(text))
        hash_bytes(text, strlen(text), ret);
    else if (strlen(text + 1) + 1 == sizeof ret->digits)
        memcpy(ret->digits, text + 1, sizeof ret->digits);
    else
        return false;
    return true;
}

/* The hash of the ids and lives, and the text. The members of a static group never change. */
static tenrec_status nameset_write_whole(const struct peers *p, struct participants *s,
                                         tenrec_error *err)
{
    uint64_t *member = memory_new(s->n, 2 * sizeof *member);
    char text[1 + sizeof s->hash.digits];

    for (size_t i = 0; member && i < s->n; i++) {
        member[2 * i] = htole64((uint64_t)s->id[i]);
        member[2 * i + 1] = htole64(peers_incarnation(p, s->id[i]));
    }
    if (member) {
        hash_bytes(member, s->n * 2 * sizeof *member, &s->hash);
        snprintf(text, sizeof text, EVERYBODY "%s", p->lives ? s->hash.digits : "");
        s->text = memory_text(text);
    }
    free(member);
    return s->text ? TENREC_OK
                   : tenrec_fail(err, TENREC_ENOMEM, "no memory for a set of %zu names", s->n);
}

static tenrec_status nameset_write_lines(const struct peers *p, struct participants *s,
                                         tenrec_error *err)
{
    size_t len = 1, at = 0;

    for (size_t i = 0; i < s->n; i++)
        len += strlen(peers_name(p, s->id[i])) + LINE_EXTRA;
    s->text = memory_new(len, 1);
    for (size_t i = 0; s->text && i < s->n; i++)
        at += (size_t)write_line(p, s->id[i], s->text + at, len - at);
    if (s->text)
        hash_bytes(s->text, at, &s->hash);
    return s->text ? TENREC_OK
                   : tenrec_fail(err, TENREC_ENOMEM, "no memory for a set of %zu names", s->n);
}

/* The whole group has the order of the ids: to sort thousands of names would take most of the time
 * of its first barrier. */
static void nameset_sort(const struct peers *p, struct participants *s)
{
    s->whole = !p->lives && s->n == atomic_load(&p->n);
    qsort_r(s->id, s->n, sizeof s->id[0], s->whole ? by_id : by_name, (void *)(uintptr_t)p);
}

/* Finds this worker in the sorted set, and writes the text. */
static tenrec_status nameset_complete(const struct peers *p, struct participants *s,
                                      tenrec_error *err)
{
    bool have_me = false;

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
    return s->whole ? nameset_write_whole(p, s, err) : nameset_write_lines(p, s, err);
}

/* Lists all workers of the group, by id. errors: ENOMEM */
static tenrec_status list_all(const struct peers *p, struct participants *s, tenrec_error *err)
{
    const size_t room = atomic_load(&p->top);

    s->id = memory_new(room, sizeof s->id[0]);
    if (!s->id)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for a set of %zu names", room);
    s->n = 0;
    s->whole = true;
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

static tenrec_status list_names(const struct peers *p, const char *const *names, size_t n,
                                struct participants *s, tenrec_error *err)
{
    tenrec_status st = TENREC_OK;

    if (!(s->id = memory_new(n, sizeof s->id[0])))
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for a set of %zu names", n);
    s->n = n;
    for (size_t i = 0; i < n && st == TENREC_OK; i++)
        st = names[i] ? peers_find(p, names[i], &s->id[i], err)
                      : tenrec_fail(err, TENREC_EINVAL, "name %zu of the set is NULL", i);
    if (st == TENREC_OK)
        nameset_sort(p, s);
    return st;
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
    if (st == TENREC_OK)
        nameset_sort(p, s);
    return st;
}

/* errors: ENOMEM */
static tenrec_status participants_new(const struct peers *p, struct participants **ret,
                                      tenrec_error *err)
{
    *ret = memory_new(1, sizeof **ret);
    if (!*ret)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for a set of names");
    atomic_init(&(*ret)->shares, 1);
    (*ret)->changes = atomic_load(&p->changes); /* first */
    return TENREC_OK;
}

/* Completes *ret once it has its ids, or drops it. */
static tenrec_status participants_end(const struct peers *p, tenrec_status st,
                                      struct participants **ret, tenrec_error *err)
{
    if (st == TENREC_OK)
        st = nameset_complete(p, *ret, err);
    if (st == TENREC_OK)
        return st;
    participants_drop(*ret);
    *ret = NULL;
    return st;
}

tenrec_status participants_of_names(const struct peers *p, const char *const *names, size_t n,
                                    struct participants **ret, tenrec_error *err)
{
    tenrec_status st = participants_new(p, ret, err);

    if (st == TENREC_OK)
        st = names ? list_names(p, names, n, *ret, err) : list_all(p, *ret, err);
    return participants_end(p, st, ret, err);
}

tenrec_status participants_of_lines(const struct peers *p, const char *lines,
                                    struct participants **ret, tenrec_error *err)
{
    tenrec_status st = participants_new(p, ret, err);
    char *copy;

    if (st != TENREC_OK)
        return st;
    copy = memory_text(lines);
    st = copy ? list_lines(p, copy, *ret, err)
              : tenrec_fail(err, TENREC_ENOMEM, "no memory for a set of names");
    free(copy);
    return participants_end(p, st, ret, err);
}
