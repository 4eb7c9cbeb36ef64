/* SPDX-License-Identifier: Apache-2.0 */
/* value_flags.h - the library's flags in `reserved` of a value. */
#ifndef TENREC_TENSOR_VALUE_FLAGS_H
#define TENREC_TENSOR_VALUE_FLAGS_H

/* Read from a message, and not yet resolved by parcel_ops.take: u.bytes is a struct rref_fork,
 * u.map an entry of an object's type and its encoded value. */
#define CODEC_UNTAKEN 1u

#define CODEC_DEREF 2u /* a reference that stands for its value */

#endif
