# SPDX-License-Identifier: Apache-2.0
"""Judges JSON files by a JSON Schema.

usage: check_schema.py SCHEMA FILE...

Prints one JSON object a line for each file, in order: {"file": ..., "accepted": true or false, "problems": [...]}.
Exit status 1 when the schema itself is no valid schema of draft 2020-12.
"""

import json
import sys

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError


def refuse_constant(name):
    raise ValueError(f"{name} is no JSON")


def load(path):
    with open(path, "rb") as file:
        return json.loads(file.read().decode("utf-8"), parse_constant=refuse_constant)


def problems(validator, path):
    try:
        document = load(path)
    except (ValueError, RecursionError) as error:
        return [str(error)]
    return [f"{error.json_path}: {error.message}" for error in validator.iter_errors(document)]


def main(schema_path, paths):
    schema = load(schema_path)
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        print(f"{schema_path}: {error.json_path}: {error.message}", file=sys.stderr)
        return 1
    validator = Draft202012Validator(schema)
    for path in paths:
        found = problems(validator, path)
        print(json.dumps({"file": path, "accepted": not found, "problems": found}))
    return 0


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], sys.argv[2:]))
