/* SPDX-License-Identifier: Apache-2.0 */
#include "group/rendezvous.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/pause.h"
#include "config/secret.h"
#include "group/groups.h"
#include "group/ranks.h"
#include "group/resolve.h"
#include "group/store_rounds.h"
#include "group/store_tcp_server.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define VISIT_MS 1000
#define LOOK_US 20000 /* between two looks at who still needs our store */
#define GONE_ROOM 32  /* "gone/<rank>" */

/* Between two rounds of a wait the lost members are looked for. */
enum { FIRST_ROUND_MS = 25, LONGEST_ROUND_MS = 200 };

static const char *from_environment(void *arg, const char *name)
{
    (void)arg;
    return secure_getenv(name);
}

/* An init_method that was taken apart. */
struct method {
    enum { BY_ENV, BY_TCP, BY_FILE, BY_MEMORY, BY_OTHER } kind;
    char *text; /* owns; what stands between :// and the '?'; of BY_OTHER with the scheme */
    int32_t rank, world;
};

static tenrec_status read_query(char *query, struct method *ret, tenrec_error *err)
{
    tenrec_status st;
    int64_t n;
    char *save, *item;

    for (item = strtok_r(query, "&", &save); item; item = strtok_r(NULL, "&", &save)) {
        if (strncmp(item, "rank=", 5) == 0) {
            if ((st = launch_number("rank", item + 5, 0, RANKS_MAX - 1, &n, err)) != TENREC_OK)
                return st;
            ret->rank = (int32_t)n;
        } else if (strncmp(item, "world_size=", 11) == 0) {
            if ((st = launch_number("world_size", item + 11, 1, RANKS_MAX, &n, err)) != TENREC_OK)
                return st;
            ret->world = (int32_t)n;
        } else {
            return tenrec_fail(err, TENREC_EINVAL,
                               "\"%.40s\" is neither rank= nor world_size=", item);
        }
    }
    return TENREC_OK;
}

static tenrec_status read_method(const char *text, struct method *ret, tenrec_error *err)
{
    static const struct {
        const char *scheme;
        int kind;
    } kinds[] = { { "env://", BY_ENV },
                  { "tcp://", BY_TCP },
                  { "file://", BY_FILE },
                  { "memory://", BY_MEMORY } };
    const size_t n = sizeof kinds / sizeof kinds[0];
    size_t i, len = 0, other = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_-");
    char *query;

    *ret = (struct method){ .rank = -1, .world = -1, .kind = BY_OTHER };
    for (i = 0; i < n && strncmp(text, kinds[i].scheme, strlen(kinds[i].scheme)) != 0; i++)
        ;
    if (i < n) {
        ret->kind = kinds[i].kind;
        len = strlen(kinds[i].scheme);
    } else if (other == 0 || strncmp(text + other, "://", 3) != 0) {
        return tenrec_fail(err, TENREC_EINVAL,
                           "expected env://, tcp://host:port, file://path, memory://name or "
                           "PLUGIN://...");
    }
    if (!(ret->text = memory_text(text + len)))
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for init_method");
    if (!(query = strchr(ret->text, '?')))
        return TENREC_OK;
    *query = '\0';
    return read_query(query + 1, ret, err);
}

/* The configuration and the URL may say the same, but not different things. */
static tenrec_status merge(const char *what, int32_t given, int32_t in_url, int32_t *ret,
                           tenrec_error *err)
{
    if (given >= 0 && in_url >= 0 && given != in_url)
        return tenrec_fail(err, TENREC_EINVAL, "%s %d is configured, but the url says %d", what,
                           given, in_url);
    *ret = given >= 0 ? given : in_url;
    return TENREC_OK;
}

static bool says_where(launch_lookup_fn *lookup, void *arg)
{
    const char *host = lookup(arg, "MASTER_ADDR"), *port = lookup(arg, "MASTER_PORT");

    return (host && *host) || (port && *port);
}

/* Rank and world size out of the options, the URL and the environment. */
static tenrec_status find_identity(const struct rendezvous_options *o, const struct method *method,
                                   struct launch *ret, tenrec_error *err)
{
    launch_lookup_fn *lookup = o->lookup ? o->lookup : from_environment;
    int32_t rank = -1, world = -1;
    tenrec_status st;

