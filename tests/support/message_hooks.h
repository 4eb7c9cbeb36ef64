/* SPDX-License-Identifier: Apache-2.0 */
/* message_hooks.h - what a test attaches to a message until its release. */
#ifndef TESTS_SUPPORT_MESSAGE_HOOKS_H
#define TESTS_SUPPORT_MESSAGE_HOOKS_H

#include <tenrec/agent.h>

/* Calls fn(arg, msg) when `msg` is released, before its memory is freed: for tensors with an
 * owner. One per message; a second call replaces the first. */
void message_on_release(struct tenrec_msg *msg, void (*fn)(void *arg, struct tenrec_msg *msg),
                        void *arg);

/* Gives each tensor of `msg` host memory, aligned to 64 bytes and freed with the message. errors:
 * ENOMEM */
tenrec_status message_place(struct tenrec_msg *msg, tenrec_error *err);

/* The same, for the table of a chain's user. */
tenrec_status message_place_for(void *arg, tenrec_peer from, struct tenrec_msg *msg,
                                tenrec_error *err);

#endif
