/* SPDX-License-Identifier: Apache-2.0 */
/* flaky.h - a chain of one wrapper over a mirror, and what came out of it. The
 * mirror returns every message, without its tensors, as if its receiver had sent it. */
#ifndef TESTS_SUPPORT_FLAKY_H
#define TESTS_SUPPORT_FLAKY_H

#include "../testing.h"
#include "core/backend/backend.h"

#include <stdatomic.h>

extern struct chain *flaky_chain;
extern atomic_int flaky_ok, flaky_failed;          /* sends, by the result of `done` */
extern atomic_int flaky_delivered, flaky_released; /* what came back; our messages */
extern atomic_int flaky_disconnected;              /* how often, to worker 2 only */
extern char flaky_log[4096];                       /* "info worker0/flaky: ..." lines */

/* The plugin of the wrapper, "faulty" at first; set before flaky_set_up. */
extern const char *flaky_plugin;

void flaky_set_up(void);
void flaky_tear_down(void);

/* Reads a config whose backend `flaky` has `options`, e.g. "{ num_fail_sends: 1 }". */
tenrec_status flaky_try(const char *options, tenrec_error *err);

/* The same, and starts it as worker0 of worker0, worker1 and worker2; fails the
 * test when that fails. flaky_start only returns why. */
void flaky_open(const char *options);
tenrec_status flaky_start(const char *options, tenrec_error *err);
void flaky_close(void);

/* Takes the message. */
void flaky_send_msg(tenrec_peer to, struct tenrec_msg *msg);

/* Sends a copy of `payload`. Its first `key_len` bytes are marked as the key. */
void flaky_send_to(tenrec_peer to, int32_t type, const char *payload, uint32_t key_len);
void flaky_send(int32_t type, const char *payload);

/* A CALL of `payload` to worker 0; true when it went through at once. */
bool flaky_call(const char *payload);

/* The error of the last send that failed. */
tenrec_error flaky_last(void);

/* The payloads that were delivered, in their order: "a b a". */
void flaky_order(char *buf, size_t size);

/* The message that was delivered last. */
struct flaky_received {
    int32_t type;
    int64_t id;
    uint64_t payload_len;
    unsigned char payload[512]; /* zero where it is longer */
};
struct flaky_received flaky_newest(void);

/* Debug info as "key=value\n" lines; the number behind a key. */
void flaky_info(char *buf, size_t size);
long flaky_number(const char *key);

#endif
