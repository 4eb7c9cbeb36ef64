# SPDX-License-Identifier: Apache-2.0
class RayDirectTransportError(Exception):
    pass
