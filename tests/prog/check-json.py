#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""usage: check-json.py SCHEMA COMMAND=FILE... - each FILE holds what `crikeep COMMAND -o json`
printed. It must match the schema, and have no member that the schema does not name. What does not
hold is printed, and the exit status is 1."""
import json
import sys

import jsonschema

def closed(node):
    """the same schema, in which an object has no members but those that are named"""
    if isinstance(node, list):
        return [closed(x) for x in node]
    if not isinstance(node, dict):
        return node
    node = {k: closed(v) for k, v in node.items()}
    if "properties" in node and "additionalProperties" not in node:
        node["additionalProperties"] = False
    return node


def main():
    bad = []
    with open(sys.argv[1], encoding="utf-8") as file:
        schema = json.load(file)
    jsonschema.Draft202012Validator.check_schema(schema)
    strict = closed(schema)
    for argument in sys.argv[2:]:
        command, path = argument.split("=", 1)
        check = jsonschema.Draft202012Validator({**strict, "$ref": f"#/$defs/{command}"})
        with open(path, encoding="utf-8") as file:
            errors = sorted(check.iter_errors(json.load(file)), key=str)
        bad += [f"{path}: {e.json_path}: {e.message[:200]}" for e in errors]
    print("\n".join(bad))
    sys.exit(1 if bad else 0)


main()
