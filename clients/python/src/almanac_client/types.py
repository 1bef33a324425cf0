"""What goes over the wire, spelled as it is there.

Durations are in milliseconds, probabilities are 0 to 1, moments are RFC 3339.
"""

# Without postponed annotations: a type could not tell then which of its keys are required.
import sys
from collections.abc import Mapping
from typing import Any, Literal

if sys.version_info >= (3, 11):
    from typing import NotRequired, TypedDict
else:
    # It comes with httpx.
    from typing_extensions import NotRequired, TypedDict

Confidence = Literal["low", "medium", "high"]
Outcome = Literal["success", "error", "timeout", "cancelled"]
MemoryKind = Literal["messages", "cognitive-processes", "documents", "tasks"]


class Complexity(TypedDict, total=False):
    """What makes a call long: sizes of what it has to do. Absent means none."""

    content_length: int
    num_perspectives: int
    num_branches: int
    thinking_budget: int
    context_tokens: int


class Remaining(TypedDict):
    """What is left of a call that runs already, in ms."""

    p50_ms: int
    p90_ms: int
    p95_ms: int


class Timing(TypedDict):
    """What is said of a call before it is made."""

    estimated_duration_ms: int
    confidence: Confidence
    will_timeout_on_factory: bool
    factory_timeout_ms: int
    p50_ms: int
    p90_ms: int
    p95_ms: int
    interval_ms: list[int]
    timeout_probability: float
    timeout: Literal["unlikely", "possible", "likely"]
    samples: int
    fleet_samples: NotRequired[int]
    basis: Literal["history", "tool", "fleet", "hint", "default"]
    known: bool
    near: NotRequired[list[str]]
    remaining: NotRequired[Remaining]
    degraded: NotRequired[str]


class ToolSuggestion(TypedDict):
    """A tool that may come next."""

    tool: str
    reason: str
    estimated_duration_ms: int
    confidence: NotRequired[float]


class PresetSuggestion(TypedDict):
    """A workflow that fits, and what is left of it."""

    preset_id: str
    description: str
    estimated_duration_ms: int
    remaining_steps: list[str]
    remaining_duration_ms: int


class Suggestions(TypedDict):
    """What may come next."""

    next_tools: list[ToolSuggestion]
    relevant_presets: list[PresetSuggestion]
    degraded: NotRequired[list[dict[str, str]]]


class PresetMatches(TypedDict):
    """Workflows that fit and are not finished, the best first."""

    items: list[PresetSuggestion]
    total: int


class CallContext(TypedDict):
    """What the call was."""

    mode_used: str
    thinking_budget: str | None
    session_state: str | None


class CallMetadata(TypedDict):
    """The metadata object."""

    timing: Timing
    suggestions: Suggestions
    context: CallContext


class Execution(TypedDict):
    """One call that ended."""

    tool_name: str
    duration_ms: int
    mode_name: NotRequired[str]
    outcome: NotRequired[Outcome]
    complexity: NotRequired[Complexity]
    session_id: NotRequired[str]
    timestamp: NotRequired[str | int]
    idempotency_key: NotRequired[str]


class Recorded(TypedDict):
    """How many records were new."""

    recorded: int
    degraded: NotRequired[list[str]]


class CommonError(TypedDict):
    """An error that a tool is often met with."""

    error: str
    cause: NotRequired[str]
    solution: str


class ToolSummary(TypedDict):
    """A tool in short."""

    name: str
    title: str
    description: str
    category: str
    capabilities: list[str]
    keywords: list[str]
    score: NotRequired[float]
    common_errors: NotRequired[list[CommonError]]


class ToolPage(TypedDict):
    """A page of tools."""

    items: list[ToolSummary]
    total: int
    next_cursor: NotRequired[str]


class ToolExplanation(TypedDict):
    """What a tool's score is made of."""

    words: float
    name: float
    meaning: float
    usage: float
    context: float


class Qualification(TypedDict):
    """Which tools fit a message, and why."""

    networks: list[str]
    categories: list[str]
    confidence: float
    reasoning: str
    toolHints: list[str]
    intentContext: dict[str, Any]
    availableTools: list[str]
    scores: NotRequired[list[float]]
    explanations: NotRequired[list[ToolExplanation]]
    cutTools: NotRequired[list[str]]
    activeIntent: NotRequired[str]
    toolCount: int
    toolsTotal: int
    noToolNeeded: bool
    noToolProbability: float
    stickyFallbackApplied: bool
    degraded: NotRequired[str]
    timestamp: str


