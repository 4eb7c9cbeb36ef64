/* SPDX-License-Identifier: Apache-2.0 */
/* shared.c - asks for a shared tensor, and prints why there is none. */
#include "../support/tensors.h"
#include <stdio.h>
#include <tenrec/tenrec.h>

int main(void)
{
    static const int64_t shape[] = { 8 << 20 };
    struct tenrec_tensor *t = NULL;
    tenrec_error err;
    const tenrec_status st = tensors_new(TENREC_UINT8, 1, shape, TENREC_SHARED, &t, &err);

    printf("%s\n", st == TENREC_OK ? "shared" : err.text);
    tenrec_tensor_drop(t);
    return st != TENREC_OK && st != TENREC_EOS;
}
