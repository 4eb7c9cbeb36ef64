/* meeting.h - the group of a worker: where it meets, and who is in it. The
 * worker carries addresses from here to the chain. */
#ifndef TENREC_RPC_MEETING_H
#define TENREC_RPC_MEETING_H

#include <tenrec/agent.h>

struct config_settings;
struct loop;
struct meeting;

/* Finds out our rank and the size of the group, and opens the store (serves
 * it, where that is ours to do). */
tenrec_status meeting_find(const struct config_settings *s, struct loop *loop, uint64_t deadline_ns,
                           struct meeting **ret, tenrec_error *err);

/* Tells the others where we are and waits for all of them. */
tenrec_status meeting_join(struct meeting *m, const char *address, uint64_t incarnation,
                           uint64_t deadline_ns, tenrec_error *err);

/* The sum of what all give; they call it equally often. */
tenrec_status meeting_sum(struct meeting *m, int64_t mine, uint64_t deadline_ns, int64_t *ret,
                          tenrec_error *err);

/* Waits until all are about to leave. */
tenrec_status meeting_leave(struct meeting *m, uint64_t deadline_ns, tenrec_error *err);

void meeting_drop(struct meeting *m);

/* Ours, known after meeting_find; the others' after meeting_join. Borrowed
 * until meeting_drop. */
tenrec_peer meeting_rank(const struct meeting *m);
const char *meeting_name(const struct meeting *m);
uint32_t meeting_world(const struct meeting *m);
const char *const *meeting_names(const struct meeting *m);
const struct tenrec_member *meeting_members(const struct meeting *m);

#endif
