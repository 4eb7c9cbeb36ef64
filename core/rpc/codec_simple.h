/* SPDX-License-Identifier: Apache-2.0 */
/* codec_simple.h - calls as most of them are: a few arguments without references
 * and values in values, no options. They are written and read in one
 * walk; what is different is left to the files that can do, and refuse, all. */
#ifndef TENREC_RPC_CODEC_SIMPLE_H
#define TENREC_RPC_CODEC_SIMPLE_H

#include "rpc/codec.h"

/* NULL: it is no such call, or there is no memory; codec_write_call_with knows. */
struct tenrec_msg *codec_simple_write(int32_t type, const char *function,
                                      const struct tenrec_value *args, size_t n,
                                      int64_t remaining_ms);

/* As codec_read_call. False: it is no such call; *ret may have changed. */
bool codec_simple_read(const struct tenrec_msg *msg, struct codec_call *ret);

/* As codec_read_call, by the long way for all of them. */
tenrec_status codec_read_any_call(const struct tenrec_msg *msg, struct codec_call *ret,
                                  tenrec_error *err);

#endif
