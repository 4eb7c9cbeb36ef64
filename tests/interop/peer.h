/* SPDX-License-Identifier: Apache-2.0 */
/* peer.h - drives tensorpipe_peer, a process made of the real libtensorpipe,
 * and speaks raw sockets with it. All waits end the test case at a deadline.
 */
#ifndef INTEROP_PEER_H
#define INTEROP_PEER_H

#include "../testing.h"

#include <sys/types.h>

struct peer;

/* `all`: with shm, cma and xth beside uv and basic. NULL when there is no such
 * program, because libtensorpipe was not there when the tests were built. */
struct peer *peer_start(bool all);
/* Any program that is driven like it; `argv` ends with NULL. */
struct peer *peer_start_program(const char *const argv[]);
/* Kills it, as a crash would, and waits until it is gone. */
void peer_kill(struct peer *p);
/* Ends the process; it must have been alive and end by itself. */
void peer_stop(struct peer *p);

void peer_say(struct peer *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Waits for that very line; others are kept for later. */
void peer_expect(struct peer *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Waits for a line that begins so, and returns the rest of it. */
const char *peer_expect_begin(struct peer *p, const char *begin);

/* The peer's pattern s<seed>:<len>, and its hash of bytes. */
void peer_pattern(unsigned long seed, void *ret, size_t len);
uint64_t peer_hash(const void *data, size_t len);
uint64_t peer_pattern_hash(unsigned long seed, size_t len);

/* Sockets to and from "127.0.0.1:port", reading and writing within the deadline. */
int raw_connect(const char *address);
int raw_listen(char ret_address[32]);
int raw_accept(int listener);
void raw_write(int fd, const void *data, size_t len);
void raw_read(int fd, void *data, size_t len);
void raw_write_frame(int fd, const void *data, size_t len);
/* Returns the length, at most `cap`. */
size_t raw_read_frame(int fd, void *buf, size_t cap);
/* Returns true if the other side has closed, with nothing left to read. */
bool raw_ended(int fd);

#endif
