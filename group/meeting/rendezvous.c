/* SPDX-License-Identifier: Apache-2.0 */
#include "group/meeting/meeting.h"

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/memory.h"
#include "core/base/resolve.h"
#include "core/chain/chain.h"
#include "core/config/config.h"
#include "group/meeting/launch.h"
#include "group/membership/membership.h"
#include "group/store/store.h"
#include "security/proof/security.h"

#include <stdlib.h>

#define POLL_US 20000 /* between two polls for members that still need our store */
#define LEASE_MS 5000 /* of a visitor, which never locks */
#define GONE_ROOM 32  /* "gone/<rank>" */

/* A wait checks for lost members between two rounds. */
enum { FIRST_ROUND_MS = 25, LONGEST_ROUND_MS = 200 };

enum { GONE_MS = 700 }; /* between two last keys; with a round, less than a second */

/* Merges a value of the configuration with one of the URL; both may be given if they are equal. */
static tenrec_status rendezvous_merge(const char *name, int32_t given, int32_t in_url, int32_t *ret,
                                      tenrec_error *err)
{
    if (given >= 0 && in_url >= 0 && given != in_url)
        return tenrec_fail(err, TENREC_EINVAL, "%s %d is configured, but %d is in the url", name,
                           given, in_url);
    *ret = given >= 0 ? given : in_url;
    return TENREC_OK;
}

static bool has_master_address(void)
{
    return launch_variable("MASTER_ADDR") || launch_variable("MASTER_PORT");
}

/* Determines rank and world size from the options, the URL and the environment. */
static tenrec_status find_identity(const struct rendezvous_options *o,
                                   const struct init_method *method, struct launch *ret,
                                   tenrec_error *err)
{
    int32_t rank = -1, world = -1, in_url = method->rank;
    tenrec_status st = in_url == INIT_RANK_OF_HOST ? launch_host_rank(&in_url, err) : TENREC_OK;

    if (st != TENREC_OK ||
        (st = rendezvous_merge("rank", o->rank, in_url, &rank, err)) != TENREC_OK ||
        (st = rendezvous_merge("world size", o->world > 0 ? o->world : -1, method->world, &world,
                               err)) != TENREC_OK)
        return st;
    if ((st = launch_detect(rank, world, ret, err)) != TENREC_OK)
        return st;
    if (ret->rank < 0 && ret->world < 0 && method->kind == INIT_ENV && !has_master_address()) {
        ret->rank = 0;
        ret->world = 1;
    }
    if (ret->world < 0)
        return TENREC_OK; /* dynamic; the rank, if any, is a preferred id */
    if (ret->rank < 0)
        return tenrec_fail(err, TENREC_EINVAL,
                           "the rank of this process is missing: set worker.rank in the "
                           "configuration, ?rank= in init_method, or TENREC_RANK");
    return ranks_check(ret->rank, ret->world, err);
}

tenrec_status rendezvous_check(const char *init_method, tenrec_error *err)
{
    struct init_method method;
    char host[sizeof((struct launch *)0)->host];
    uint16_t port;
    tenrec_status st = init_method_read(init_method, &method, err);

    if (st == TENREC_OK && method.kind == INIT_TCP)
        st = resolve_split(method.text, host, sizeof host, &port, err);
    else if (st == TENREC_OK && method.kind == INIT_FILE && method.text[0] == '\0')
        st = tenrec_fail(err, TENREC_EINVAL, "expected file://path");
    if (st != TENREC_OK)
        init_method_blame("init_method", init_method, err);
    init_method_finish(&method);
    return st;
}

tenrec_status rendezvous_check_settings(const struct config_settings *s, tenrec_error *err)
{
    if (rendezvous_check(s->init_method, err) == TENREC_OK)
        return TENREC_OK;
    tenrec_error_prefix(err, "%s", s->init_method_where);
    if (err)
        err->code = TENREC_ECONFIG;
    return TENREC_ECONFIG;
}

static tenrec_status rendezvous_add(const struct tenrec_config *config,
                                    const struct config_settings *s, void **ret, tenrec_error *err)
{
    (void)config, (void)ret;
    return rendezvous_check_settings(s, err);
}

static void rendezvous_remove(void *made)
{
    (void)made;
}

const struct chain_addition rendezvous_addition = { rendezvous_add, rendezvous_remove, NULL };

struct rendezvous_options rendezvous_options_of(const struct tenrec_chain_options *o)
{
    const struct config_settings *s = o->settings;

