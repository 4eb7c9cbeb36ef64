/* SPDX-License-Identifier: Apache-2.0 */
/* region_support.h - helpers of the tests of regions. */
#ifndef TESTS_REGION_REGION_SUPPORT_H
#define TESTS_REGION_REGION_SUPPORT_H

#include <tenrec/region.h>
#include <tenrec/tenrec.h>

#include "../support/cluster.h"

enum { BOTH = TENREC_REGION_READ | TENREC_REGION_WRITE };

/* A tensor of `n` bytes, each the low byte of `first` + its index. */
struct tenrec_tensor *bytes_new(int64_t n, unsigned first);
/* Returns true if the bytes from `at` on are those of such a tensor. */
bool bytes_are(const struct tenrec_tensor *t, uint64_t at, uint64_t n, unsigned first);

struct tenrec_region *region_of(struct tenrec_worker *w, struct tenrec_tensor *t, uint32_t rights);
struct tenrec_region_ref ref_of(const struct tenrec_region *r);

struct tenrec_bulk reading(const struct tenrec_region_ref *ref, uint64_t offset, uint64_t bytes,
                           struct tenrec_tensor *local, uint64_t local_offset);
struct tenrec_bulk writing(const struct tenrec_region_ref *ref, uint64_t offset, uint64_t bytes,
                           struct tenrec_tensor *local, uint64_t local_offset);

/* Begins a batch and waits for its end. */
tenrec_status transfer(struct tenrec_worker *w, const struct tenrec_bulk *entries, size_t n,
                       tenrec_error *err);
/* Begins a batch that must be accepted. */
struct tenrec_future *begin(struct tenrec_worker *w, const struct tenrec_bulk *entries, size_t n);

/* A number of the debug info; -1 without it. */
int64_t info_of(struct tenrec_worker *w, const char *key);

#endif
