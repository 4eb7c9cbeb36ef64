/* SPDX-License-Identifier: Apache-2.0 */
/* stranger.h - a client of bare UCX that sends what it likes to a worker. One at a time. */
#ifndef TESTS_UCX_STRANGER_H
#define TESTS_UCX_STRANGER_H

#include "head.h"

/* Connects to the address of a worker; says nothing. */
void stranger_open(const char *address);
void stranger_close(void);

/* Sends one active message; `data` is copied. */
void stranger_send(const void *header, size_t header_len, const void *data, size_t len);
/* The same with this head. */
void stranger_say(const struct head *h, const void *data, size_t len);

/* Returns true once the worker has ended the connection. */
bool stranger_is_cut(void);
/* The number of active messages that came back: a hello first. */
int stranger_answers(void);
/* The last of them: returns the bytes of its data, of which `room` at most are copied. */
size_t stranger_answer(struct head *ret, void *data, size_t room);
/* Does UCX's work until UCX has handed all to the wire, or the connection ended. */
void stranger_flush(void);

#endif
