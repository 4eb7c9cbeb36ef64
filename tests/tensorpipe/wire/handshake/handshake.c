/* SPDX-License-Identifier: Apache-2.0 */
#include "handshake.h"

const char plain_brochure[] = "b902 bb01 " UV "bb01 " BASIC "bb01 " CPU0 ANY;
const char plain_answer[] =
    "b907 bd027576 bd0f3132372e302e302e313a3237303031 bb010100 bd0475763a2a bb01 " BASIC
    "bc080100000000000000 bb01 " BASIC "bb01 " CPU0 ANY "bb01 ba02 " CPU0 CPU0 BASIC;

/* The bytes of a client with shm and cma, and the answer of its listener. */
const char shm_brochure[] =
    "b902bb02bd027576bd0475763a2abd0373686dbd3373686d3a39306366313966302d366635322d343863342d6133"
    "62622d3966633738353231343231375f345f6566666666666639bb03bd056261736963bb01b902bd036370750"
    "0bd03616e79bd03636d61bb01b902bd0363707500bd4e636d613a39306366313966302d366635322d34386334"
    "2d613362622d3966633738353231343231375f345f65666666666666635f345f65666666666666645f305f305"
    "f3166666665666666666666bd03787468bb01b902bd0363707500bd3539306366313966302d366635322d3438"
    "63342d613362622d3966633738353231343231375f345f65666666666666635f3232373139";
const char shm_answer[] =
    "b907bd0373686dbd053535306234bb0201010000bd3373686d3a39306366313966302d366635322d343863342d"
    "613362622d3966633738353231343231375f345f6566666666666639bb01bd03636d61bc10020000000000000"
    "00300000000000000bb01bd03636d61bb01b902bd0363707500bd4e636d613a39306366313966302d36663532"
    "2d343863342d613362622d3966633738353231343231375f345f65666666666666635f345f656666666666666"
    "45f305f305f3166666665666666666666bb01ba02b902bd0363707500b902bd0363707500bd03636d61";
const char shm_domain[] = "shm:90cf19f0-6f52-48c4-a3bb-9fc785214217_4_effffff9";
const char cma_descriptor[] =
    "cma:90cf19f0-6f52-48c4-a3bb-9fc785214217_4_effffffc_4_effffffd_0_0_1fffeffffff";

const struct nop_device cpu = CPU_DEVICE;
const struct nop_device gpu = GPU_DEVICE;

static const struct wire_channel_device basic_devices[] = { { CPU_DEVICE, "any" } };
static const struct wire_channel_device cma_devices[] = { { CPU_DEVICE, cma_descriptor } };
static const struct wire_channel_device cuda_devices[] = { { CPU_DEVICE, "g" },
                                                           { GPU_DEVICE, "g" } };

const struct wire_transport uv_only[] = { { "uv", "uv:*", "127.0.0.1:27001" } };
const struct wire_transport shm_first[] = { { "shm", shm_domain, "550b4" },
                                            { "uv", "uv:*", "127.0.0.1:27001" } };
const struct wire_channel basic_only[] = { { "basic", basic_devices, 1, 1 } };
const struct wire_channel cma_first[] = { { "cma", cma_devices, 1, 2 },
                                          { "basic", basic_devices, 1, 1 } };
const struct wire_channel basic_then_cuda[] = { { "basic", basic_devices, 1, 1 },
                                                { "cuda_basic", cuda_devices, 2, 3 } };

const struct wire_offer plain = { uv_only, basic_only, 1, 1, NULL };
const struct wire_offer local = { shm_first, cma_first, 2, 2, NULL };
const struct wire_offer with_gpu = { uv_only, basic_then_cuda, 1, 2, NULL };

void check_bytes(const unsigned char *buf, size_t len, const char *expected)
{
    struct hex h = hex(expected);

    assert_int_equal(len, h.len);
    assert_memory_equal(buf, h.data, h.len);
}

void read_brochure(const char *text, struct brochure *ret, struct hex *ret_frame)
{
    tenrec_error err;

    *ret_frame = hex(text);
    if (brochure_read(ret_frame->data, ret_frame->len, ret, &err))
        fail_msg("%s", err.text);
}

void read_answer(const char *text, struct answer *ret, struct hex *ret_frame)
{
    tenrec_error err;

    *ret_frame = hex(text);
    if (answer_read(ret_frame->data, ret_frame->len, ret, &err))
        fail_msg("%s", err.text);
}
