/* SPDX-License-Identifier: Apache-2.0 */
/* value_flags.h - the library's own marks in `flags` of a value. Only values that are being read
 * from a message have marks: values of programs, and values given out to them, have none. */
#ifndef TENREC_VALUE_VALUE_FLAGS_H
#define TENREC_VALUE_VALUE_FLAGS_H

#include <tenrec/value.h>

/* Read from a message, and not yet resolved by transfer_ops.take: u.bytes is a struct rref_fork,
 * u.map an entry of an object's type and its encoded value. */
#define CODEC_UNTAKEN 1u

#define CODEC_DEREF 2u /* a reference that stands for its value */

/* The error of a value that has flags. Returns EINVAL. */
tenrec_status value_refuse_flags(const struct tenrec_value *v, tenrec_error *err);

/* Fails for a value whose memory is NULL though it has bytes or items. Returns TENREC_EINVAL. */
tenrec_status value_refuse_null(const struct tenrec_value *v, tenrec_error *err);

/* Fails for a map whose key `i` is NULL. Returns TENREC_EINVAL. */
tenrec_status value_refuse_key(uint64_t i, tenrec_error *err);

#endif