    if ((st = merge("rank", o->rank, method->rank, &rank, err)) != TENREC_OK ||
        (st = merge("world size", o->world > 0 ? o->world : -1, method->world, &world, err)) !=
            TENREC_OK)
        return st;
    if ((st = launch_detect(lookup, o->lookup_arg, rank, world, ret, err)) != TENREC_OK)
        return st;
    if (ret->rank < 0 && ret->world < 0 && method->kind == BY_ENV &&
        !says_where(lookup, o->lookup_arg)) {
        ret->rank = 0;
        ret->world = 1;
    }
    if (ret->world < 0)
        return TENREC_OK; /* dynamic; the rank, if any, is a wish */
    if (ret->rank < 0)
        return tenrec_fail(err, TENREC_EINVAL,
                           "nothing says which rank this process has: set it in the configuration, "
                           "as ?rank= in init_method, or TENREC_RANK");
    return ranks_check(ret->rank, ret->world, err);
}

/* Rank 0 serves, unless the store is there already; all connect. Only a
 * loopback address is bound as it stands: a host's name often means another
 * address on the host itself than elsewhere. */
static tenrec_status open_tcp(const struct rendezvous_options *o, struct rendezvous *r,
                              uint64_t deadline_ns, tenrec_error *err)
{
    const struct launch *l = &r->launch;
    bool local = vantage_is_loopback(l->host);
    const char *host = l->host;
    tenrec_error why;
    tenrec_status st;

    r->member_serves = !l->agent_store;
    if (r->member_serves && l->rank == 0) {
        st = store_server_open(o->loop, local ? l->host : NULL, l->port, &r->server, NULL, &why);
        /* Id 0 of a dynamic group may come when the store is there already. */
        if (st != TENREC_OK && !(r->dynamic && why.os_errno == EADDRINUSE)) {
            if (err)
                *err = why;
            return st;
        }
        if (st == TENREC_OK && !local)
            host = "127.0.0.1";
    }
    return store_tcp_open(host, l->port, deadline_ns, &r->store, err);
}

/* A file whose name can be guessed must be ours. */
static tenrec_status check_owner(const char *path, tenrec_error *err)
{
    struct stat st;

    if (lstat(path, &st) != 0 || st.st_uid == geteuid())
        return TENREC_OK;
    return tenrec_fail(err, TENREC_EOS,
                       "file \"%s\" belongs to another user: remove it, or set "
                       "MASTER_ADDR and MASTER_PORT",
                       path);
}

static tenrec_status open_env(const struct rendezvous_options *o, struct rendezvous *r,
                              uint64_t deadline_ns, tenrec_error *err)
{
    launch_lookup_fn *lookup = o->lookup ? o->lookup : from_environment;
    struct launch *l = &r->launch;
    char name[64];
    tenrec_status st = launch_find_place(lookup, o->lookup_arg, l, err);

    if (st == TENREC_OK && *l->file) {
        if ((st = check_owner(l->file, err)) == TENREC_OK)
            st = store_file_open(l->file, (uint32_t)l->world, deadline_ns, &r->store, err);
        return st;
    }
    if (st == TENREC_OK)
        return open_tcp(o, r, deadline_ns, err);
    if (l->world != 1 || lookup(o->lookup_arg, "MASTER_ADDR") ||
        lookup(o->lookup_arg, "MASTER_PORT"))
        return st;
    /* Alone: nobody else has to find the store. */
    snprintf(l->place, sizeof l->place, "this process alone");
    snprintf(name, sizeof name, "alone-%p", (void *)r);
    return store_memory_open(name, &r->store, err);
}

/* A plugin's store. Nobody of the group serves it, so whoever is ready may go. */
static tenrec_status open_other(const struct rendezvous_options *o, const struct method *method,
                                struct rendezvous *r, uint64_t deadline_ns, tenrec_error *err)
{
    struct launch *l = &r->launch;
    tenrec_status st = o->open_other(o->open_arg, method->text, deadline_ns, &r->store, err);

    if (st == TENREC_OK && *store_at(r->store))
        resolve_split(store_at(r->store), l->host, sizeof l->host, &l->port, NULL);
    return st;
}

