/* SPDX-License-Identifier: Apache-2.0 */
/* letter.h - a message as bytes: its fields, descriptors, payload and the bytes of its tensors. For
 * processes of one host, so in its byte order. */
#ifndef DATAGRAM_LETTER_H
#define DATAGRAM_LETTER_H

#include <tenrec/agent.h>

uint64_t letter_bytes(const struct tenrec_msg *msg);
void letter_write(const struct tenrec_msg *msg, unsigned char *to); /* letter_bytes of them */

/* Makes a message of bytes that another process has chosen, with all but its tensors. Returns NULL
 * if they are no letter, and out of memory. */
struct tenrec_msg *letter_read(struct tenrec_agent *self, const unsigned char *at, uint64_t len);

#endif
