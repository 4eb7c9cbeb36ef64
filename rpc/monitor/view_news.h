/* SPDX-License-Identifier: Apache-2.0 */
/* view_news.h - what changed in a group, as members tell it one another: a log of the changes that
 * a member has applied, and their bytes in a VIEW message. No locks. */
#ifndef TENREC_MONITOR_VIEW_NEWS_H
#define TENREC_MONITOR_VIEW_NEWS_H

#include "group/membership/membership.h"
#include "group/store/bytes.h"

enum view_change_kind { CHANGE_JOINED, CHANGE_LEFT, CHANGE_LEAVING };

struct view_change {
    enum view_change_kind kind;
    tenrec_peer id;
    int64_t incarnation;
    bool died; /* of a member that left: as in struct membership_view_gone */
    tenrec_peer by;
    const char *name;      /* borrowed from the peers; of a member that left, once it is removed */
    uint64_t batch;        /* in the log: the first change of the same view */
    struct member *record; /* owns; of a member that joined, but not in the log */
};

/* Changes are numbered from 2. */
struct view_log {
    struct view_change *list; /* owns; the oldest first, number `last` last */
    size_t n, room;
    uint64_t last;
};

/* `batch`: the number of the first change of the same view. Forgets all changes if out of memory.
 */
void view_log_add(struct view_log *l, const struct view_change *c, uint64_t batch);

/* Returns how many of the last changes are later than number `after`; SIZE_MAX: some of them are
 * forgotten. */
size_t view_log_since(const struct view_log *l, uint64_t after);

/* The number before the batch in which that life joined; 0: not in the log. */
uint64_t view_log_before_join(const struct view_log *l, int64_t incarnation);

void view_log_finish(struct view_log *l);

/* Changes that lead to a view; with none a reader only hears of its version. */
struct view_news {
    size_t members;             /* of that view; 0: the changes are incomplete */
    uint64_t sum;               /* of that view */
    struct view_change *change; /* owns */
    size_t n;
};

/* `record`: of a member that joined. */
void view_news_begin(struct bytes *b, size_t members, uint64_t sum, size_t n);
void view_news_add(struct bytes *b, const struct view_change *c, const struct store_value *record);

/* errors: EPROTOCOL, ENOMEM */
tenrec_status view_news_read(const void *data, size_t len, struct view_news *ret,
                             tenrec_error *err);
void view_news_finish(struct view_news *n);

#endif
