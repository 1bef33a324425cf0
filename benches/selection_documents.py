"""Turns a public tool-selection set into tool documents: selection_documents.py TOOLS.jsonl DIRECTORY.

Each line has name, description, params (one `name: description` a line) and category. JSON is YAML, so the documents are JSON.
"""

import json
import pathlib
import sys


def document(tool):
    properties = {}
    for line in tool["params"].splitlines():
        name, _, description = line.partition(":")
        if name.strip():
            properties[name.strip()] = {"type": "string", "description": description.strip()}
    known = {
        "name": tool["name"].replace("/", "."),
        "title": tool["name"],
        "description": tool["description"],
        "category": tool["category"],
        "capabilities": [],
        "keywords": [],
        "use_cases": [],
    }
    if properties:
        known["input_schema"] = {"type": "object", "properties": properties}
    return known


def main(tools, directory):
    directory = pathlib.Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    for number, line in enumerate(pathlib.Path(tools).read_text().splitlines()):
        (directory / f"{number}.yaml").write_text(json.dumps(document(json.loads(line))))


main(*sys.argv[1:])
