#include "rpc/membership.h"

#include "base/memory.h"
#include "config/config.h"
#include "group/members.h"
#include "group/rendezvous.h"

#include <stdlib.h>

struct membership {
    struct rendezvous *rendezvous;
    struct members *members;
    struct tenrec_process_group *pg;
    const char **names;           /* by rank; borrowed from members */
    struct tenrec_member *member; /* likewise */
    char name[TENREC_NAME_MAX + 1];
};

/* The name that the config gives, with our rank for "{rank}". */
static tenrec_status make_name(struct membership *m, const char *pattern, tenrec_error *err)
{
    const char *mark = strstr(pattern, "{rank}");
    int n;

    if (mark)
        n = snprintf(m->name, sizeof m->name, "%.*s%d%s", (int)(mark - pattern), pattern,
                     membership_rank(m), mark + strlen("{rank}"));
    else
        n = snprintf(m->name, sizeof m->name, "%s", pattern);
    if (n < 0 || (size_t)n >= sizeof m->name)
        return tenrec_fail(err, TENREC_ECONFIG, "worker.name '%s': longer than %d bytes", pattern,
                           TENREC_NAME_MAX);
    return TENREC_OK;
}

tenrec_status membership_find(const struct config_settings *s, struct loop *loop,
                              uint64_t deadline_ns, struct membership **ret, tenrec_error *err)
{
    const struct rendezvous_options o = { .init_method = s->init_method,
                                          .group = s->group,
                                          .rank = (int32_t)s->rank,
                                          .world = (int32_t)s->world_size,
                                          .loop = loop };
    struct membership *m = memory_new(1, sizeof *m);
    tenrec_status st;

    if (!m)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for the group");
    st = rendezvous_open(&o, deadline_ns, &m->rendezvous, err);
    if (st != TENREC_OK)
        tenrec_error_prefix(err, "%s", s->init_method_place);
    if (st == TENREC_OK)
        st = make_name(m, s->name, err);
    if (st == TENREC_OK)
        *ret = m;
    else
        membership_drop(m, 0);
    return st;
}

/* Lays out the members as agents and the process group want them. */
static tenrec_status list_members(struct membership *m, tenrec_error *err)
{
    size_t n = (size_t)m->members->n;

    m->names = memory_new(n, sizeof m->names[0]);
    m->member = memory_new(n, sizeof m->member[0]);
    if (!m->names || !m->member)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for %zu members", n);
    for (size_t i = 0; i < n; i++) {
        const struct member *one = &m->members->list[i];
        m->names[i] = one->name;
        m->member[i] = (struct tenrec_member){ .size = sizeof m->member[i],
                                               .id = one->rank,
                                               .incarnation = (uint64_t)one->incarnation,
                                               .name = one->name,
                                               .address = one->address };
    }
    return TENREC_OK;
}

tenrec_status membership_join(struct membership *m, const char *address, uint64_t deadline_ns,
                              tenrec_error *err)
{
    struct meeting *meeting = &m->rendezvous->meeting;
    tenrec_status st = members_join(meeting, m->name, address, deadline_ns, &m->members, err);

    if (st == TENREC_OK)
        st = list_members(m, err);
    if (st == TENREC_OK)
        st = process_group_new_once(meeting->store, meeting->rank, meeting->world, "shutdown",
                                    m->names, &m->pg, err);
    return st;
}

tenrec_status membership_visit(const struct config_settings *s, const char *store,
                               uint64_t deadline_ns, struct membership **ret, tenrec_error *err)
{
    const struct rendezvous_options o = { .init_method = store ? store : s->init_method,
                                          .group = s->group };
    struct membership *m = memory_new(1, sizeof *m);
    tenrec_status st;

    if (!m)
        return tenrec_fail(err, TENREC_ENOMEM, "no memory for the group");
    st = rendezvous_visit(&o, deadline_ns, &m->rendezvous, err);
    if (st == TENREC_OK)
        st = members_await(&m->rendezvous->meeting, deadline_ns, &m->members, err);
    if (st == TENREC_OK)
        st = list_members(m, err);
    if (st == TENREC_OK)
        *ret = m;
    else
        membership_drop(m, 0);
    return st;
}

const char *membership_absence(struct membership *m, tenrec_peer id, uint64_t deadline_ns,
                               char *text, size_t room)
{
    const struct member *one = &m->members->list[id];

    if (meeting_has_left(&m->rendezvous->meeting, id, deadline_ns))
        snprintf(text, room, "it has left the group");
    else if (member_was_here(one) && !member_runs_here(one))
        snprintf(text, room, "its process %lld does not run any more", (long long)one->pid);
    else
        return NULL;
    return text;
}

tenrec_status membership_sum(struct membership *m, const int64_t *mine, size_t n,
                             uint64_t deadline_ns, int64_t *ret, tenrec_error *err)
{
    return process_group_sum(m->pg, mine, n, deadline_ns, ret, err);
}

tenrec_status membership_leave(struct membership *m, uint64_t deadline_ns, tenrec_error *err)
{
    return process_group_barrier(m->pg, deadline_ns, err);
}

void membership_drop(struct membership *m, uint64_t deadline_ns)
{
    if (!m)
        return;
    tenrec_process_group_drop(m->pg);
    rendezvous_close(m->rendezvous, deadline_ns);
    members_drop(m->members);
    free(m->names);
    free(m->member);
    free(m);
}

tenrec_peer membership_rank(const struct membership *m)
{
    return m->rendezvous->meeting.rank;
}

const char *membership_name(const struct membership *m)
{
    return m->name;
}

uint32_t membership_world(const struct membership *m)
{
    return (uint32_t)m->rendezvous->meeting.world;
}

uint64_t membership_incarnation(const struct membership *m)
{
    return (uint64_t)m->rendezvous->meeting.incarnation;
}

const char *membership_group(const struct membership *m)
{
    return m->rendezvous->meeting.group;
}

const char *membership_store_name(const struct membership *m)
{
    return tenrec_store_name(m->rendezvous->store);
}

bool membership_serves(const struct membership *m)
{
    return m->rendezvous->server != NULL;
}

const char *const *membership_names(const struct membership *m)
{
    return m->names;
}

const struct tenrec_member *membership_members(const struct membership *m)
{
    return m->member;
}
