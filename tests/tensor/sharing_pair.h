/* SPDX-License-Identifier: Apache-2.0 */
/* sharing_pair.h - an owner and a holder of memory. The test does the
 * work of a plugin: carries records in order, and descriptors. */
#ifndef TENREC_TEST_SHARING_PAIR_H
#define TENREC_TEST_SHARING_PAIR_H

#include <tenrec/message.h>
#include <tenrec/tensor.h>

#include "core/tensor/sharing.h"

#define MIB (1 << 20)

extern struct tenrec_sharing *owner, *holder;

void open_both(void);
/* After each case nothing is left of anything. */
void close_both(void);

/* A tensor of that many bytes, all `fill`. */
struct tenrec_tensor *make(int64_t bytes, uint32_t flags, int fill);
/* The same as a copy whose pages its receiver may write: PRIVATE. */
struct tenrec_tensor *make_private(int64_t bytes, int fill);
unsigned char *bytes_of(const struct tenrec_tensor *t);

/* What arrives, as a plugin and the place of messages take it. */
tenrec_status take(struct tenrec_sharing *to, struct tenrec_share *share,
                   const struct tenrec_tensor_desc *desc, struct tenrec_tensor **ret,
                   tenrec_error *err);
/* From the owner to the holder. */
struct tenrec_tensor *carry(const struct tenrec_tensor *t);

#endif
