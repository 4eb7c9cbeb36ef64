/* SPDX-License-Identifier: Apache-2.0 */
#include "group/meeting/membership.h"

#include "core/base/clock.h"
#include "core/base/loop.h"
#include "core/base/memory.h"
#include "core/chain/chain.h"
#include "core/config/config.h"
#include "group/meeting/meeting.h"
#include "group/membership/membership.h"

#include <stdlib.h>

enum { REST_MS = 10000 }; /* from the meeting on: short groups keep their connections */

static tenrec_status make_name(struct membership *m, const char *pattern, tenrec_error *err)
{
    tenrec_status st = ranks_make_name(pattern, membership_rank(m), m->name, err);

    if (st == TENREC_EINVAL && err)
        err->code = TENREC_ECONFIG;
    return st == TENREC_EINVAL ? TENREC_ECONFIG : st;
}

/* Deadline for the cleanup after a failure: waits for no member. */
static uint64_t at_once(uint64_t deadline_ns)
{
    const uint64_t now_ns = clock_now_ns();

    return deadline_ns < now_ns ? deadline_ns : now_ns;
}

tenrec_status membership_find(const struct tenrec_chain_options *options, struct loop *loop,
                              uint64_t deadline_ns, struct membership **ret, tenrec_error *err)
{
    struct rendezvous_options o = rendezvous_options_of(options);
    struct membership *m = memory_new(1, sizeof *m);
    tenrec_status st;

    if (!m)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for the group");
    o.loop = m->loop = loop;
    st = rendezvous_open(&o, deadline_ns, &m->rendezvous, err);
    if (st != TENREC_OK)
        tenrec_error_prefix(err, "%s", options->settings->init_method_where);
    if (st == TENREC_OK && m->rendezvous->dynamic)
        snprintf(m->name, sizeof m->name, "%s", m->rendezvous->member_list.name);
    else if (st == TENREC_OK)
        st = make_name(m, o.name, err);
    if (st == TENREC_OK)
        *ret = m;
    else
        membership_drop(m, at_once(deadline_ns));
    return st;
}

/* Lists the members for agents and the process group. */
static tenrec_status list_members(struct membership *m, tenrec_error *err)
{
    size_t n = (size_t)m->members->n;

    m->listed = (uint32_t)n;
    m->member = m->members->member;
    m->members->member = NULL;
    if (m->member)
        return TENREC_OK;
    m->member = memory_new(n, sizeof m->member[0]);
    if (!m->member)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for %zu members", n);
    for (size_t i = 0; i < n; i++) {
        const struct member *one = &m->members->list[i];
        m->member[i] = (struct tenrec_member){ .size = sizeof m->member[i],
                                               .id = one->rank,
                                               .incarnation = (uint64_t)one->incarnation,
                                               .name = one->name,
                                               .address = one->address,
                                               .token = one->token };
    }
    return TENREC_OK;
}

/* Reads the members of `v` (taken on success). Leaves out a member that has left since. */
static tenrec_status read_members(struct membership *m, struct membership_view *v,
                                  uint64_t deadline_ns, tenrec_error *err)
{
    struct members *members = memory_new(1, sizeof *members);
    tenrec_status st;

    if (!members || !(members->list = memory_new(v->n ? v->n : 1, sizeof *members->list))) {
        free(members);
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for %zu members", v->n);
    }
    st = membership_list_records(&m->rendezvous->member_list, v->entry, v->n, deadline_ns,
                                 members->list, err);
    for (size_t i = 0, at = 0; at < v->n && st == TENREC_OK; i++) {
        const struct membership_view_entry e = v->entry[at];
        if (members->list[i].address) {
            members->list[members->n++] = members->list[i];
            at++;
        } else {
            membership_view_remove(v, e.id, e.incarnation, true, -1);
        }
    }
    if (st == TENREC_OK) {
        m->members = members;
        m->view = *v;
        *v = (struct membership_view){ .version = 0 };
    } else {
        free(members->list);
        free(members);
    }
    return st;
}

static tenrec_status join_dynamic(struct membership *m, const char *backend, const char *address,
                                  const struct store_value *extra, uint64_t deadline_ns,
                                  tenrec_error *err)
{
    struct membership_list *r = &m->rendezvous->member_list;
    struct membership_view v = { .version = 0 };
    tenrec_status st;

    r->backend = backend;
    st = membership_list_join(r, address, extra, deadline_ns, &v, err);
    if (st == TENREC_OK)
        st = read_members(m, &v, deadline_ns, err);
    membership_view_finish(&v);
    if (st == TENREC_OK && !membership_view_find(&m->view, r->id, r->incarnation))
        st = tenrec_fail(err, TENREC_EGROUP,
                         "worker '%s' (id %d) was removed from group \"%s\" while it joined, as it "
                         "did not answer",
                         r->name, (int)r->id, r->group);
    return st == TENREC_OK ? list_members(m, err) : st;
}