static tenrec_status open_store(const struct rendezvous_options *o, const struct method *method,
                                struct rendezvous *r, uint64_t deadline_ns, tenrec_error *err)
{
    struct launch *l = &r->launch;
    tenrec_status st;

    switch (method->kind) {
    case BY_ENV:
        return open_env(o, r, deadline_ns, err);
    case BY_TCP:
        st = resolve_split(method->text, l->host, sizeof l->host, &l->port, err);
        return st == TENREC_OK ? open_tcp(o, r, deadline_ns, err) : st;
    case BY_FILE:
        return store_file_open(method->text, r->dynamic ? 0 : (uint32_t)l->world, deadline_ns,
                               &r->store, err);
    case BY_MEMORY:
        return store_memory_open(method->text, &r->store, err);
    case BY_OTHER:
        return open_other(o, method, r, deadline_ns, err);
    }
    return TENREC_EINVAL;
}

/* Says which init_method it was, without the password that a URL may carry. */
static void blame(const char *what, const char *init, tenrec_error *err)
{
    char *masked = secret_mask(init);

    secret_scrub(err, init);
    tenrec_error_prefix(err, "%s \"%.80s\"", what, masked ? masked : "");
    free(masked);
}

tenrec_status rendezvous_check(const char *init_method, tenrec_error *err)
{
    struct method method = { 0 };
    char host[sizeof((struct launch *)0)->host];
    uint16_t port;
    tenrec_status st = read_method(init_method, &method, err);

    if (st == TENREC_OK && method.kind == BY_TCP)
        st = resolve_split(method.text, host, sizeof host, &port, err);
    else if (st == TENREC_OK && method.kind == BY_FILE && method.text[0] == '\0')
        st = tenrec_fail(err, TENREC_EINVAL, "expected file://path");
    if (st != TENREC_OK)
        blame("init_method", init_method, err);
    free(method.text);
    return st;
}

static void free_all(struct rendezvous *r, uint64_t deadline_ns)
{
    roster_close(&r->roster);
    store_close(r->store, deadline_ns);
    tenrec_store_server_drop(r->server);
    free(r);
}

/* A place in the group. */
static tenrec_status enter(const struct rendezvous_options *o, struct rendezvous *r,
                           uint64_t deadline_ns, tenrec_error *err)
{
    const char *group = o->group ? o->group : "default";
    tenrec_status st;

    if (!r->dynamic)
        return meeting_open(r->store, group, r->launch.run, r->launch.rank, r->launch.world,
                            deadline_ns, &r->meeting, err);
    st = roster_open(r->store, group, r->launch.run, o->lease_ms ? o->lease_ms : LEASE_MS,
                     &r->roster, err);
    if (st == TENREC_OK)
        st = roster_reserve(&r->roster, r->launch.rank, o->name ? o->name : "worker{rank}",
                            deadline_ns, err);
    return st;
}

static void tell(const struct rendezvous *r)
{
    const struct launch *l = &r->launch;

    if (r->dynamic)
        log_line(TENREC_LOG_INFO, "group", "id %d of dynamic group \"%s\" by %s; %s%s%s",
                 (int)r->roster.id, r->roster.group, l->source, tenrec_store_name(r->store),
                 *l->place ? " by " : "", l->place);
    else
        log_line(TENREC_LOG_INFO, "group", "rank %d of %d by %s; %s%s%s", l->rank, l->world,
                 l->source, tenrec_store_name(r->store), *l->place ? " by " : "", l->place);
}

tenrec_status rendezvous_open(const struct rendezvous_options *options, uint64_t deadline_ns,
                              struct rendezvous **ret, tenrec_error *err)
{
    const char *init = options->init_method ? options->init_method : "env://";
    struct rendezvous *r = memory_new(1, sizeof *r);
    struct method method = { 0 };
    tenrec_status st;

    if (!r)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for the rendezvous");
    if ((st = read_method(init, &method, err)) != TENREC_OK ||
        (st = find_identity(options, &method, &r->launch, err)) != TENREC_OK)
        goto out;
    r->dynamic = r->launch.world < 0;
    st = open_store(options, &method, r, deadline_ns, err);
    if (st == TENREC_OK) {
        vantage_find(r->launch.host, r->launch.port, deadline_ns, r->vantage);
        st = enter(options, r, deadline_ns, err);
    }
out:
    if (st != TENREC_OK) {
        blame("init_method", init, err);
        free_all(r, deadline_ns);
    } else {
        tell(r);
        *ret = r;
    }
    free(method.text);
    return st;
}

