"""The texts the table is fitted on: short English ones, about tools and out of everyday talk.

Inputs are public packages and repositories; README.md pins them and ../NOTICE names their licences. Nothing of them
enters the project but the numbers that come out of the fit.
"""

import ast
import gzip
import html
import io
import json
import pathlib
import random
import re
import subprocess
import tarfile
import zipfile

SEED = 7
SHORTEST, LONGEST = 8, 400  # characters
# At most so many texts of a source, so that none drowns the others.
MOST = {
    "wordnet definitions": 70_000,
    "wordnet examples": 50_000,
    "google": 75_000,
    "amazon": 40_000,
    "home assistant": 25_000,
    "python": 50_000,
    "topical chat": 60_000,
    "home requests": 25_000,
    "arithmetic": 10_000,
}
PYTHON_PACKAGES = [
    "astropy",
    "django",
    "langchain_community",
    "networkx",
    "nltk",
    "pandas",
    "scikit_learn",
    "scipy",
    "stripe",
    "sympy",
]


def collect(packages, clones):
    """Pairs of source and text, without repeats, in a fixed random order."""
    packages, clones = pathlib.Path(packages), pathlib.Path(clones)
    sources = {
        "wordnet definitions": wordnet_definitions(packages),
        "wordnet examples": wordnet_examples(packages),
        "google": google(packages),
        "amazon": amazon(packages),
        "home assistant": home_assistant(packages),
        "python": python(packages),
        "topical chat": topical_chat(clones),
        "home requests": home_requests(clones),
        "arithmetic": arithmetic(clones),
    }
    rng = random.Random(SEED)
    seen, pairs = set(), []
    for source, texts in sources.items():
        kept = []
        for text in texts:
            text = clean(text)
            if SHORTEST <= len(text) <= LONGEST and text.lower() not in seen:
                seen.add(text.lower())
                kept.append((source, text))
        rng.shuffle(kept)
        pairs += kept[: MOST[source]]
    rng.shuffle(pairs)
    return pairs


def clean(text):
    """One line without markup."""
    text = html.unescape(re.sub(r"<[^<>]*>", " ", text))
    text = re.sub(r":\w+:`~?([^`<]*)[^`]*`|[`*]|\[%[^%]*%\]", r"\1", text)
    text = re.sub(r"\[([^\[\]]*)\]\(https?:[^)]*\)", r"\1", text)
    return " ".join(text.split())


def beginning(text):
    """The first sentences, as far as they stay short."""
    text, kept = clean(text), ""
    for sentence in re.split(r"(?<=[.!?]) (?=[A-Z])", text):
        if kept and len(kept) + len(sentence) > 220:
            break
        kept = f"{kept} {sentence}".strip()
    return kept


def alternate(pairs):
    """Texts alone and behind their names, in turn: tools are described both ways."""
    for number, (name, text) in enumerate(pairs):
        yield text if number % 2 else f"{name}: {text}"


def wheel(packages, name):
    """The files of one package: names and a reader."""
    (path,) = packages.glob(f"{name}-*.whl")
    archive = zipfile.ZipFile(path)
    for file in sorted(archive.namelist()):
        yield file, archive


# WordNet: a sense a line, its words before the bar, then the definition and quoted examples.


def wordnet(packages):
    (deb,) = packages.glob("wordnet-base_*.deb")
    data = subprocess.run(["dpkg-deb", "--fsys-tarfile", deb], check=True, capture_output=True).stdout
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        for part in ["noun", "verb", "adj", "adv"]:
            lines = archive.extractfile(f"./usr/share/wordnet/data.{part}").read().decode("latin-1").splitlines()
            for line in lines:
                if not line.startswith(" "):
                    fields, gloss = line.split(" | ", 1)
                    fields = fields.split()
                    words = fields[4 : 4 + 2 * int(fields[3], 16) : 2]
                    yield [re.sub(r"\(\w+\)$", "", word.replace("_", " ")) for word in words], gloss


def wordnet_definitions(packages):
    return alternate((", ".join(words), re.split(r'; ?"', gloss)[0]) for words, gloss in wordnet(packages))


def wordnet_examples(packages):
    for _, gloss in wordnet(packages):
        yield from re.findall(r'"([^"]+)"', gloss)


# Descriptions of interfaces.


def google(packages):
    for file, archive in wheel(packages, "google_api_python_client"):
        if "/documents/" in file and file.endswith(".json"):
            yield from alternate(described(json.loads(archive.read(file)), ""))


def described(node, name):
    for key, value in node.items() if isinstance(node, dict) else []:
        if key == "description" and isinstance(value, str):
            yield str(node.get("id", name)), beginning(value)
        yield from described(value, key)


def amazon(packages):
    for file, archive in wheel(packages, "botocore"):
        if file.endswith("/service-2.json.gz"):
            service = json.loads(gzip.decompress(archive.read(file)))
            operations = [(name, operation) for name, operation in service["operations"].items()]
            shapes = [(name, shape) for name, shape in service["shapes"].items()]
            documented = [(name, item["documentation"]) for name, item in operations + shapes if "documentation" in item]
            yield from alternate((name, beginning(text)) for name, text in documented)


def home_assistant(packages):
    for file, archive in wheel(packages, "homeassistant"):
        if file.endswith("/strings.json"):
            yield from strings(json.loads(archive.read(file)))


def strings(node):
    if isinstance(node, str):
        yield beginning(re.sub(r"\{\w+\}", "", node))
    for value in node.values() if isinstance(node, dict) else []:
        yield from strings(value)


def python(packages):
    for package in PYTHON_PACKAGES:
        for file, archive in wheel(packages, package):
            if file.endswith(".py") and "/test" not in file:
                yield from alternate(docstrings(ast.parse(archive.read(file))))


def docstrings(module):
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            text = ast.get_docstring(node)
            if text:
                yield node.name, beginning(text.split("\n\n")[0])


# What people say.


def topical_chat(clones):
    for file in ["test_freq", "test_rare", "valid_freq", "valid_rare"]:
        text = (clones / f"Topical-Chat/conversations/{file}.json").read_text()
        for conversation in json.loads(text).values():
            yield from (turn["message"] for turn in conversation["content"])


def home_requests(clones):
    for path in sorted(clones.glob("NLU-Evaluation-Data/CrossValidation/out4RasaReal/**/KFold_1/merged/*.json")):
        yield from (example["text"] for example in json.loads(path.read_text())["rasa_nlu_data"]["common_examples"])


def arithmetic(clones):
    for line in (clones / "grade-school-math/grade_school_math/data/train.jsonl").read_text().splitlines():
        yield beginning(json.loads(line)["question"])