static tenrec_status visit_dynamic(struct membership *m, uint64_t deadline_ns, tenrec_error *err)
{
    struct membership_view v = { .version = 0 };
    tenrec_status st = membership_list_read(&m->rendezvous->member_list, deadline_ns, &v, err);

    if (st == TENREC_OK)
        st = read_members(m, &v, deadline_ns, err);
    membership_view_finish(&v);
    return st;
}

static void membership_rest(void *arg)
{
    store_rest(((struct membership *)arg)->rendezvous->store);
}

/* A static group needs its store only to leave: thousands of idle connections would take the
 * server's descriptors until then. A store that ends with rank 0 takes no new connections at its
 * end, so the others keep theirs. */
static void membership_rest_later(struct membership *m)
{
    if (!m->rendezvous->member_serves &&
        loop_timer_new(m->loop, membership_rest, m, &m->rests, NULL) == TENREC_OK)
        loop_timer_arm(m->rests, clock_deadline_ms(REST_MS));
}

static tenrec_status join_static(struct membership *m, const char *backend, const char *address,
                                 const struct store_value *extra, uint64_t deadline_ns,
                                 tenrec_error *err)
{
    struct generation *generation = &m->rendezvous->generation;
    tenrec_status st;

    generation->backend = backend;
    st = members_join(generation, m->name, address, extra, deadline_ns, &m->members, err);

    if (st == TENREC_OK)
        st = list_members(m, err);
    if (st == TENREC_OK)
        st = process_group_new_once(generation->store, generation->rank, generation->world,
                                    PROCESS_GROUP_SHUTDOWN, m->member, &m->pg, err);
    if (st == TENREC_OK)
        membership_rest_later(m);
    return st;
}

tenrec_status membership_join(struct membership *m, const char *backend, const char *address,
                              const struct store_value *extra, uint64_t deadline_ns,
                              tenrec_error *err)
{
    return m->rendezvous->dynamic ? join_dynamic(m, backend, address, extra, deadline_ns, err)
                                  : join_static(m, backend, address, extra, deadline_ns, err);
}

tenrec_status membership_visit(const struct tenrec_chain_options *options, const char *store,
                               uint64_t deadline_ns, struct membership **ret, tenrec_error *err)
{
    struct rendezvous_options o = rendezvous_options_of(options);
    struct membership *m = memory_new(1, sizeof *m);
    tenrec_status st;

    if (!m)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for the group");
    if (store)
        o.init_method = store;
    st = rendezvous_visit(&o, deadline_ns, &m->rendezvous, err);
    if (st == TENREC_OK)
        st = m->rendezvous->dynamic
                 ? visit_dynamic(m, deadline_ns, err)
                 : members_await(&m->rendezvous->generation, deadline_ns, &m->members, err);
    if (st == TENREC_OK)
        st = list_members(m, err);
    if (st == TENREC_OK)
        *ret = m;
    else
        membership_drop(m, at_once(deadline_ns));
    return st;
}

static bool has_left(struct membership *m, const struct member *one, uint64_t deadline_ns)
{
    struct membership_view v = { .version = 0 };
    bool left;

    if (membership_list_read(&m->rendezvous->member_list, deadline_ns, &v, NULL) != TENREC_OK)
        return false;
    left = !membership_view_find(&v, one->rank, one->incarnation);
    membership_view_finish(&v);
    return left;
}

static const struct member *membership_record(const struct membership *m, tenrec_peer id)
{
    for (int32_t i = 0; m->members && m->members->list && i < m->members->n; i++)
        if (m->members->list[i].rank == id)
            return &m->members->list[i];
    return NULL;
}

bool membership_process(const struct membership *m, tenrec_peer id, struct member_process *ret)
{
    const struct member *one = membership_record(m, id);

    *ret = (struct member_process){ 0, 0 };
    return one && member_find_process(one, ret);
}

const char *membership_absence(struct membership *m, tenrec_peer id, uint64_t deadline_ns,
                               char *text, size_t room)
{
    const struct generation *generation = &m->rendezvous->generation;
    const struct member *one = membership_record(m, id);
    struct member_process process;

    if (!one)
        return NULL;
    if (m->rendezvous->dynamic
            ? has_left(m, one, deadline_ns)
            : generation_rank_left(generation->base, id, generation->incarnation, deadline_ns))
        snprintf(text, room, "it has left the group");
    else if (member_was_here(one) && !member_runs_here(one))
        snprintf(text, room, "its process %lld does not run any more", (long long)one->pid);
    else if (member_find_process(one, &process) && member_process_is_stopped(&process))
        snprintf(text, room, "its process %lld is stopped", (long long)one->pid);
    else
        return NULL;
    return text;
}

