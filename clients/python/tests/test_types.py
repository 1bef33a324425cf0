"""The types are what the daemon says of itself."""

from __future__ import annotations

import typing
from typing import Any

import httpx
import pytest

from almanac_client import types

#: The schema of each type.
NAMED = {
    "CallContext": "CallContext",
    "CallMetadata": "CallMetadata",
    "CommonError": "CommonError",
    "Complexity": "MeasuresBody",
    "DayOfUsage": "DayOfUsage",
    "Execution": "ExecutionBody",
    "Memory": "MemoryAnswer",
    "MemoryPage": "SearchAnswer",
    "MemoryPast": "HistoryAnswer",
    "Miss": "MissAnswer",
    "MissEvent": "MissEvent",
    "PresetMatches": "MatchAnswer",
    "PresetSuggestion": "PresetSuggestion",
    "Qualification": "QualifyAnswer",
    "Recorded": "RecordAnswer",
    "Remaining": "RemainingTime",
    "ScoreExplanation": "ScoreExplanation",
    "Session": "SessionAnswer",
    "SessionPage": "SessionList",
    "SessionSummary": "SessionItem",
    "SessionTurn": "TurnItem",
    "SessionTurns": "TurnList",
    "SessionUsage": "UsageOfSession",
    "Suggestions": "SuggestionsAnswer",
    "Thread": "ThreadAnswer",
    "Timing": "Timing",
    "ToolExplanation": "ToolExplanation",
    "ToolPage": "ToolPage",
    "ToolSuggestion": "ToolSuggestion",
    "ToolSummary": "ToolSummary",
    "UsageEvent": "UsageEvent",
    "UsageReport": "UsageReport",
    "Used": "SessionUsage",
}

#: Keys that are there, if only with null.
ALWAYS_SENT = {"CallContext": {"thinking_budget", "session_state"}}

PYTHON = {"string": str, "integer": int, "number": float, "boolean": bool}


@pytest.fixture(scope="module")
def schemas(url: str) -> dict[str, Any]:
    """What the daemon says of its bodies."""
    found: dict[str, Any] = httpx.get(f"{url}/openapi.json", trust_env=False).json()["components"]["schemas"]
    return found


def test_each_type_is_compared() -> None:
    own = {
        name for name, found in vars(types).items() if isinstance(found, type) and hasattr(found, "__required_keys__")
    }
    assert own == set(NAMED)


@pytest.mark.parametrize("name", NAMED)
def test_a_type_is_as_the_daemon_describes_it(name: str, schemas: dict[str, Any]) -> None:
    found, schema = getattr(types, name), schemas[NAMED[name]]
    hints = typing.get_type_hints(found)
    assert set(hints) == set(schema["properties"])
    assert found.__required_keys__ == set(schema.get("required", [])) | ALWAYS_SENT.get(name, set())
    for key, described in schema["properties"].items():
        kinds = described.get("type", [])
        for kind in [kinds] if isinstance(kinds, str) else kinds:
            if hints[key] in PYTHON.values() and kind in PYTHON and (name, key) != ("Execution", "duration_ms"):
                assert hints[key] is PYTHON[kind], key
