/* SPDX-License-Identifier: Apache-2.0 */
/* codec_simple.h - the common calls: a few arguments without references or nested
 * values, no options but a trace; and answers of one number. Such payloads are written and read in
 * one walk; all others, and all refusals, are left to codec_write.c and codec_read.c. */
#ifndef TENREC_VALUE_CODEC_SIMPLE_H
#define TENREC_VALUE_CODEC_SIMPLE_H

#include "rpc/value/codec.h"

/* trace: NULL for none. Returns NULL if the call is not simple, or memory has run out:
 * codec_write_call reports the error. */
struct tenrec_msg *codec_simple_write(int32_t type, const char *function,
                                      const struct tenrec_value *args, size_t n,
                                      int64_t remaining_ms, const struct trace_context *trace);

/* The answer with a number or a boolean. Returns NULL if the value is of another type, or
 * memory has run out: codec_write_any_value reports the error. */
struct tenrec_msg *codec_simple_write_value(const struct tenrec_value *value, int32_t type);

/* The value of an answer with a number, a boolean or nil, to be dropped by the caller. Returns
 * NULL if the answer is of another form, or memory has run out: codec_read_any_value reports
 * the error. */
struct tenrec_value *codec_simple_read_value(const struct tenrec_msg *msg);

/* As those of codec.h without `any`, which call them for a payload that is not simple: in two
 * walks. */
tenrec_status codec_read_any_head(const struct tenrec_msg *msg, struct codec_head *ret,
                                  tenrec_error *err);
tenrec_status codec_read_any_args(const struct tenrec_msg *msg, const struct codec_head *head,
                                  struct codec_call *ret, tenrec_error *err);
tenrec_status codec_read_any_value(const struct tenrec_msg *msg, struct tenrec_value **ret,
                                   bool *ret_refers, tenrec_error *err);
tenrec_status codec_write_any_value(const struct tenrec_value *value, int32_t type,
                                    struct codec_refs *refs, struct tenrec_msg **ret,
                                    tenrec_error *err);

#endif
