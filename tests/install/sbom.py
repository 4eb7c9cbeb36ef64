# SPDX-License-Identifier: Apache-2.0
"""sbom.py ROOT BUILDDIR - `script/ci/sbom` writes a document with all that SPDX 2.3 demands, about what this build installs."""
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile

ROOT, BUILD = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
EPOCH = "1700000000"
# Fields that the specification demands.
FIELDS = {
    "": ("spdxVersion", "dataLicense", "SPDXID", "name", "documentNamespace", "creationInfo"),
    "packages": ("name", "SPDXID", "downloadLocation"),
    "files": ("fileName", "SPDXID", "checksums"),
    "relationships": ("spdxElementId", "relationshipType", "relatedSpdxElement"),
}
RELATIONS = {"DESCRIBES", "CONTAINS", "DYNAMIC_LINK", "STATIC_LINK"}
count = 0
failed = False


def case(name, problems):
    global count, failed
    problems = list(problems)
    count += 1
    failed = failed or bool(problems)
    print(f"{'not ok' if problems else 'ok'} {count} - {name}")
    for line in problems:
        print(f"# {line}")


def make():
    with tempfile.NamedTemporaryFile(suffix=".json") as f:
        done = subprocess.run([os.path.join(ROOT, "script/ci/sbom"), BUILD, f.name], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, env={**os.environ, "SOURCE_DATE_EPOCH": EPOCH}, check=False)
        return f.read().decode(), done.returncode, done.stdout


def fields(document):
    for part, names in FIELDS.items():
        for entry in document.get(part, []) if part else [document]:
            yield from (f"{part or 'document'} {entry.get('SPDXID')}: '{name}' is missing" for name in names if not entry.get(name))
    for p in document["packages"]:
        if p["filesAnalyzed"] != ("packageVerificationCode" in p):
            yield f"{p['name']}: a packageVerificationCode belongs to analysed files"


def values(document):
    creation = document["creationInfo"]
    for what, value, pattern in (
            ("spdxVersion", document["spdxVersion"], r"SPDX-2\.3"), ("dataLicense", document["dataLicense"], r"CC0-1\.0"),
            ("SPDXID", document["SPDXID"], "SPDXRef-DOCUMENT"), ("documentNamespace", document["documentNamespace"], r"https://[^#\s]+"),
            ("created", creation["created"], r"2023-11-14T22:13:20Z"), # EPOCH
            *(("creator", c, r"(Organization|Tool|Person): \S.*") for c in creation["creators"]),
            *(("SPDXID", e["SPDXID"], r"SPDXRef-[A-Za-z0-9.-]+") for e in document["packages"] + document["files"]),
            *(("fileName", f["fileName"], r"\./.+") for f in document["files"]),
            *(("licenseConcluded", e["licenseConcluded"], r"NOASSERTION|[A-Za-z0-9.-]+") for e in document["packages"] + document["files"]),
            *(("SHA1", c["checksumValue"], "[0-9a-f]{40}") for f in document["files"] for c in f["checksums"] if c["algorithm"] == "SHA1"),
            *(("purl", r["referenceLocator"], r"pkg:deb/debian/[^@\s]+@[^@\s]+\?arch=\w+") for p in document["packages"]
              for r in p.get("externalRefs", []))):
        if not re.fullmatch(pattern, value):
            yield f"{what} is '{value}', expected {pattern}"


def references(document):
    ids = [document["SPDXID"]] + [e["SPDXID"] for e in document["packages"] + document["files"]]
    yield from (f"{name} stands twice" for name in sorted({i for i in ids if ids.count(i) > 1}))
    for r in document["relationships"]:
        if r["relationshipType"] not in RELATIONS or not {r["spdxElementId"], r["relatedSpdxElement"]} <= set(ids):
            yield f"wrong relationship {r}"
    for wanted in set(ids) - {r["relatedSpdxElement"] for r in document["relationships"]} - {document["SPDXID"]}:
        yield f"{wanted} is related to nothing"


def contents(document):
    """What is installed, with checksums of these files; libraries that the code cannot do without."""
    by_name = {os.path.basename(f["fileName"]): f for f in document["files"]}
    for name in ("tenrec", "tensorpipe.so", "faulty.so", "tenrec.h", "version.h", "tenrec.pc", "tenrecConfig.cmake"):
        if name not in by_name:
            yield f"{name} is installed and not listed"
    with open(os.path.join(ROOT, "include/tenrec/version.h"), "rb") as f:
        wanted = hashlib.sha256(f.read()).hexdigest()
    if wanted not in [c["checksumValue"] for c in by_name.get("version.h", {}).get("checksums", [])]:
        yield "the checksum of version.h is another one"
    sums = sorted(c["checksumValue"] for f in document["files"] for c in f["checksums"] if c["algorithm"] == "SHA1")
    code = [p["packageVerificationCode"]["packageVerificationCodeValue"] for p in document["packages"] if p["name"] == "tenrec"]
    if code != [hashlib.sha1("".join(sums).encode()).hexdigest()]:
        yield f"the packageVerificationCode {code} is not that of the files"
    packages = {p["name"]: p for p in document["packages"]}
    for name in ("libuv", "yaml-0.1", "jansson", "libcrypto"):
        if not re.match(r"\d+\.\d+", packages.get(name, {}).get("versionInfo", "")):
            yield f"{name} is needed and has no package with a version"


def main():
    text, status, said = make()
    case("sbom_is_written", [f"exit status {status}: {said}"] if status else [])
    if not status:
        document = json.loads(text)
        case("sbom_has_the_fields_that_spdx_demands", fields(document))
        case("sbom_has_values_that_spdx_permits", values(document))
        case("sbom_relates_each_part", references(document))
        case("sbom_lists_files_and_libraries", contents(document))
        case("sbom_of_the_same_build_is_the_same", [] if make()[0] == text else ["a second document is another one"])
    done = subprocess.run([os.path.join(ROOT, "script/ci/sbom"), os.path.join(ROOT, "docs")], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False)
    case("sbom_refuses_a_folder_without_a_build", [] if done.returncode and "is no build folder of Meson" in done.stdout else [done.stdout])


main()
print(f"1..{count}")
sys.exit(failed)