class MissEvent(TypedDict):
    """A tool was missed, or its category was added."""

    type: Literal["missing_tool", "auto_retry"]
    toolName: str
    categoryId: NotRequired[str]
    addedCategory: NotRequired[str]
    retryCount: NotRequired[int]
    message: str
    timestamp: str


class Miss(TypedDict):
    """What came of a tool that was needed and not offered."""

    events: list[MissEvent]
    intentContext: NotRequired[dict[str, Any]]
    degraded: NotRequired[str]


class UsageEvent(TypedDict):
    """What a turn used, as it is shown to a user."""

    type: Literal["token_usage", "path_info"]
    message: str
    path: str
    tokensIn: int
    tokensOut: int
    cachedTokens: int
    cacheWriteTokens: NotRequired[int]
    totalTokens: int
    threshold: int
    thresholdReached: bool
    messageRetentionCount: NotRequired[int]
    costUsd: NotRequired[float]
    toolsExecuted: NotRequired[int]
    maxSteps: NotRequired[int]
    maxToolsReached: NotRequired[bool]
    timedOut: NotRequired[bool]
    timestamp: str
    reasoning: NotRequired[str]


class Used(TypedDict):
    """What turns used in all; the cost in US dollars, of those that told it."""

    turns: int
    tokensIn: int
    tokensOut: int
    cachedTokens: int
    costUsd: NotRequired[float]


class DayOfUsage(TypedDict):
    """What a day's turns used, by UTC."""

    day: str
    overThreshold: int
    used: Used


class SessionUsage(TypedDict):
    """What a session used."""

    sessionId: str
    used: Used


class UsageReport(TypedDict):
    """What was used since the daemon's start, oldest day first, and by sessions, the latest first."""

    since: str
    threshold: int
    days: list[DayOfUsage]
    sessions: list[SessionUsage]


class SessionSummary(TypedDict):
    """A session by its calls of late."""

    sessionId: str
    calls: int
    errors: int
    timeouts: int
    firstAt: str
    lastAt: str


class SessionPage(TypedDict):
    """A page of sessions, those that called last first."""

    items: list[SessionSummary]
    nextCursor: NotRequired[str]


class Session(TypedDict):
    """What a session did lately, oldest call first."""

    sessionId: str
    toolHistory: list[str]
    turnTools: NotRequired[list[str]]
    intentContext: NotRequired[dict[str, Any]]
    usage: NotRequired[dict[str, Any]]


class SessionTurn(TypedDict):
    """What was made of a message of a session, and what was suggested until the next."""

    number: int
    at: str
    intent: NotRequired[str]
    categories: list[str]
    confidence: float
    suggested: list[str]
    taken: list[str]


class SessionTurns(TypedDict):
    """The last turns of a session, the latest first."""

    items: list[SessionTurn]


class ScoreExplanation(TypedDict):
    """What a memory's score is made of."""

    words: float
    meaning: float
    nearWords: float
    nearMeaning: float
    ofNamedDate: NotRequired[bool]
    namesTime: NotRequired[bool]


class Memory(TypedDict):
    """Something that was said, thought, read or planned."""

    id: str
    kind: Literal["message", "cognitive_process", "document", "task"]
    content: str
    metadata: dict[str, Any]
    version: int
    createdAt: str
    updatedAt: str
    score: NotRequired[float]
    matched: NotRequired[list[str]]
    explanation: NotRequired[ScoreExplanation]


class MemoryPage(TypedDict):
    """A page of memories that were looked for."""

    memories: list[Memory]
    total: int
    nextCursor: NotRequired[str]


class Thread(TypedDict):
    """A thread's messages in order."""

    id: str
    chatId: dict[str, Any]
    items: list[Memory]
    total: int
    gaps: list[dict[str, int]]
    nextCursor: NotRequired[str]


class MemoryPast(TypedDict):
    """Earlier versions, latest first."""

    items: list[dict[str, Any]]
    total: int
    nextCursor: NotRequired[str]


Json = Mapping[str, Any]
