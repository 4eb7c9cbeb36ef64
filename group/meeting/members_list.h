/* SPDX-License-Identifier: Apache-2.0 */
/* members_list.h - the records of a static group's workers: each, and all in one value, which one
 * rank writes and the others read. */
#ifndef TENREC_MEETING_MEMBERS_LIST_H
#define TENREC_MEETING_MEMBERS_LIST_H

#include "group/meeting/meeting.h"
#include "group/store/host_copy.h"

#define MEMBERS_LIST_KEY "members"

/* For `n` workers. `whole`: keeps their records. errors: ENOMEM */
tenrec_status members_new(int32_t n, bool whole, struct members **ret, tenrec_error *err);

/* Reads the record of rank `i`, which must be one of our group. errors: EGROUP, EPROTOCOL, ENOMEM
 */
tenrec_status members_unpack_one(const struct generation *m, int32_t i,
                                 const struct store_value *value, struct member *ret,
                                 tenrec_error *err);

/* errors: EGROUP (two workers share a name), ENOMEM */
tenrec_status members_check_names(const struct generation *m, const struct members *members,
                                  tenrec_error *err);

/* Writes the list of these records, by rank, unless there is one. */
tenrec_status members_publish_list(struct generation *m, const struct store_value *record,
                                   uint64_t deadline_ns, tenrec_error *err);
/* Tells the others why the group cannot meet. */
void members_publish_failure(struct generation *m, const tenrec_error *why, uint64_t deadline_ns);

/* Reads all records, which exist, one by one. record: n; store_values_free them, also after an
 * error
 */
tenrec_status members_read_each(struct generation *m, const char **keys, uint64_t deadline_ns,
                                struct members *ret, struct store_value *record, tenrec_error *err);

/* Reads the records of all ranks from the list. *ret_n: 0 when everyone reads each
 *
 * errors: as of members_unpack_one, and why the group cannot meet */
tenrec_status members_unpack_list(const struct generation *m, const struct store_value *list,
                                  struct members *ret, size_t *ret_n, tenrec_error *err);

/* Reads the list, which exists, or what another worker of this host has read. ret: host_value_drop,
 * also after a failure */
tenrec_status members_get_list(struct generation *m, uint64_t deadline_ns, struct host_value *ret,
                               tenrec_error *err);

#endif
