/* SPDX-License-Identifier: Apache-2.0 */
/* raw.h - a hand-driven socket that can send any bytes to an agent. */
#ifndef TENSORPIPE_TEST_RAW_H
#define TENSORPIPE_TEST_RAW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Connects to "uv://..."; blocking, with a receive limit. */
int raw_connect(const char *address);
/* The same; -1 when no descriptor is left. */
int raw_connect_if_room(const char *address);
/* Listens on a free loopback port and writes its address. */
int raw_listen(char address[64]);
int raw_accept(int fd);

void raw_send(int fd, const void *data, size_t len);
/* One frame. */
void raw_frame(int fd, const void *body, size_t len);
/* Exactly `len` bytes; false at the end of the stream. */
bool raw_recv(int fd, void *data, size_t len);
/* One frame into buf; its length, or -1 at the end of the stream. */
long raw_recv_frame(int fd, void *buf, size_t cap);
/* Returns true if the agent closes the connection within the limit. */
bool raw_closed(int fd);

/* Parts of a handshake as a plain TensorPipe peer. */
extern const unsigned char raw_hello[12];
extern const unsigned char raw_brochure[38];
void raw_hello_requested(int fd, uint64_t id);

/* A pipe that was opened by hand: hello to the last connection. */
struct raw_pipe {
    int fd[3];          /* descriptor, reply, channel */
    uint64_t id[3];     /* that the last two have to say */
    char identity[128]; /* of the listener, as text; "": unknown */
};

/* Its first connection. `identity` is the caller's entry; NULL: a plain TensorPipe peer. */
void raw_pipe_ask(struct raw_pipe *p, const char *address, const char *identity);
/* The same as a Tenrec worker that defers its connections for tensors, and opens none of them. */
void raw_pipe_defer(struct raw_pipe *p, const char *address);
/* One of the others. */
void raw_pipe_join(struct raw_pipe *p, const char *address, int which);
void raw_pipe_open(struct raw_pipe *p, const char *address);
void raw_pipe_open_as(struct raw_pipe *p, const char *address, const char *identity);
void raw_pipe_close(struct raw_pipe *p);

/* A message of type and id with `n` tensors of 4 bytes and a target, or
 * without one, whose bytes are not sent. Returns the length of its frames. */
size_t raw_message(unsigned char *buf, int32_t type, int64_t id, const void *payload, size_t len);
size_t raw_tensor_message(unsigned char *buf, int32_t type, int64_t id, bool with_target);
/* The same of one tensor with a target, seen `times` times by a stride of 0. */
size_t raw_view_message(unsigned char *buf, int32_t type, int64_t id, int64_t times);
/* The same as Tenrec's channel announces it: `bytes` bytes in stripes on its lanes. */
size_t raw_lanes_message(unsigned char *buf, size_t cap, int64_t id, uint64_t bytes);
/* Reads one answer; its type, payload into buf. */
int32_t raw_recv_message(struct raw_pipe *p, int64_t *ret_id, void *buf, size_t cap, long *ret_len);

#endif
