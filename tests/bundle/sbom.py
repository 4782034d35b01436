"""Validates bills of materials: sbom.py CYCLONEDX SPDX, with cyclonedx-python-lib and spdx-tools at hand."""

import sys

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from spdx_tools.spdx.parser.json import json_parser
from spdx_tools.spdx.validation.document_validator import validate_full_spdx_document

with open(sys.argv[1], encoding="utf-8") as file:
    error = JsonStrictValidator(SchemaVersion.V1_6).validate_str(file.read())
if error:
    sys.exit(f"{sys.argv[1]}: {error}")
messages = validate_full_spdx_document(json_parser.parse_from_file(sys.argv[2]))
for message in messages:
    print(f"{sys.argv[2]}: {message.validation_message}")
sys.exit(1 if messages else 0)
