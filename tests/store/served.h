/* SPDX-License-Identifier: Apache-2.0 */
/* served.h - a TCP store's server in this process, and bytes of its clients. */
#ifndef TENREC_TESTS_SERVED_H
#define TENREC_TESTS_SERVED_H

#include "../support/test_store.h"

struct security;

extern uint16_t served_port;

/* Set-up and teardown of a case. */
void start_server(void);
void stop_server(void);
/* The same with the demands of `security` (shared). */
void start_server_with(struct security *security);

int dial(void);
/* Says hello as torch 2.2 and later do. */
int dial_2_2(void);

/* Bytes as hex, blanks between them allowed. */
size_t unhex(const char *hex, unsigned char *ret);
void say(int fd, const char *hex);
void hear(int fd, const char *hex);
void hears_nothing(int fd);
void is_closed(int fd);
/* Sends a request that has to wait, and returns when the server has it. */
void waits(int fd, const char *hex);

#define K(c) "0200000000000000 2f" c /* the key "/c" as a blob */
#define ONE "0100000000000000"
#define TWO "0200000000000000"
#define NONE "0000000000000000"
#define HELLO "00 cef7853c 0d 78563412"

#endif
