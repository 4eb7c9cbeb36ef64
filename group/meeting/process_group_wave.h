/* SPDX-License-Identifier: Apache-2.0 */
/* process_group_wave.h - one operation of a process group: all ranks contribute counts and get
 * their sums. */
#ifndef TENREC_MEETING_PROCESS_GROUP_WAVE_H
#define TENREC_MEETING_PROCESS_GROUP_WAVE_H

#include "group/meeting/process_group.h"

#include <pthread.h>

/* Each rank writes its contribution under <round>/<rank>. The leader, rank 0, waits for all of
 * them, and writes the result, or the reason of a failure, under <round>/done, for which the other
 * ranks wait. When that takes long, some of them look after it, in case that the leader has given
 * up.
 *
 * A rank that begins a round after a success knows that all ranks have begun the round before, and
 * so read the result of the one before that: then it removes its own key of that one. */
struct tenrec_process_group {
    struct tenrec_store *base;  /* owns; view of the group's name */
    struct tenrec_store *store; /* owns; view of this life of it, NULL before */
    bool once;                  /* base is new: the group has one life only */
    int32_t rank, world;
    const struct tenrec_member *member; /* by rank; borrowed; or NULL */
    struct group_lost lost;             /* is_lost NULL: not checked */
    pthread_mutex_t lock;               /* guards store, life and round */
    int64_t life;
    uint64_t round; /* of the next operation */
    bool succeeded; /* the operation before */
    char name[];
};

#define PROCESS_GROUP_KEY_ROOM 48 /* "<round>/<rank>" */

/* One operation of all ranks. */
struct process_group_wave {
    struct tenrec_process_group *pg;
    const char *operation; /* for errors */
    size_t n;              /* counts */
    const struct process_group_summed *before;
    uint64_t round, since_ns, deadline_ns;
    unsigned rounds;   /* of the wait for the result that have ended */
    const char **keys; /* owns; of the contributions, by rank; NULL before the first use */
    bool *missing;     /* owns; of them */
    char done[PROCESS_GROUP_KEY_ROOM];
};

/* Runs one round: contributes w->n counts, waits for all, and sets the sums in `ret`. */
tenrec_status process_group_wave_run(struct process_group_wave *w, const int64_t *mine,
                                     int64_t *ret, tenrec_error *err);

/* The keys of a round. round_keys: free() it; NULL: no memory */
const char **process_group_round_keys(const struct tenrec_process_group *pg, uint64_t round);
void process_group_round_done_key(char ret[PROCESS_GROUP_KEY_ROOM], uint64_t round);
/* Removes what `rank` has written in a round. */
void process_group_round_remove(struct tenrec_store *s, int32_t rank, uint64_t round,
                                uint64_t deadline_ns);

#endif
