# SPDX-License-Identifier: Apache-2.0
"""fuzz.py - script/fuzz runs the targets for as long as it is asked to, and says why it does not."""
import os
import shutil
import subprocess
import tempfile

import report


def zero_seconds():
    # Without this script's limit libFuzzer would go on for ever.
    done = subprocess.run([os.path.join(report.ROOT, "script/fuzz"), "0"], timeout=50,
                          capture_output=True, text=True, check=False)
    if done.returncode or "no target runs" not in done.stdout:
        yield f"exit status {done.returncode}: {done.stdout}{done.stderr}"


def large_corpus():
    # A tree with one target, whose tools do nothing.
    with tempfile.TemporaryDirectory() as tree:
        for folder in ("script", "bin", "tests/fuzz/corpus/big"):
            os.makedirs(os.path.join(tree, folder))
        for tool in ("clang", "meson", "ninja"):
            os.symlink("/bin/true", os.path.join(tree, "bin", tool))
        with open(os.path.join(tree, "tests/fuzz/corpus/big/seed"), "wb") as seed:
            seed.truncate(129 << 10)
        open(os.path.join(tree, "tests/fuzz/fuzz_big.c"), "wb").close()
        script = shutil.copy(os.path.join(report.ROOT, "script/fuzz"), os.path.join(tree, "script"))
        env = dict(os.environ, PATH=os.path.join(tree, "bin") + os.pathsep + os.environ["PATH"])
        done = subprocess.run([script, "1", "big"], timeout=50, capture_output=True, text=True,
                              check=False, env=env)
    if done.returncode == 0 or "129 KiB, 128 at most" not in done.stderr or "crashes" in done.stderr:
        yield f"exit status {done.returncode}: {done.stdout}{done.stderr}"


report.case("fuzz_runs_no_target_when_seconds_are_0", zero_seconds())
report.case("fuzz_names_a_corpus_that_is_too_large", large_corpus())
report.finish()
