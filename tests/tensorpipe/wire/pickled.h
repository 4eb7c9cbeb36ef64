/* SPDX-License-Identifier: Apache-2.0 */
/* pickled.h - lists of tensors as hex, as torch's pickler writes them. */
#ifndef TENREC_TEST_PICKLED_H
#define TENREC_TEST_PICKLED_H

#include "wire/storage.h"
#include "wire/tensorlist.h"
#include "wire_test.h"

#include "listed.h"

#define BEGIN                                                                                      \
    "800263746f7263682e6a69742e5f7069636b6c650a6275696c645f74656e736f726c6973740a7100285d28"
#define EMPTY BEGIN "6574522e"
#define TENSOR0                                                                                    \
    "63746f7263682e5f7574696c730a5f72656275696c645f74656e736f725f76320a710128285807000000"         \
    "73746f726167657102"
#define CLASS_FLOAT "63746f7263680a466c6f617453746f726167650a7103"
#define KEY0_CPU "580100000030710458030000006370757105"
#define HOOKS "63636f6c6c656374696f6e730a4f726465726564446963740a71072952745271086574522e"

/* Written by torch 1.13: two floats. */
#define FLOAT2 BEGIN TENSOR0 CLASS_FLOAT KEY0_CPU "4b02745171064b00284b0274284b017489" HOOKS
/* Long, then Double, with names recalled from the memo. */
#define LONG_AND_DOUBLE                                                                            \
    BEGIN TENSOR0 "63746f7263680a4c6f6e6753746f726167650a7103" KEY0_CPU                            \
                  "4b02745171064b00284b0274284b01748963636f6c6c656374696f6e730a4f72646572656444"   \
                  "6963740a710729527452710868012828680263746f7263680a446f75626c6553746f72616765"   \
                  "0a7109580100000031710a68054b027451710b4b00284b024b0174284b014b01748968072952"   \
                  "7452710c6574522e"

static inline tenrec_status read_list(const char *text, struct tenrec_tensor_desc *tensors,
                                      uint32_t n, tenrec_error *err)
{
    struct hex h = hex(text);
    void *frame = hex_exact(h.data, h.len);
    tenrec_status status = read_exactly(tensorlist_read, frame, h.len, tensors, n, err);

    free(frame);
    return status;
}

static inline void check_refused(const char *text, uint64_t bytes, uint32_t n, tenrec_status status,
                                 const char *says)
{
    struct tenrec_tensor_desc tensors[2] = { { .bytes = bytes }, { .bytes = bytes } };
    tenrec_error err;

    assert_int_equal(read_list(text, tensors, n, &err), status);
    assert_text_has(err.text, "tensor list");
    assert_text_has(err.text, says);
}

/* All but the first of 300 rows of 70 elements. */
static inline struct tenrec_tensor_desc matrix(struct tenrec_dtype dtype)
{
    uint32_t element = storage_element_bytes(dtype);

    return (struct tenrec_tensor_desc){ .bytes = (uint64_t)element * 300 * 70,
                                        .byte_offset = (uint64_t)element * 70,
                                        .dtype = dtype,
                                        .ndim = 2,
                                        .device = { TENREC_CPU, 0 },
                                        .flags = TENREC_TENSOR_REQUIRES_GRAD,
                                        .shape = { 299, 70 },
                                        .strides = { 70, 1 } };
}

#endif
