/* SPDX-License-Identifier: Apache-2.0 */
/* tensors.h - requests with tensors, for tests of channels. */
#ifndef TENSORPIPE_TEST_TENSORS_H
#define TENSORPIPE_TEST_TENSORS_H

#include "node.h"

#define MIB ((size_t)1 << 20)
#define TENSORS_MAX 200 /* of a request */

void tensor_fill(unsigned char *data, size_t len, unsigned seed);

/* A request with `count` tensors of these sizes, echoed. */
void call_tensors(struct node *n, const size_t *sizes, uint32_t count);

#endif
