/* SPDX-License-Identifier: Apache-2.0 */
/* known.c - the members that the monitor knows, and those of them whose process has ended. */
#include "rpc/monitor/known.h"

#include "core/base/clock.h"
#include "core/base/memory.h"
#include "group/meeting/meeting.h"
#include "group/membership/membership.h"

#include <stdlib.h>

struct known_member *known_find(const struct monitor *m, tenrec_peer id, int64_t incarnation)
{
    struct known_member *k = id >= 0 && (size_t)id < m->n_by_id ? m->by_id[id] : NULL;

    return k && k->id == id && k->record.incarnation == incarnation ? k : NULL;
}

struct known_member *known_add(struct monitor *m, struct member *record)
{
    const size_t id = (size_t)record->rank, room = id + id / 2 + 16;
    struct known_member *k = memory_new(1, sizeof *k), **more;

    if (k && id >= m->n_by_id && (more = memory_resize(m->by_id, room, sizeof *more))) {
        memset(more + m->n_by_id, 0, (room - m->n_by_id) * sizeof *more);
        m->by_id = more;
        m->n_by_id = room;
    }
    if (!k || id >= m->n_by_id) {
        free(k);
        return NULL;
    }
    *k = (struct known_member){ m->known, record->rank, false, *record };
    *record = (struct member){ .rank = -1 };
    m->known = m->by_id[id] = k;
    return k;
}

void known_finish(struct monitor *m)
{
    struct known_member *next;

    for (struct known_member *k = m->known; k; k = next) {
        next = k->next;
        member_free(&k->record);
        free(k);
    }
    free(m->by_id);
}

const struct member *monitor_record(const struct monitor *m, tenrec_peer id, int64_t incarnation)
{
    const struct known_member *k = known_find(m, id, incarnation);

    return k ? &k->record : NULL;
}

bool monitor_is_leaving(const struct monitor *m, tenrec_peer id, int64_t incarnation)
{
    const struct known_member *k = known_find(m, id, incarnation);

    return k && k->leaving;
}

/* All workers of a process die with it. */
static void bury_process(struct monitor *m, const struct member *dead)
{
    for (size_t i = 0; i < m->view.n; i++) {
        const struct membership_view_entry *e = &m->view.entry[i];
        const struct known_member *k = known_find(m, e->id, e->incarnation);

        if (k && member_shares_process(&k->record, dead))
            heartbeats_bury(&m->beats, e->id, e->incarnation, clock_now_ns());
    }
}

bool monitor_find_dead(struct monitor *m)
{
    bool ending = false;

    for (size_t i = 0; i < m->beats.n; i++) {
        const struct heartbeat *one = &m->beats.list[i];
        const struct known_member *k;

        if (!one->suspected || !(k = known_find(m, one->id, one->incarnation)))
            continue;
        /* A leaving member may end before the news that it has left. */
        if (k->leaving || !member_was_here(&k->record))
            continue;
        if (member_runs_here(&k->record))
            ending = ending || one->missed > 0;
        else if (one->gone)
            heartbeats_bury(&m->beats, one->id, one->incarnation, clock_now_ns());
        else
            bury_process(m, &k->record);
    }
    return ending;
}
