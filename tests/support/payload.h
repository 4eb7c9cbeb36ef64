/* SPDX-License-Identifier: Apache-2.0 */
/* payload.h - bytes as messages, and calls as bytes, for tests that use the codec. */
#ifndef TESTS_SUPPORT_PAYLOAD_H
#define TESTS_SUPPORT_PAYLOAD_H

#include "rpc/value/codec.h"

#include "../testing.h"

#define N(array) (sizeof(array) / sizeof *(array))
#define HEAD "\xd9\xd9\xf7"

/* A message with this payload, the array's NUL left out. */
#define MESSAGE(text, n_tensors) payload_message(text, sizeof text - 1, n_tensors)

/* A refused payload, and part of the error's text. */
struct bad {
    const char *bytes;
    size_t n;
    const char *text;
};
#define BAD(bytes, text)                                                                           \
    {                                                                                              \
        bytes, sizeof(bytes) - 1, text                                                             \
    }

struct tenrec_msg *payload_message(const char *payload, size_t n, uint32_t n_tensors);
/* n int32: first, first + 1 ... */
struct tenrec_tensor *tensor_of(int64_t n, int32_t first);
struct tenrec_msg *written_call(const char *function, const struct tenrec_value *args, size_t n,
                                int64_t ms);

#endif
