# SPDX-License-Identifier: Apache-2.0
"""hello.py - every worker calls `add` on worker 0: tenrec run -n 3 -- python3 hello.py"""
import tenrec_rpc as tenrec


@tenrec.register
def add(a: int, b: int) -> int:
    return a + b


def main() -> None:
    tenrec.init_rpc()
    print("worker0 says", tenrec.call("worker0", "add", 40, 2))
    tenrec.shutdown()


main()