/* ---- from outside ----------------------------------------------------------- */

/* A file that is not there would be made by opening it as a store. */
static tenrec_status visit_file(const char *path, uint64_t deadline_ns, struct tenrec_store **ret,
                                tenrec_error *err)
{
    if (access(path, R_OK | W_OK) != 0)
        return tenrec_fail_errno(err, TENREC_ENOTFOUND, errno, "no store at \"%s\"", path);
    return store_file_open(path, 0, deadline_ns, ret, err);
}

/* A store that is looked at from outside is there already: when nobody listens
 * for a second, nobody will. One that is only slow gets all the time. */
static tenrec_status visit_tcp(const char *host, uint16_t port, uint64_t deadline_ns,
                               struct tenrec_store **ret, tenrec_error *err)
{
    uint64_t soon = clock_deadline_ms(VISIT_MS);
    tenrec_status st =
        store_tcp_open(host, port, soon < deadline_ns ? soon : deadline_ns, ret, err);

    if (st != TENREC_OK && st != TENREC_ECONNECT && soon < deadline_ns)
        st = store_tcp_open(host, port, deadline_ns, ret, err);
    return st;
}

static tenrec_status visit_env(const struct rendezvous_options *o, struct rendezvous *r,
                               uint64_t deadline_ns, tenrec_error *err)
{
    launch_lookup_fn *lookup = o->lookup ? o->lookup : from_environment;
    struct launch *l = &r->launch;
    tenrec_status st = launch_detect(lookup, o->lookup_arg, -1, -1, l, err);

    if (st == TENREC_OK)
        st = launch_find_place(lookup, o->lookup_arg, l, err);
    if (st != TENREC_OK && l->world < 0 && !lookup(o->lookup_arg, "MASTER_ADDR") &&
        !lookup(o->lookup_arg, "MASTER_PORT"))
        return tenrec_fail(err, TENREC_EINVAL,
                           "nothing says where the group meets: set MASTER_ADDR and MASTER_PORT as "
                           "its workers have them");
    if (st != TENREC_OK)
        return st;
    if (!*l->file)
        return visit_tcp(l->host, l->port, deadline_ns, &r->store, err);
    st = check_owner(l->file, err);
    return st == TENREC_OK ? visit_file(l->file, deadline_ns, &r->store, err) : st;
}

static tenrec_status visit_store(const struct rendezvous_options *o, const struct method *method,
                                 struct rendezvous *r, uint64_t deadline_ns, tenrec_error *err)
{
    struct launch *l = &r->launch;
    tenrec_status st;

    switch (method->kind) {
    case BY_ENV:
        return visit_env(o, r, deadline_ns, err);
    case BY_TCP:
        st = resolve_split(method->text, l->host, sizeof l->host, &l->port, err);
        return st == TENREC_OK ? visit_tcp(l->host, l->port, deadline_ns, &r->store, err) : st;
    case BY_FILE:
        return visit_file(method->text, deadline_ns, &r->store, err);
    case BY_MEMORY:
        return store_memory_open(method->text, &r->store, err);
    case BY_OTHER:
        return open_other(o, method, r, deadline_ns, err);
    }
    return TENREC_EINVAL;
}

static tenrec_status visit_group(const char *group, struct rendezvous *r, uint64_t deadline_ns,
                                 tenrec_error *err)
{
    struct groups_entry e;
    tenrec_status st = ranks_check_name("group name", group, err);

    if (st == TENREC_OK)
        st = groups_find(r->store, group, deadline_ns, &e, err);
    if (st != TENREC_OK)
        return st;
    r->dynamic = e.world == 0;
    return r->dynamic ? roster_open(r->store, group, e.run, LEASE_MS, &r->roster, err)
                      : meeting_visit(r->store, group, deadline_ns, &r->meeting, err);
}

