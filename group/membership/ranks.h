/* SPDX-License-Identifier: Apache-2.0 */
/* ranks.h - checks of ranks and names, and lists of ranks for error texts. */
#ifndef TENREC_MEMBERSHIP_RANKS_H
#define TENREC_MEMBERSHIP_RANKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tenrec/error.h>
#include <tenrec/types.h>

#define RANKS_MAX 32768 /* ids are torch's int16 */

/* Writes "rank 2 of 4" or "ranks 0, 2-5, 7 of 8" for the flags that are set;
 * names (n, or NULL) follow single ranks: `rank 2 ("b") of 4`. */
void ranks_text(char *ret, size_t room, const bool *flag, int32_t n, const char *const *names);

/* Checks that a name has 1..127 of [A-Za-z0-9_:-]. EINVAL: the error calls it `label`. */
tenrec_status ranks_check_name(const char *label, const char *name, tenrec_error *err);

/* Makes the name of `rank` from a pattern: replaces "{rank}" in it. EINVAL: too long. */
tenrec_status ranks_make_name(const char *pattern, int32_t rank, char ret[TENREC_NAME_MAX + 1],
                              tenrec_error *err);

/* Checks 0 <= rank < world <= RANKS_MAX. */
tenrec_status ranks_check(int32_t rank, int32_t world, tenrec_error *err);

#endif
