"""Makes harder catalogs and messages from public tool-selection sets: selection_variants.py DIRECTORY OUT.

DIRECTORY has NAME_tools.jsonl and NAME_queries.jsonl. Of each set, OUT gets the same two files of these:
joined: two or three requests in one message. pasted: sixty words of foreign descriptions around each request.
short: documents of six words. ten, forty: so many of the tools, with their messages. union: the tools of all sets.
Everything is drawn by the same numbers each time.
"""

import json
import pathlib
import random
import sys

MESSAGES = 500
JOINTS = ["{} {}", "{} Then {}", "{} Also, {}", "{}\n{}", "{} and {}", "First, {} After that {}"]


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines() if line.strip()]


def write(out, name, tools, queries):
    names = {tool["name"].replace("/", ".") for tool in tools}
    kept = [query for query in queries if query["gold"] and {gold.replace("/", ".") for gold in query["gold"]} <= names]
    for kind, rows in [("tools", tools), ("queries", kept)]:
        (out / f"{name}_{kind}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def joined(numbers, queries):
    def one():
        parts = numbers.sample(queries, numbers.choice([2, 2, 3]))
        text = parts[0]["query"]
        for part in parts[1:]:
            text = numbers.choice(JOINTS).format(text, part["query"])
        return {"query": text, "gold": sorted({gold for part in parts for gold in part["gold"]})}

    return [one() for _ in range(MESSAGES)]


def pasted(numbers, query, descriptions):
    words = []
    while len(words) < 60:
        words += numbers.choice(descriptions).split()
    around = [" ".join(words[:60]), query["query"]]
    numbers.shuffle(around)
    return {"query": "\n".join(around), "gold": query["gold"]}


def main(directory, out):
    out = pathlib.Path(out)
    out.mkdir(parents=True, exist_ok=True)
    found = sorted(pathlib.Path(directory).glob("*_tools.jsonl"))
    names = [path.name.removesuffix("_tools.jsonl") for path in found]
    sets = {name: (lines(path), lines(path.with_name(f"{name}_queries.jsonl"))) for name, path in zip(names, found)}
    union = list({tool["name"]: tool for tools, _ in sets.values() for tool in tools}.values())
    for name, (tools, queries) in sets.items():
        numbers = random.Random(name)
        few = numbers.sample(queries, min(MESSAGES, len(queries)))
        foreign = [tool["description"] for other, (tools, _) in sets.items() if other != name for tool in tools]
        write(out, f"{name}_joined", tools, joined(numbers, queries))
        if foreign:
            write(out, f"{name}_pasted", tools, [pasted(numbers, query, foreign) for query in few])
            write(out, f"{name}_union", union, few)
        short = [tool | {"description": " ".join(tool["description"].split()[:6]), "params": ""} for tool in tools]
        write(out, f"{name}_short", short, few)
        needed = sorted({gold for query in queries for gold in query["gold"]})
        for word, count in [("ten", 10), ("forty", 40)]:
            chosen = set(numbers.sample(needed, min(count, len(needed))))
            write(out, f"{name}_{word}", [tool for tool in tools if tool["name"].replace("/", ".") in chosen], queries)


main(*sys.argv[1:])