    return (struct rendezvous_options){ .init_method = s->init_method,
                                        .group = s->group,
                                        .rank = (int32_t)s->rank,
                                        .world = (int32_t)s->world_size,
                                        .stores = chain_options_added(o, &stores_addition),
                                        .name = s->name,
                                        .lease_ms = s->group_lease_ms,
                                        .security = chain_options_added(o, &security_addition) };
}

static void rendezvous_free(struct rendezvous *r, uint64_t deadline_ns)
{
    membership_list_close(&r->member_list);
    store_close(r->store, deadline_ns);
    tenrec_store_server_drop(r->server);
    free(r);
}

/* Reserves our place in the group. */
static tenrec_status rendezvous_enter(const struct rendezvous_options *o, struct rendezvous *r,
                                      uint64_t deadline_ns, tenrec_error *err)
{
    tenrec_status st;

    if (!r->dynamic)
        return generation_open(r->store, o->group, r->launch.run, r->launch.rank, r->launch.world,
                               deadline_ns, &r->generation, err);
    st = membership_list_open(r->store, o->group, r->launch.run, o->lease_ms, &r->member_list, err);
    if (st == TENREC_OK)
        st = membership_list_reserve(&r->member_list, r->launch.rank, o->name, deadline_ns, err);
    return st;
}

static void rendezvous_log(const struct rendezvous *r)
{
    const struct launch *l = &r->launch;

    if (r->dynamic)
        log_line(TENREC_LOG_INFO, "group", "id %d of dynamic group \"%s\" by %s; %s%s%s",
                 (int)r->member_list.id, r->member_list.group, l->source,
                 tenrec_store_name(r->store), *l->store_source ? " by " : "", l->store_source);
    else
        log_line(TENREC_LOG_INFO, "group", "rank %d of %d by %s; %s%s%s", l->rank, l->world,
                 l->source, tenrec_store_name(r->store), *l->store_source ? " by " : "",
                 l->store_source);
}

tenrec_status rendezvous_open(const struct rendezvous_options *o, uint64_t deadline_ns,
                              struct rendezvous **ret, tenrec_error *err)
{
    struct rendezvous *r = memory_new(1, sizeof *r);
    struct init_method method;
    tenrec_status st;

    if (!r)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for the rendezvous");
    if ((st = init_method_read(o->init_method, &method, err)) != TENREC_OK ||
        (st = find_identity(o, &method, &r->launch, err)) != TENREC_OK)
        goto out;
    r->dynamic = r->launch.world < 0;
    if (o->store_only && !r->dynamic) {
        st = tenrec_fail(err, TENREC_EGROUP,
                         "a world size of %d makes the group static, which is not possible here: "
                         "give none",
                         r->launch.world);
        goto out;
    }
    st = rendezvous_store_open(o, &method, r, deadline_ns, err);
    if (st == TENREC_OK) {
        advertise_address_find(r->launch.host, r->launch.port, deadline_ns, r->own_address);
        st = o->store_only ? TENREC_OK : rendezvous_enter(o, r, deadline_ns, err);
        r->visitor = o->store_only; /* there is no group to leave */
    }
out:
    if (st != TENREC_OK) {
        init_method_blame("init_method", o->init_method, err);
        rendezvous_free(r, deadline_ns);
    } else {
        if (!o->store_only)
            rendezvous_log(r);
        *ret = r;
    }
    init_method_finish(&method);
    return st;
}

/* ---- from outside ----------------------------------------------------------- */

static tenrec_status visit_group(const char *group, struct rendezvous *r, uint64_t deadline_ns,
                                 tenrec_error *err)
{
    struct group_directory_entry e;
    tenrec_status st = group_directory_find(r->store, group, deadline_ns, &e, err);

    if (st != TENREC_OK)
        return st;
    r->dynamic = e.world == 0;
    return r->dynamic ? membership_list_open(r->store, group, e.run, LEASE_MS, &r->member_list, err)
                      : generation_visit(r->store, &e, &r->generation, err);
}

tenrec_status rendezvous_visit(const struct rendezvous_options *o, uint64_t deadline_ns,
                               struct rendezvous **ret, tenrec_error *err)
{
    struct rendezvous *r = memory_new(1, sizeof *r);
    struct init_method method;
    tenrec_status st;

