/* SPDX-License-Identifier: Apache-2.0 */
/* shm_handoff.h - tensors that the peer maps instead of taking their bytes.
 *
 * The core supplies the record that replaces a tensor, and the descriptors that the peer needs for
 * it. The record is the note beside the tensor; the descriptors go over the Unix socket of the
 * reply connection, before the message, with a number that the note names: what was sent for a
 * message that never went out is skipped. */
#ifndef TENSORPIPE_SHM_HANDOFF_H
#define TENSORPIPE_SHM_HANDOFF_H

#include "wire/descriptor.h"

struct pipe;

/* The pipe is established, and nothing was sent on it; on the loop thread. */
void shm_handoff_open(struct pipe *p);
void shm_handoff_close(struct pipe *p); /* no thread uses it any more */
/* Returns true if the peer maps shared tensors. Any thread. */
bool shm_handoff_maps(struct pipe *p);

/* Under the pipe's lock. Returns false, having done nothing, if the bytes must be sent. `kind` is
 * the first byte of the note. */
bool shm_handoff_send(struct pipe *p, const struct tenrec_tensor_desc *t, unsigned char kind,
                      struct descriptor_note *note);
/* The message of these notes is not sent after all: takes back what shm_handoff_send
 * did for it. */
void shm_handoff_take_back(struct pipe *p, unsigned char kind, const struct descriptor_note *notes,
                           uint32_t n);

/* Handles a received note of shm_handoff_send, for `desc` (NULL: drop the message). For the
 * thread that reads the pipe. errors: EPROTOCOL (end the pipe); others (drop the message) */
tenrec_status shm_handoff_arrived(struct pipe *p, struct nop_bytes note,
                                  struct tenrec_tensor_desc *desc, tenrec_error *err);

#endif