tenrec_status rendezvous_visit(const struct rendezvous_options *options, uint64_t deadline_ns,
                               struct rendezvous **ret, tenrec_error *err)
{
    const char *init = options->init_method ? options->init_method : "env://";
    struct rendezvous *r = memory_new(1, sizeof *r);
    struct method method = { 0 };
    tenrec_status st;

    if (!r)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for the rendezvous");
    if ((st = read_method(init, &method, err)) != TENREC_OK ||
        (st = visit_store(options, &method, r, deadline_ns, err)) != TENREC_OK) {
        blame("store", init, err);
        free_all(r, deadline_ns);
    } else if ((st = visit_group(options->group ? options->group : "default", r, deadline_ns,
                                 err)) != TENREC_OK) {
        free_all(r, deadline_ns);
    } else {
        *ret = r;
    }
    free(method.text);
    return st;
}

/* Ends the wait for the last word of the others when only lost members are missing. */
static tenrec_status all_lost(void *arg, const bool *missing, tenrec_error *err)
{
    const struct rendezvous *r = arg;

    for (int32_t i = 0; i < r->launch.world; i++)
        if (missing[i] && !(r->lost.is_lost && r->lost.is_lost(r->lost.arg, i, 0)))
            return TENREC_OK;
    return tenrec_fail(err, TENREC_EPEER_LOST, "the others were lost");
}

static void await_gone(struct rendezvous *r, uint64_t deadline_ns)
{
    const struct store_rounds rounds = { FIRST_ROUND_MS, LONGEST_ROUND_MS, all_lost, r };
    const size_t n = (size_t)r->launch.world;
    const char **keys = memory_new(n, sizeof *keys + GONE_ROOM);
    bool *missing = memory_new(n, sizeof *missing);
    char *text;

    if (keys && missing) {
        text = (char *)(keys + n);
        for (size_t i = 0; i < n; i++) {
            keys[i] = text + i * GONE_ROOM;
            snprintf(text + i * GONE_ROOM, GONE_ROOM, "gone/%zu", i);
        }
        store_get_rounds(r->meeting.store, keys, n, deadline_ns, &rounds, NULL, missing, NULL);
    }
    free(keys);
    free(missing);
}

/* The last words over a store that goes with rank 0. "gone/<rank>" is the last that each
 * rank tells the store: a rank that came back to it later would find the store of the next
 * start at the same address. */
static void part(struct rendezvous *r, uint64_t deadline_ns)
{
    struct tenrec_store *s = r->meeting.store;
    char key[GONE_ROOM];
    int64_t n;

    if (r->server) {
        /* Makes sure of a connection while one can still be had. */
        store_num_keys(s, deadline_ns, &n, NULL);
        store_server_stop_listening(r->server);
        store_set(s, "closing", "", 0, deadline_ns, NULL);
    } else {
        store_wait_all(s, (const char *[]){ "closing" }, 1, deadline_ns, NULL, NULL);
    }
    meeting_leave(&r->meeting, deadline_ns);
    snprintf(key, sizeof key, "gone/%d", r->launch.rank);
    if (store_set(s, key, "", 0, deadline_ns, NULL) == TENREC_OK && r->server)
        await_gone(r, deadline_ns);
}

/* Out of a dynamic group. Who serves its store stays while others need that. */
static void part_dynamic(struct rendezvous *r, uint64_t deadline_ns)
{
    struct pause pause = { LOOK_US, LOOK_US };
    struct view v;
    size_t left;

    if (r->roster.id < 0)
        return; /* a visitor */
    if (roster_leave(&r->roster, deadline_ns, &v, NULL) == TENREC_OK)
        view_finish(&v);
    while (r->server && !clock_passed(deadline_ns) &&
           roster_read(&r->roster, deadline_ns, &v, NULL) == TENREC_OK) {
        left = v.n;
        view_finish(&v);
        if (left == 0 || !pause_take(&pause, deadline_ns))
            break;
    }
}

void rendezvous_close(struct rendezvous *r, uint64_t deadline_ns)
{
    if (!r)
        return;
    if (r->dynamic)
        part_dynamic(r, deadline_ns);
    if (r->member_serves && r->meeting.end == MEETING_LEFT && r->launch.world > 1)
        part(r, deadline_ns);
    meeting_close(&r->meeting, deadline_ns);
    free_all(r, deadline_ns);
}
