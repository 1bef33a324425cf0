"""What the OpenAPI document cannot say of requests, for schemathesis (`SCHEMATHESIS_HOOKS`)."""

from itertools import count

import schemathesis

# Given by the daemon, or true to other keys and to what it knows: nobody can make those up.
NOT_MADE_UP = {
    "cursor", "since", "until", "timestamp",
    "exactToolNames", "excludedTools", "selectedToolCategories", "networks", "intentContext",
    "is_deleted", "deletion_time", "schemaVersion", "importance_score", "sortBy",
    "model", "costUsd", "thresholdReached", "totalTokens", "cachedTokens", "cacheWriteTokens",
}  # fmt: skip

# A tool of the catalog.
TOOL = "alpha"

KEY_NUMBERS = count()


def without(value, keys):
    if isinstance(value, dict):
        return {key: without(member, keys) for key, member in value.items() if key not in keys}
    if isinstance(value, list):
        return [without(member, keys) for member in value]
    return value


def storable(value):
    """The same with 0 for U+0000, which no database keeps in a text and no schema of free metadata can rule out."""
    if isinstance(value, dict):
        return {storable(key): storable(member) for key, member in value.items()}
    if isinstance(value, list):
        return [storable(member) for member in value]
    return value.replace("\0", "0") if isinstance(value, str) else value


def with_own_key(call):
    """The same under a key of its own, if it has a sound one: one key is for one call."""
    key = call.get("idempotency_key") if isinstance(call, dict) else None
    is_sound = isinstance(key, str) and 0 < len(key) <= 256 and key.isprintable()
    return {**call, "idempotency_key": f"made-up-{next(KEY_NUMBERS)}"} if is_sound else call


@schemathesis.hook
def before_call(context, case, kwargs):
    case.query = without(case.query, NOT_MADE_UP)
    case.body = storable(without(case.body, NOT_MADE_UP))
    if case.path.endswith("/usage") or case.method == "PATCH":
        # It says the same as the numbers, or is refused; in a memory's metadata it is a misspelt key.
        case.body = without(case.body, {"message"})
    if isinstance(case.body, dict) and isinstance(case.body.get("criteria"), dict):
        # Their keys are the fields of the kind, and paths of one's own, which have scalars.
        scalars = [value for value in case.body["criteria"].values() if isinstance(value, (str, bool, int, float))]
        case.body["criteria"] = {f"metadata.own{number}": value for number, value in enumerate(scalars)}
    if case.path.endswith("/executions"):
        calls = case.body
        case.body = [with_own_key(call) for call in calls] if isinstance(calls, list) else with_own_key(calls)
    if case.path.endswith("/qualify/miss") and isinstance(case.body, dict) and "toolName" in case.body:
        case.body["toolName"] = TOOL


def is_null_somewhere(value):
    if isinstance(value, dict):
        return any(is_null_somewhere(member) for member in value.values())
    if isinstance(value, list):
        return any(is_null_somewhere(member) for member in value)
    return value is None


@schemathesis.hook
def filter_case(context, case):
    # What is optional may be null: that is not said of each, since clients that are made would ask for it.
    return not (case.meta and case.meta.generation.mode.is_negative and is_null_somewhere(case.body))
