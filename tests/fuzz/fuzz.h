/* fuzz.h - the one function of a fuzz target. */
#ifndef TENREC_TESTS_FUZZ_H
#define TENREC_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* Reads `len` bytes as the reader under test would from outside; returns 0.
 * A finding is a crash, a sanitizer report or an endless loop. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

#endif
