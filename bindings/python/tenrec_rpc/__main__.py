# SPDX-License-Identifier: Apache-2.0
"""__main__.py - the command: `tenrec-rpc run -n 2 -- ...`, `python3 -m tenrec_rpc run -n 2 -- ...`."""
from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

_PACKAGED = Path(__file__).parent.parent / ".tenrec_rpc.mesonpy.libs" / "tenrec" / "bin" / "tenrec"


def main() -> None:
    """Becomes the command that the wheel brings, or else the installed one."""
    command = str(_PACKAGED) if _PACKAGED.exists() else shutil.which("tenrec")
    if not command:
        sys.exit("tenrec_rpc: the command tenrec is not installed")
    os.execv(command, ["tenrec", *sys.argv[1:]])


if __name__ == "__main__":
    main()