void membership_set_lost(struct membership *m, const struct group_lost *lost)
{
    m->rendezvous->lost = *lost;
    if (m->pg)
        process_group_set_lost(m->pg, lost);
}

tenrec_status membership_mark_left(struct membership *m, uint64_t deadline_ns, tenrec_error *err)
{
    return generation_mark_left(&m->rendezvous->generation, deadline_ns, err);
}

void membership_set_left(struct membership *m)
{
    m->rendezvous->generation.over = true;
}

void membership_drop(struct membership *m, uint64_t deadline_ns)
{
    if (!m)
        return;
    if (m->rests)
        loop_timer_drop(m->rests);
    process_group_close(m->pg, deadline_ns);
    rendezvous_close(m->rendezvous, deadline_ns);
    members_drop(m->members);
    record_texts_drop(m->texts);
    membership_view_finish(&m->view);
    free(m->member);
    free(m);
}

tenrec_peer membership_rank(const struct membership *m)
{
    return m->rendezvous->dynamic ? m->rendezvous->member_list.id : m->rendezvous->generation.rank;
}

uint32_t membership_world(const struct membership *m)
{
    return m->listed ? m->listed : (uint32_t)m->rendezvous->generation.world;
}

size_t membership_ids(const struct membership *m)
{
    return membership_list_of(m) ? RANKS_MAX : membership_world(m);
}

bool membership_is_alone(const struct membership *m)
{
    return !m->rendezvous->dynamic && !m->rendezvous->visitor &&
           m->rendezvous->generation.world == 1;
}

uint64_t membership_incarnation(const struct membership *m)
{
    return (uint64_t)(m->rendezvous->dynamic ? m->rendezvous->member_list.incarnation
                                             : m->rendezvous->generation.incarnation);
}

uint64_t membership_token(const struct membership *m)
{
    return m->rendezvous->dynamic ? m->rendezvous->member_list.token
                                  : m->rendezvous->generation.token;
}

const char *membership_group(const struct membership *m)
{
    return m->rendezvous->dynamic ? m->rendezvous->member_list.group
                                  : m->rendezvous->generation.group;
}

const char *membership_store_name(const struct membership *m)
{
    return tenrec_store_name(m->rendezvous->store);
}

bool membership_serves(const struct membership *m)
{
    return m->rendezvous->server != NULL;
}

uint64_t membership_requests(const struct membership *m)
{
    return membership_serves(m) ? store_server_requests(m->rendezvous->server) : 0;
}

tenrec_status membership_tell_number(struct membership *m, const char *name, int64_t number,
                                     uint64_t deadline_ns, tenrec_error *err)
{
    const struct generation *at = &m->rendezvous->generation;
    char key[64], text[24];

    snprintf(key, sizeof key, "%s/%d", name, at->rank);
    snprintf(text, sizeof text, "%lld", (long long)number);
    return store_set(at->store, key, text, strlen(text), deadline_ns, err);
}

tenrec_status membership_hear_number(struct membership *m, const char *name, tenrec_peer id,
                                     uint64_t deadline_ns, int64_t *ret, tenrec_error *err)
{
    const struct generation *at = &m->rendezvous->generation;
    char key[64], *end;
    const char *keys[] = { key };
    struct store_value text;
    tenrec_status st;

    snprintf(key, sizeof key, "%s/%d", name, id);
    st = store_get_all(at->store, keys, 1, deadline_ns, &text, NULL, err);
    if (st != TENREC_OK) {
        tenrec_error_prefix(err, "number of %s of '%s'", name, m->member[id].name);
        return st;
    }
    *ret = strtoll(text.data, &end, 10);
    if (end == (char *)text.data || *end)
        st = tenrec_fail(err, TENREC_EPROTOCOL, "number of %s of '%s': not a decimal number", name,
                         m->member[id].name);
    free(text.data);
    return st;
}

const char *membership_address(const struct membership *m, tenrec_peer id)
{
    const struct member *one = membership_record(m, id);

    return one ? one->address : "";
}

struct members *membership_take_records(struct membership *m)
{
    struct members *all = m->members;

    m->members = NULL;
    return all;
}

void membership_started(struct membership *m)
{
    if (!m->members || m->rendezvous->visitor || m->rendezvous->dynamic)
        return;
    m->texts = m->members->texts; /* the agents borrow them */
    m->members->texts = NULL;
    members_drop(membership_take_records(m));
}

struct membership_list *membership_list_of(const struct membership *m)
{
    return m->rendezvous->dynamic ? &m->rendezvous->member_list : NULL;
}
