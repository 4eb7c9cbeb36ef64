/* SPDX-License-Identifier: Apache-2.0 */
/* fake.h - memory of devices for tests: on the stand-in of libcuda, or on a GPU.
 *
 * Which of the two there is says the library path: LD_LIBRARY_PATH with the
 * folder of the stand-in in front, or not. Tests that need neither end at once
 * when fake_open says no. Nothing here waits but fake_check and fake_wait. */
#ifndef TESTS_CUDA_FAKE_H
#define TESTS_CUDA_FAKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How many devices there are; 0: none, *why says the reason (may be NULL). */
int fake_open(const char **why);
/* Returns true if the driver is the stand-in, which can inject failures. */
bool fake_is_stand_in(void);

/* Fails the test when the driver refuses. */
void *fake_new(int device, size_t bytes);
void fake_drop(int device, void *data);
uint64_t fake_stream(int device); /* lives for ever */

/* Queues on `stream` (0: the default one): bytes that depend on `seed` and on where
 * they lie, to all of `data`. */
void fake_fill(int device, uint64_t stream, void *data, size_t bytes, uint32_t seed);
/* Delays later work on `stream`. */
void fake_delay(int device, uint64_t stream);
void fake_wait(int device, uint64_t stream);
/* Queues a copy to the host on `stream`, waits for it, and fails the test at the
 * first byte that fake_fill with `seed` would not have written there. */
void fake_check(int device, uint64_t stream, const void *data, size_t bytes, uint32_t seed);
/* The same without a device: memory of the host. */
void fake_fill_host(void *data, size_t bytes, uint32_t seed);
void fake_check_host(const void *data, size_t bytes, uint32_t seed);
/* Returns true if the memory has the pattern of fake_fill. */
bool fake_same(int device, uint64_t stream, const void *data, size_t bytes, uint32_t seed);

/* Gives what these functions made and keep, but for the streams, back. */
void fake_close(void);

/* Of the stand-in only: on a GPU they do nothing and say 0. The nth call of that
 * name of the driver's from now on fails, once; 0: none does. Whether one still was
 * to fail. */
bool fake_fail(const char *call, unsigned nth);
unsigned fake_calls(const char *call);
unsigned fake_all_calls(void); /* but for those that these functions make */
int fake_reports(void);        /* misuse so far, which is on stderr */
/* Returns true if queued work of any process reads or writes the memory. */
bool fake_busy(const void *data);
enum fake_live {
    FAKE_DEVICE_MEMORY,
    FAKE_HOST_MEMORY,
    FAKE_IMPORTED,
    FAKE_EVENTS,
    FAKE_STREAMS,
};
int fake_live(enum fake_live what);

#endif
