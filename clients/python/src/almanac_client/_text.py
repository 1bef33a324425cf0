"""Text as it is sent: what cannot be is refused before, with where it is and what to do."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

from .errors import AlmanacArgumentError


def encoded(body: Any) -> bytes:
    """The body as JSON. Raises an `AlmanacArgumentError` or, for objects that JSON does not know, a TypeError."""
    try:
        return json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        for pointer, text in _texts(body, ""):
            checked(text, pointer)
        raise
    except ValueError as error:
        raise AlmanacArgumentError(f"this cannot be sent as JSON: {error}") from error


def checked(text: str, where: str) -> str:
    """The text. Raises an `AlmanacArgumentError` if it has half of a character."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        what = f"{where} has half of a character, U+{ord(text[error.start]):04X} at {error.start}"
        mend = 'text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")'
        raise AlmanacArgumentError(f"{what}, which cannot be sent: send {mend}") from None
    return text


def segment(name: str) -> str:
    """A name as a segment of a path. Raises an `AlmanacArgumentError` for what would be another path."""
    if name in ("", ".", ".."):
        raise AlmanacArgumentError(f"the name cannot be {name!r}: no path has it")
    return quote(checked(name, "the name"), safe="")


def header(value: str, name: str) -> str:
    """The value of a header field. Raises an `AlmanacArgumentError` if it is not of visible ASCII and spaces."""
    if not (value.isascii() and value.isprintable()):
        raise AlmanacArgumentError(f"{name} has characters that cannot be sent: it is of visible ASCII")
    return value


def mapping(value: Any, what: str) -> dict[str, Any]:
    """A mapping, which is an object in JSON. Raises an `AlmanacArgumentError` for anything else."""
    if not isinstance(value, Mapping):
        kind = type(value).__name__
        raise AlmanacArgumentError(
            f'{what} is a mapping, not a {kind}: send it as the value of a key, as {{"result": …}}'
        )
    return dict(value)


def _texts(value: Any, pointer: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield pointer, value
    elif isinstance(value, Mapping):
        for name, item in value.items():
            if isinstance(name, str):
                yield f"a key of {pointer or 'the body'}", name
            yield from _texts(item, f"{pointer}/{name}")
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            yield from _texts(item, f"{pointer}/{index}")
