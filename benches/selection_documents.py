"""Turns a public tool-selection set into tool documents: selection_documents.py TOOLS.jsonl DIRECTORY.

Each line has name, description, params (`name: description`, a line each or joined by semicolons) and category.
JSON is YAML, so the documents are JSON.
"""

import json
import pathlib
import re
import sys

# Descriptions have semicolons, too: one ends a parameter only where a name and a colon follow.
BETWEEN = re.compile(r"\n|;\s+(?=[\w.$-]+:)")


def document(tool):
    properties = {}
    for line in BETWEEN.split(tool["params"]):
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
