/* SPDX-License-Identifier: Apache-2.0 */
/* reserve.h - messages for errors of a process that has no memory left.
 *
 * A caller whose callee cannot allocate an answer would wait until its deadline. So some
 * messages are part of the process, and return to the reserve when they are released. */
#ifndef TENREC_TENSOR_RESERVE_H
#define TENREC_TENSOR_RESERVE_H

#include <stddef.h>
#include <tenrec/agent.h>

#define RESERVE_MESSAGES 64
#define RESERVE_BYTES 576 /* of a payload: any error fits */

/* Returns a message with a copy of `payload`; NULL: the payload is larger than RESERVE_BYTES,
 * or all messages of the reserve are in use. Any thread. */
struct tenrec_msg *reserve_message(const void *payload, size_t n);

#endif
