"""Writes the bill of materials of a Go program, as CycloneDX 1.6: python bom.py PROGRAM FILE.json

The modules are those that `go version -m` finds in the program: what is linked, with its sums. ONNX Runtime is not, since
it is loaded when the program runs.
"""

import hashlib
import json
import os
import subprocess
import sys
import uuid
from datetime import UTC, datetime

from cyclonedx.model import HashAlgorithm, HashType, Property
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output import make_outputter
from cyclonedx.schema import OutputFormat, SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL


def module(path: str, version: str, kind: ComponentType = ComponentType.LIBRARY) -> Component:
    namespace, _, name = path.rpartition("/")
    purl = PackageURL("golang", namespace or None, name, version)
    return Component(name=path, version=version, type=kind, purl=purl, bom_ref=str(purl))


def bill(program: str) -> Bom:
    info = json.loads(subprocess.run(["go", "version", "-m", "-json", program], check=True, capture_output=True).stdout)
    main = module(info["Main"]["Path"], info["Main"]["Version"], ComponentType.APPLICATION)
    linked = [module("std", info["GoVersion"].removeprefix("go"))]
    for dep in info["Deps"]:
        c = module(dep["Path"], dep["Version"])
        # Not the SHA-256 of a file: Go's hash of the module, "h1:" and base64.
        c.properties.add(Property(name="go:sum", value=dep["Sum"]))
        linked.append(c)
    bom = Bom(components=linked)
    bom.metadata.component = main
    bom.metadata.timestamp = datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), UTC)
    bom.register_dependency(main, linked)
    with open(program, "rb") as f:
        sum = hashlib.file_digest(f, "sha256").hexdigest()
    main.hashes.add(HashType(alg=HashAlgorithm.SHA_256, content=sum))
    bom.serial_number = uuid.uuid5(uuid.NAMESPACE_URL, "swagwrap:" + sum)
    return bom


def write(program: str, file: str) -> None:
    text = make_outputter(bill(program), OutputFormat.JSON, SchemaVersion.V1_6).output_as_string(indent=1)
    if errors := JsonStrictValidator(SchemaVersion.V1_6).validate_str(text):
        sys.exit(f"error: {file}: {errors}")
    with open(file, "w") as f:
        f.write(text + "\n")


if __name__ == "__main__":
    write(*sys.argv[1:])
