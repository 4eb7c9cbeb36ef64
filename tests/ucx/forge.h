/* SPDX-License-Identifier: Apache-2.0 */
/* forge.h - active messages of a stranger (stranger.h) that name the connection of another: UCX
 * puts the number of the receiver's endpoint into each message, and this changes it on its way into
 * the socket. */
#ifndef TESTS_UCX_FORGE_H
#define TESTS_UCX_FORGE_H

#include "head.h"

/* Finds the number in what UCX sends: over two connections of a stranger to the worker at
 * `address`, which differ in it. */
void forge_learn(const char *address);

/* Says the same to all endpoints that the worker had before forge_learn, over one connection of a
 * stranger. Their numbers are odd; UCX takes an even one for a pointer. */
void forge_say(const char *address, const struct head *h);

#endif
