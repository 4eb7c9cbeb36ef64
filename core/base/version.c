/* SPDX-License-Identifier: Apache-2.0 */
#include <tenrec/rpc.h>
#include <tenrec/version.h>

const char *tenrec_version_text(void)
{
    return TENREC_VERSION_TEXT;
}

uint32_t tenrec_version_number(void)
{
    return TENREC_VERSION;
}
