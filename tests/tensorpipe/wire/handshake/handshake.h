/* SPDX-License-Identifier: Apache-2.0 */
/* handshake.h - what real peers exchanged, and what ours offer, for the tests of
 * the handshake. */
#ifndef TESTS_WIRE_HANDSHAKE_H
#define TESTS_WIRE_HANDSHAKE_H

#include "../wire_test.h"
#include "wire/handshake/brochure.h"

#define CPU0 "b902bd0363707500 "
#define UV "bd027576 bd0475763a2a "
#define BASIC "bd056261736963 "
#define ANY "bd03616e79 "

extern const char plain_brochure[];
extern const char plain_answer[];

/* The bytes of a client with shm and cma, and the answer of its listener. */
extern const char shm_brochure[];
extern const char shm_answer[];
extern const char shm_domain[];
extern const char cma_descriptor[];

#define CPU_DEVICE                                                                                 \
    {                                                                                              \
        { (const unsigned char *)"cpu", 3 }, 0                                                     \
    }
#define GPU_DEVICE                                                                                 \
    {                                                                                              \
        { (const unsigned char *)"cuda", 4 }, 1                                                    \
    }

extern const struct nop_device cpu;
extern const struct nop_device gpu;

extern const struct wire_transport uv_only[];
extern const struct wire_transport shm_first[];
extern const struct wire_channel basic_only[];
extern const struct wire_channel cma_first[];
extern const struct wire_channel basic_then_cuda[];

extern const struct wire_offer plain;
extern const struct wire_offer local;
extern const struct wire_offer with_gpu;

/* `expected` is hex. */
void check_bytes(const unsigned char *buf, size_t len, const char *expected);
/* From hex; *ret_frame holds the bytes that *ret points into. */
void read_brochure(const char *text, struct brochure *ret, struct hex *ret_frame);
void read_answer(const char *text, struct answer *ret, struct hex *ret_frame);

#endif