    if (!r)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for the rendezvous");
    r->visitor = true;
    if ((st = init_method_read(o->init_method, &method, err)) != TENREC_OK ||
        (st = rendezvous_store_open(o, &method, r, deadline_ns, err)) != TENREC_OK)
        init_method_blame("store", o->init_method, err);
    else
        st = visit_group(o->group, r, deadline_ns, err);
    if (st == TENREC_OK) /* for the interface of link-local addresses */
        advertise_address_find(r->launch.host, r->launch.port, deadline_ns, r->own_address);
    if (st == TENREC_OK)
        *ret = r;
    else
        rendezvous_free(r, deadline_ns);
    init_method_finish(&method);
    return st;
}

/* The wait for the last keys. */
struct gone_wait {
    const struct rendezvous *r;
    int32_t n_missing; /* in the last round ... */
    uint64_t since_ns; /* ... and since then */
};

/* Ends the wait when only lost members are missing, or when no key has arrived for a while: the
 * last key of a rank may be lost with its connection, and that rank has ended. */
static tenrec_status gone_check(void *arg, const bool *missing, tenrec_error *err)
{
    struct gone_wait *w = arg;
    const struct group_lost *lost = &w->r->lost;
    int32_t n_missing = 0, n_lost = 0;

    for (int32_t i = 0; i < w->r->launch.world; i++) {
        n_missing += missing[i];
        n_lost += missing[i] && lost->is_lost && lost->is_lost(lost->arg, i, 0);
    }
    if (n_missing != w->n_missing) {
        w->n_missing = n_missing;
        w->since_ns = clock_now_ns();
    }
    if (n_lost < n_missing && !clock_passed(clock_later_ms(w->since_ns, GONE_MS)))
        return TENREC_OK;
    return tenrec_fail(err, TENREC_EPEER_LOST, "all missing members were lost");
}

static void await_gone(struct rendezvous *r, uint64_t deadline_ns)
{
    struct gone_wait w = { .r = r };
    const struct store_rounds rounds = { FIRST_ROUND_MS, LONGEST_ROUND_MS, gone_check, &w };
    const size_t n = (size_t)r->launch.world;
    const char **keys = store_numbered_keys("gone", n);
    bool *missing = memory_new(n, sizeof *missing);

    if (keys && missing)
        store_get_rounds(r->generation.store, keys, n, deadline_ns, &rounds, NULL, missing, NULL);
    free(keys);
    free(missing);
}

/* Leaves a static group whose store ends with rank 0. "gone/<rank>" is the last key that each rank
 * writes: a later one might go to the store of the next start at the same address. */
static void rendezvous_leave_static(struct rendezvous *r, uint64_t deadline_ns)
{
    struct tenrec_store *s = r->generation.store;
    char key[GONE_ROOM];
    int64_t n;

    if (r->server) {
        /* Opens a connection while the server still accepts one. */
        store_num_keys(s, deadline_ns, &n, NULL);
        store_server_stop_listening(r->server);
    }
    if (r->launch.rank == 0) {
        store_set(s, "closing", "", 0, deadline_ns, NULL);
    } else {
        store_get_all(s, (const char *[]){ "closing" }, 1, deadline_ns, NULL, NULL, NULL);
    }
    generation_leave(&r->generation, deadline_ns);
    snprintf(key, sizeof key, "gone/%d", r->launch.rank);
    if (store_set(s, key, "", 0, deadline_ns, NULL) == TENREC_OK && r->server)
        await_gone(r, deadline_ns);
}

/* Leaves a dynamic group. A member that serves the store waits until all members have left. */
static void rendezvous_leave_dynamic(struct rendezvous *r, uint64_t deadline_ns)
{
    struct backoff pause = { POLL_US, POLL_US };
    struct membership_view v;
    size_t left;

    if (r->visitor)
        return;
    if (membership_list_leave(&r->member_list, deadline_ns, &v, NULL) == TENREC_OK)
        membership_view_finish(&v);
    while (r->server && !clock_passed(deadline_ns) &&
           membership_list_read(&r->member_list, deadline_ns, &v, NULL) == TENREC_OK) {
        left = v.n;
        membership_view_finish(&v);
        if (left == 0 || !backoff_take(&pause, deadline_ns))
            break;
    }
}

void rendezvous_close(struct rendezvous *r, uint64_t deadline_ns)
{
    if (!r)
        return;
    if (r->dynamic)
        rendezvous_leave_dynamic(r, deadline_ns);
    if (r->member_serves && r->generation.end == GENERATION_LEFT && r->launch.world > 1)
        rendezvous_leave_static(r, deadline_ns);
    generation_close(&r->generation, deadline_ns);
    rendezvous_free(r, deadline_ns);
}
