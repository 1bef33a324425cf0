// Made from the daemon's OpenAPI document by `npm run generate`; edits are lost.

/** A tool that serves a scenario better. */
export interface Alternative {
  /** `tool_name` or `mcp:server_name`. */
  tool: string;
  /** The situation in which it applies. */
  when: string;
  /** What the other choice gains. */
  benefits?: string;
}

/** An alternative. */
export interface AlternativeRelation {
  /** The other tool, or `mcp:server`. */
  tool: string;
  /** Whose document says so: `outgoing` this tool's, `incoming` the other's. */
  direction: string;
  /** The tools that `tool` stands for. */
  resolved: string[];
  /** Does it stand for none? */
  dangling: boolean;
  /** The situation in which it applies. */
  when: string;
  /** What the other choice gains. */
  benefits?: string;
}

/** A memory with its history, to be kept elsewhere: a line of an export. */
export interface ArchivedMemory {
  /** Its id; a new one if it is left out. */
  id?: string | null;
  /** message, cognitive_process, document or task; told by the metadata if it is left out. */
  kind?: string | null;
  /** The text, as it was given. */
  content: string;
  /** Its metadata, by its kind. */
  metadata: Record<string, unknown>;
  /** 1 or more; 1 if it is left out. */
  version?: number | null;
  /** When it was added, RFC 3339; now if it is left out. */
  createdAt?: string | null;
  /** When it was last changed, RFC 3339; as it was added if it is left out. */
  updatedAt?: string | null;
  /** Its earlier versions, oldest first. */
  history?: VersionAnswer[];
}

/** A tool that serves some scenario better. */
export interface BetterTool {
  /** The tool of the set. */
  tool: string;
  /** The better one. */
  alternative: string;
  /** In which scenario. */
  when: string;
  /** What the other choice gains. */
  benefits?: string;
}

/** What the call was. */
export interface CallContext {
  /** The mode, or `none`. */
  mode_used: string;
  /** As it was given. */
  thinking_budget?: ThinkingBudget | null;
  /** As it was given. */
  session_state?: string | null;
}

/** A call of a server's tool that is under way. */
export interface CallInFlight {
  /** The server that is asked. */
  server: string;
  /** The tool, by the name that clients know it by. */
  tool: string;
  /** How long its server has had it, in ms; absent while it waits to be sent. */
  running_ms?: number | null;
  /** How long it still takes in half of all such cases, in ms. */
  p50_left_ms: number;
  /** How long it still takes at most in nine of ten, in ms. */
  p90_left_ms: number;
  /** The probability that a call takes longer than this one has already, 0 to 1. */
  longer_probability: number;
}

/** The metadata object. */
export interface CallMetadata {
  /** What is said of the call. */
  timing: Timing;
  /** What may come next. */
  suggestions: SuggestionsAnswer;
  /** What the call was. */
  context: CallContext;
}

/** A call as a point over time. */
export interface CallPoint {
  /** When it ended, in ms since the epoch. */
  at_ms: number;
  /** How long it took, or was waited for, in ms. */
  duration_ms: number;
  /** success, error, timeout or cancelled. */
  outcome: Outcome;
  /**
   * P05, P25, P50, P75 and P95 as the model said them just before it learnt the call, in ms; absent if they were not
   * kept.
   */
  predicted_ms?: number[] | null;
}

/** Answer of `GET /v1/timing/{name}/calls`. */
export interface CallPoints {
  /** Calls in the order of their times, 10,000 at most. */
  items: CallPoint[];
  /** How many calls they stand for: the latest, 100,000 at most. */
  total: number;
  /** Were there too many? Then of each stretch of them the shortest and the longest are here. */
  thinned: boolean;
}

/** `GET /v1/catalog`. */
export interface CatalogReport {
  /** Rises with every change of content. */
  generation: number;
  /** Hash of the content. */
  hash: string;
  /** How many tools are served. */
  loaded: number;
  /** Tools served in their last good version. */
  stale: string[];
  /** Is a later catalog held back because it has errors? Absent if not; `catalog.strict_reload` has it so. */
  held_back?: boolean;
  /** A page of what is wrong, by file; of one document 20 faults, and how many more there are. */
  diagnostics: Diagnostic[];
  /** Diagnostics on all pages. */
  total: number;
  /** Where the next page starts, if there is one. */
  next_cursor?: string | null;
}

/** A plan that is documented to cost less. */
export interface CheaperPlan {
  /** Its steps. */
  steps: string[];
  /** When the other tool serves as well. */
  when: string;
  /** What it costs less: a key, or a limit of requests. */
  why: string;
  /** How long it will take, in ms. */
  estimated_duration_ms: number;
}

/** Answer of `POST /v1/tools/check`. */
export interface CheckAnswer {
  /** Is nothing unknown or in conflict, and nothing missing but what is optional? */
  ok: boolean;
  /** Names that the catalog does not have. */
  unknown: UnknownTool[];
  /** Conflicts inside the set, worst first. */
  conflicts: CheckedConflict[];
  /** Prerequisites of which environment variables are missing. */
  missing_prerequisites: MissingPrerequisite[];
  /** Tools that serve some scenarios better than one of the set. */
  alternatives: BetterTool[];
}

/** Body of `POST /v1/tools/check`. */
export interface CheckRequest {
  /** Names of tools to load together, at most 1,000; `mcp:server` means all tools of that server. */
  tools: string[];
  /** Names of the environment variables that the caller has. */
  env_vars?: string[] | null;
  /** The provider, or mode, that the tools will be called with, where they have several. */
  provider?: string | null;
}

/** Two tools of the set that should not be used together. */
export interface CheckedConflict {
  /** The two. */
  tools: [string, string];
  /** high, medium or low. */
  severity: 'low' | 'medium' | 'high';
  /** Why the two exclude each other. */
  reason: string;
  /** Which of the two to prefer when. */
  prefer: [Preference, Preference];
}

/** A tool was chosen for a message. */
export interface ChoiceItem {
  /** When: RFC 3339, in UTC. */
  at: string;
  /** How far it is trusted, 0 to 1: what was reported as missing counts more than what was merely called. */
  trust: number;
  /** The message; absent without the scope `memory`. */
  message?: string | null;
}

/** Answer of `GET /v1/tools/{name}/choices`. */
export interface ChoiceList {
  /** Choices, the latest first. */
  items: ChoiceItem[];
}

/**
 * What a client can decide by. A code keeps its meaning for as long as the interface has its version.
 *
 * - `ambiguous-thread`: A thread of that name is in several chats; name the chat.
 * - `answer-too-long`: The answer would take too long; ask for less.
 * - `bad-host`: Not exactly one `Host` header.
 * - `body-too-large`: The body is larger than is taken.
 * - `broken-body`: The body broke off.
 * - `cost-disagrees`: The given cost is not what the tokens and prices come to.
 * - `damaged-memory`: The memory cannot be read from the database; trying again does not help.
 * - `encoded-body`: The body is compressed.
 * - `faulty-configuration`: The configuration is faulty; nothing was reloaded.
 * - `faulty-tokens`: The tokens are faulty; the old ones hold.
 * - `foreign-host`: Not addressed to a host that is served here.
 * - `foreign-origin`: Sent by a page of another origin.
 * - `foreign-tenant`: A tenant is named on the admin socket only.
 * - `future-timestamp`: A moment that is yet to come.
 * - `idempotency-key-reused`: The idempotency key was used for something else.
 * - `invalid-body`: The body is not what the call takes; `errors` says where.
 * - `invalid-cursor`: The cursor is none of this list's.
 * - `invalid-idempotency-key`: An idempotency key is too long, or has odd characters.
 * - `invalid-if-match`: An `If-Match` header that names no version.
 * - `invalid-level`: Not a level of the log.
 * - `invalid-name`: A name in the path is no percent-encoded UTF-8.
 * - `invalid-parameter`: A parameter of the query has an impossible value.
 * - `issuer-unavailable`: The issuer's keys, which a token is checked with, cannot be had now; try again.
 * - `malformed-json`: The body is no JSON.
 * - `malformed-query`: The query is no percent-encoded UTF-8.
 * - `malformed-stream`: No line of the stream is of its protocol.
 * - `memory-exists`: Another memory of that id is there.
 * - `message-disagrees`: The given message is not what its figures say.
 * - `method-not-allowed`: The path does not take this method.
 * - `missing-protocol`: The stream's protocol is not named.
 * - `missing-scope`: The token has not the scope that is needed.
 * - `no-history`: Nothing was recorded of the tool.
 * - `no-token`: A token is needed.
 * - `not-json`: The body is not sent as JSON.
 * - `position-taken`: Another message stands at that position of the thread.
 * - `repeated-parameter`: A parameter of the query stands there twice.
 * - `slow-body`: The body did not arrive in time.
 * - `stopping`: The daemon stops.
 * - `store-busy`: More waits to be stored than the queue holds; try again.
 * - `store-unavailable`: Nothing can be stored or read now; try again.
 * - `tokens-needed`: The console was asked for through a proxy, and there are no tokens.
 * - `too-busy`: More waits to be computed than there are threads for; try again.
 * - `too-many-connections`: No place for another connection.
 * - `too-many-streams`: No place for another stream.
 * - `unknown-category`: No category of that name.
 * - `unknown-memory`: The tenant has no such memory.
 * - `unknown-model`: No price of that model is configured.
 * - `unknown-network`: No network of that name.
 * - `unknown-parameter`: The path does not take this parameter.
 * - `unknown-path`: Nothing is served at this path.
 * - `unknown-plugin`: No rule library of that id.
 * - `unknown-preset`: No preset of that id.
 * - `unknown-protocol`: No protocol of that name.
 * - `unknown-server`: No MCP server of that name.
 * - `unknown-session`: The tenant has no such session.
 * - `unknown-thread`: The tenant has no such thread.
 * - `unknown-token`: The token is not known.
 * - `unknown-tool`: The catalog has no such tool.
 * - `unstorable-text`: A text has the character U+0000, or is longer than the store keeps.
 * - `version-changed`: The memory is at another version by now.
 */
export type Code = 'ambiguous-thread' | 'answer-too-long' | 'bad-host' | 'body-too-large' | 'broken-body' | 'cost-disagrees' | 'damaged-memory' | 'encoded-body' | 'faulty-configuration' | 'faulty-tokens' | 'foreign-host' | 'foreign-origin' | 'foreign-tenant' | 'future-timestamp' | 'idempotency-key-reused' | 'invalid-body' | 'invalid-cursor' | 'invalid-idempotency-key' | 'invalid-if-match' | 'invalid-level' | 'invalid-name' | 'invalid-parameter' | 'issuer-unavailable' | 'malformed-json' | 'malformed-query' | 'malformed-stream' | 'memory-exists' | 'message-disagrees' | 'method-not-allowed' | 'missing-protocol' | 'missing-scope' | 'no-history' | 'no-token' | 'not-json' | 'position-taken' | 'repeated-parameter' | 'slow-body' | 'stopping' | 'store-busy' | 'store-unavailable' | 'tokens-needed' | 'too-busy' | 'too-many-connections' | 'too-many-streams' | 'unknown-category' | 'unknown-memory' | 'unknown-model' | 'unknown-network' | 'unknown-parameter' | 'unknown-path' | 'unknown-plugin' | 'unknown-preset' | 'unknown-protocol' | 'unknown-server' | 'unknown-session' | 'unknown-thread' | 'unknown-token' | 'unknown-tool' | 'unstorable-text' | 'version-changed';

/** Metadata of a thought, reflection, insight, plan, evaluation or decision. */
export interface CognitiveProcessMetadata {
  /** What kind of thinking it was. */
  processType: CognitiveProcessType;
  /** Who thought. */
  agentId: StructuredId;
  /** How much it matters; made from the score if only that is given. */
  importance?: ImportanceLevel | null;
  /** The same as a number of 0 to 1; made from the level if only that is given. */
  importance_score?: Share | null;
  /** Words to find it by. */
  tags?: string[] | null;
  /** Set by a soft delete; writers may not. */
  is_deleted?: boolean | null;
  /** When it was deleted; writers may not set it. */
  deletion_time?: Moment | null;
  /** The version of this format; the current one if it is not given. */
  schemaVersion?: string;
  /** What it was thought about, such as a conversation. */
  contextId?: Reference | null;
  /** Memories it has to do with. */
  relatedTo?: References | null;
  /** Memories it led to. */
  influences?: References | null;
  /** Memories it came from. */
  influencedBy?: References | null;
  /** How much it is to the point, 0 to 1. */
  relevance?: Share | null;
  /** Where it came from. */
  source?: string | null;
  /** What it belongs to. */
  category?: string | null;
  [key: string]: unknown;
}

/**
 * What kind of thinking it was.
 *
 * - `thought`: A thought.
 * - `reflection`: A look back.
 * - `insight`: Something understood.
 * - `planning`: A plan.
 * - `evaluation`: A judgement.
 * - `decision`: A choice.
 */
export type CognitiveProcessType = 'thought' | 'reflection' | 'insight' | 'planning' | 'evaluation' | 'decision';

/** An error often met. */
export interface CommonError {
  /** The error as it shows. */
  error: string;
  /** Where it comes from. */
  cause?: string;
  /** What to do. */
  solution: string;
}

/**
 * What a message between agents is for.
 *
 * - `request`: It asks.
 * - `response`: It answers.
 * - `notification`: It tells.
 * - `broadcast`: It tells all.
 */
export type CommunicationType = 'request' | 'response' | 'notification' | 'broadcast';

/** A tool that works well with this one. */
export interface Complement {
  /** `tool_name` or `mcp:server_name`. */
  tool: string;
  /** The situation in which it applies. */
  scenario: string;
  /** How they are used together. */
  example?: string;
}

/** A complement. */
export interface ComplementRelation {
  /** The other tool, or `mcp:server`. */
  tool: string;
  /** Whose document says so: `outgoing` this tool's, `incoming` the other's. */
  direction: string;
  /** The tools that `tool` stands for. */
  resolved: string[];
  /** Does it stand for none? */
  dangling: boolean;
  /** The situation in which it applies. */
  scenario: string;
  /** How they are used together. */
  example?: string;
}

/**
 * How complex a result was.
 *
 * - `simple`: Simple.
 * - `moderate`: Moderate.
 * - `complex`: Complex.
 */
export type ComplexityLevel = 'simple' | 'moderate' | 'complex';

/** A tool, or `mcp:server`, that should not be used beside this one. */
export interface Conflict {
  /** `tool_name` or `mcp:server_name`. */
  tool: string;
  /** Why the two exclude each other. */
  reason: string;
  /** When this tool is the right one. */
  when_prefer_this: string;
  /** When the other is. */
  when_prefer_other: string;
  /** Absent means medium. */
  severity?: ConflictSeverity | null;
}

/** A conflict, seen from the tool that was asked about. */
export interface ConflictRelation {
  /** The other tool, or `mcp:server`. */
  tool: string;
  /** Whose document says so: `outgoing` this tool's, `incoming` the other's. */
  direction: string;
  /** The tools that `tool` stands for. */
  resolved: string[];
  /** Does it stand for none? */
  dangling: boolean;
  /** high, medium or low. */
  severity: 'low' | 'medium' | 'high';
  /** Why the two exclude each other. */
  reason: string;
  /** When the tool that was asked about is the right one. */
  when_prefer_this: string;
  /** When the other is. */
  when_prefer_other: string;
}

/**
 * How bad a conflict is.
 *
 * - `low`: A matter of taste.
 * - `medium`: Usually wrong together; what an absent severity means.
 * - `high`: Never together.
 */
export type ConflictSeverity = 'low' | 'medium' | 'high';

/** A reference to what is not there. */
export interface DanglingAnswer {
  /** The memory that refers. */
  from: string;
  /** The key. */
  relation: string;
  /** The name it refers by. */
  target: string;
}

/** How it stands with the database that several daemons share. */
export interface DatabaseState {
  /** Does it take what is sent? */
  reachable: boolean;
  /** Why not. */
  trouble?: string | null;
  /** Records that only this machine has. */
  waiting: number;
  /** Bytes of them. */
  spooled_bytes: number;
  /** Seconds that the oldest of them has waited. */
  oldest_seconds: number;
  /** Records that were acknowledged and then refused by it, since the start. */
  put_aside: number;
  /** Records and other transactions of other daemons that this one does not know yet. */
  behind: number;
  /** Seconds since it knew all of them. */
  followed_seconds: number;
}

/** What a day's turns used. */
export interface DayOfUsage {
  /** The day, such as 2026-01-31, by UTC. */
  day: string;
  /** Turns of it that reached their threshold. */
  overThreshold: number;
  /** What they used. */
  used: SessionUsage;
}

/** One finding about one file. */
export interface Diagnostic {
  /** The file or directory. */
  file: string;
  /** 1-based; 0 when the finding is about the whole file. */
  line: number;
  /** 1-based, in characters; 0 when the finding is about the whole file. */
  column: number;
  /** Whether the document can be served in spite of it. */
  severity: Severity;
  /** Stable code, such as `unknown-key`. */
  code: string;
  /** Lower-case sentence. */
  message: string;
  /** What to do about it. */
  hint?: string | null;
  /** The line itself, cut to 200 characters. */
  source?: string | null;
}

/** Metadata of a document. */
export interface DocumentMetadata {
  /** Where it came from. */
  source: DocumentSource;
  /** Who keeps it. */
  agentId: StructuredId;
  /** How much it matters; made from the score if only that is given. */
  importance?: ImportanceLevel | null;
  /** The same as a number of 0 to 1; made from the level if only that is given. */
  importance_score?: Share | null;
  /** Words to find it by. */
  tags?: string[] | null;
  /** Set by a soft delete; writers may not. */
  is_deleted?: boolean | null;
  /** When it was deleted; writers may not set it. */
  deletion_time?: Moment | null;
  /** The version of this format; the current one if it is not given. */
  schemaVersion?: string;
  /** Its title, for people. */
  title?: string | null;
  /** Where the content is found. */
  url?: string | null;
  /** Its media type, such as text/plain. */
  contentType?: string | null;
  /** Its file's name. */
  fileName?: string | null;
  /** Its size in bytes. */
  fileSize?: number | null;
  /** When it was made. */
  creationDate?: Moment | null;
  /** When it was last changed. */
  lastModified?: Moment | null;
  /** Who wrote it. */
  authors?: string[] | null;
  /** The person it belongs to. */
  userId?: StructuredId | null;
  [key: string]: unknown;
}

/**
 * Where a document came from.
 *
 * - `file`: A file.
 * - `web`: A page of the web.
 * - `api`: An interface for programs.
 * - `user`: A person.
 * - `agent`: An agent.
 * - `tool`: A tool.
 * - `system`: The system itself.
 */
export type DocumentSource = 'file' | 'web' | 'api' | 'user' | 'agent' | 'tool' | 'system';

/** Body of `POST /v1/enrich`. */
export interface EnrichRequest {
  /** The call. */
  request: MetadataRequest;
  /** The tool's response, to which `metadata` is added. */
  response: Record<string, unknown>;
}

/** Answer of `POST /v1/estimate`. */
export interface EstimateAnswer {
  /** What is said of the call, or of the plan. */
  timing: Timing;
}

/** Body of `POST /v1/estimate`: one call, or the steps of a plan. */
export interface EstimateRequest {
  /** The tool; not together with `steps`. */
  tool_name?: string | null;
  /** Its mode, if it has modes. */
  mode_name?: string | null;
  /** How much it has to do. */
  complexity?: MeasuresBody;
  /** When the caller gives up, in ms; the factory's limit by default. */
  timeout_ms?: number | null;
  /** How long the call has run already, in ms. */
  elapsed_ms?: number | null;
  /** A plan's calls, one after the other, at most 100. */
  steps?: PlanStep[] | null;
}

/** A worked example. */
export interface Example {
  /** Name of the example. */
  name: string;
  /** What it shows. */
  description?: string;
  /** The call's input. */
  input: Record<string, unknown>;
  /** The call's output, of any type. */
  output: unknown;
  /** Why the output is what it is. */
  explanation?: string;
}

/** One call that ended. */
export interface ExecutionBody {
  /** The tool's name, as its document gives it. */
  tool_name: string;
  /** Its mode, if it has modes. */
  mode_name?: string | null;
  /** How long it took, or was waited for: 0 to 86,400,000 ms, a day. Fractions are rounded. */
  duration_ms: number;
  /** success (default), error, timeout or cancelled. */
  outcome?: Outcome | null;
  /** What made it long. */
  complexity?: MeasuresBody;
  /** The session it belongs to. */
  session_id?: string | null;
  /** When it ended: RFC 3339, UTC where it has no offset, or milliseconds since the epoch; now by default. */
  timestamp?: Timestamp | null;
  /** A second record with this key is the same call told again. */
  idempotency_key?: string | null;
}

/** A call that was recorded. */
export interface ExecutionItem {
  /** The tool's name. */
  tool_name: string;
  /** Its mode; absent without one. */
  mode_name?: string | null;
  /** success, error, timeout or cancelled. */
  outcome: Outcome;
  /** How long it took, or was waited for, in ms; absent if that is not known. */
  duration_ms?: number | null;
  /** The session it belongs to; absent without one. */
  session_id?: string | null;
  /** When it ended: RFC 3339, in UTC. */
  timestamp: string;
  /** Size of its input, in characters; absent if nobody said. */
  content_length?: number | null;
  /**
   * P05, P25, P50, P75 and P95 of its duration as the model said them just before it learnt the call, in ms; absent
   * if they were not kept.
   */
  predicted_ms?: number[] | null;
}

/** Answer of `GET /v1/executions`. */
export interface ExecutionList {
  /** Calls, those that were recorded last first. */
  items: ExecutionItem[];
  /** Where the next page starts, if there is one. */
  next_cursor?: string | null;
}

/** Answer of `GET /-/memories/export`. */
export interface ExportAnswer {
  /** Memories by id, deleted ones included. */
  items: ArchivedMemory[];
  /** Where the next page starts, if there is one. */
  nextCursor?: string | null;
}

/** A rule library that failed. */
export interface FailedPlugin {
  /** Its id. */
  id: string;
  /** Why. */
  reason: string;
}

/** A plan that is expected to be faster. */
export interface FasterPlan {
  /** Its steps. */
  steps: string[];
  /** When the other tool serves as well. */
  when: string;
  /** How long it will take, in ms. */
  estimated_duration_ms: number;
  /** How much less that is, in ms. */
  saves_ms: number;
  /** What it costs more, by the documents. */
  dearer?: string | null;
}

/** Answer of `GET /v1/fleet`. */
export interface FleetAnswer {
  /** postgresql, which daemons share, or sqlite: this one is alone, and no daemon is listed. */
  store: 'postgresql' | 'sqlite';
  /**
   * The daemons, by host and id. One that was not heard of for a week is left out; at most 1,000 are listed, those
   * that were heard of last.
   */
  items: FleetDaemonItem[];
  /** How many there are. */
  total: number;
  /** Why only the daemon that answers is listed, if so: the database cannot be read. */
  degraded?: string[];
}

/** A daemon of the fleet, as it said of itself last. It does so every five seconds. */
export interface FleetDaemonItem {
  /** What `daemon.id` in its state directory says. */
  id: string;
  /** Its `store.host`: daemons that say the same share their durations. */
  host: string;
  /** Is it the one that answers? */
  self: boolean;
  /** alive; silent: not heard of for 15 seconds; stopped: it said that it ends; or unknown: its version does not say. */
  state: 'alive' | 'silent' | 'stopped' | 'unknown';
  /** Its version; absent if that does not say how it is, like all that follows but `seen_at` and `unseen_seconds`. */
  version?: string | null;
  /** When it started, RFC 3339, by the clock of the database; of the one that answers by its own. */
  started_at?: string | null;
  /** When it was last heard of, RFC 3339, by the same clock. */
  seen_at: string;
  /** Seconds since then. */
  unseen_seconds: number;
  /** How it stood with the database then; of the one that answers, as it is now. */
  database?: DatabaseState | null;
}

/** Positions that no message has. */
export interface Gap {
  /** The first. */
  from: number;
  /** The last. */
  to: number;
}

/** A relation that a document declares. */
export interface GraphRelation {
  /** conflict, alternative or complement. */
  kind: 'conflict' | 'alternative' | 'complement';
  /** The tool whose document says so. */
  from: string;
  /** The other tool. */
  to: string;
}

/** A tool. */
export interface GraphTool {
  /** Its name. */
  name: string;
  /** Its category. */
  category: string;
}

/** A tool that was called after another. */
export interface GraphTransition {
  /** The tool that was called. */
  from: string;
  /** What was called next. */
  to: string;
  /** How often, ever. */
  calls: number;
  /** Its share of what was called next, 0 to 1, earlier calls fading. */
  share: number;
}

/** `GET /v1/memories/{id}/history`. */
export interface HistoryAnswer {
  /** Earlier versions, latest first. */
  items: VersionAnswer[];
  /** How many there are on all pages. */
  total: number;
  /** Where the next page starts, if there is one. */
  nextCursor?: string | null;
}

/** Answer of `POST /-/memories/import`. */
export interface ImportAnswer {
  /** Memories that were new. */
  imported: number;
}

/** Body of `POST /-/memories/import`. */
export interface ImportRequest {
  /** At most 1,000, taken all or none. Those that are there already are left alone. */
  memories: ArchivedMemory[];
}

/**
 * How much a memory matters; its number is `ImportanceLevel::score`.
 *
 * - `low`: .25, for scores below .3.
 * - `medium`: .5, for scores from .3 on.
 * - `high`: .75, for scores from .6 on.
 * - `critical`: .95, for scores from .9 on.
 */
export type ImportanceLevel = 'low' | 'medium' | 'high' | 'critical';

/** What a conversation is about. */
export interface IntentContextBody {
  /** Networks that were named. */
  networks?: string[];
  /** Categories that are offered. */
  categories: string[];
  /** What the user is after. */
  activeIntent?: string | null;
  /** Turns since a confident message. */
  turnsSinceUpdate: number;
  /** The confidence of the turn before, 0 to 1. */
  lastConfidence: number;
}

/** What was learnt of a tool and mode. */
export interface KeyTiming {
  /** The tool's name, as its document gives it. */
  tool: string;
  /** Its mode; `#error` at its end means the calls that failed. */
  mode: string;
  /** Calls that were recorded, ever. */
  samples: number;
  /** What an estimate would rest on. */
  basis: 'history' | 'tool' | 'fleet' | 'hint' | 'default';
  /** What an estimate would say, in ms. */
  estimated_duration_ms: number;
  /** high, medium or low. */
  confidence: 'low' | 'medium' | 'high';
  /** Half of all calls take less, in ms. */
  p50_ms: number;
  /** Nine in ten take less, in ms. */
  p90_ms: number;
  /** 19 in 20 take less, in ms. */
  p95_ms: number;
  /** Nine in ten end between these, in ms. */
  interval_ms: [number, number];
  /** How forecasts came true of late; absent before the first call. */
  recent_accuracy?: RecentAccuracy | null;
}

/** `GET /live`. */
export interface Live {
  /** Always true: the answer itself says it. */
  live: boolean;
}

/** Answer of `PUT /-/log-level`. */
export interface LogLevelAnswer {
  /** The level that is set. */
  level: string;
  /** What of it does not do what it seems to say, such as a part of the program that is not there. */
  warnings?: string[];
}

/** Body of `PUT /-/log-level`. */
export interface LogLevelRequest {
  /** A level, or directives such as `info,almanac::http=debug`. */
  level: string;
}

/** Answer of `POST /v1/presets/match`. */
export interface MatchAnswer {
  /** Presets that fit and are not finished, the best first; at most 3. */
  items: PresetSuggestion[];
  /** How many these are. */
  total: number;
}

/** Body of `POST /v1/presets/match`. */
export interface MatchRequest {
  /** The tools that were called, oldest first; the session's last 20 by default. */
  tool_history?: string[] | null;
  /** What the session is about. */
  goal?: string | null;
  /** The session whose calls stand in for `tool_history`. */
  session_id?: string | null;
}

/** `POST /-/mcp/{name}/approve` and `POST /v1/servers/{name}/approve`. */
export interface McpServerApproved {
  /** Names of the tools whose definitions are approved now. */
  approved: string[];
}

/** `GET /-/mcp/{name}/diff` and `GET /v1/servers/{name}/changes`. */
export interface McpServerDiff {
  /** Definitions that wait for an approval, by name. */
  items: McpToolDifference[];
}

/** An MCP server behind the daemon. */
export interface McpServerItem {
  /** As it is configured. */
  name: string;
  /** Begins the names of its tools; empty for none. */
  prefix: string;
  /**
   * up, starting (its lists are those of before, if it has any), idle (stopped until the next
   * call of it), down, or needs-login: it wants a person who logs in, which `problem` says more
   * of.
   */
  state: string;
  /** legacy or modern; absent until it was greeted once. */
  era?: string | null;
  /** The protocol's version that it is spoken to in. */
  version?: string | null;
  /** Its process. */
  pid?: number | null;
  /** Tools that are listed; absent if it was never listed. */
  tools?: number | null;
  /** Prompts that are listed. */
  prompts?: number | null;
  /** Resources and templates of resources that are listed. */
  resources?: number | null;
  /** Tools that wait for an approval. */
  waiting: number;
  /** Starts since the daemon's. */
  starts: number;
  /** Why it does not serve, or not with its new configuration. */
  problem?: string | null;
}

/** `GET /-/mcp`. */
export interface McpServerList {
  /** The servers, by name. */
  items: McpServerItem[];
  /** How many there are. */
  total: number;
}

/** `GET /-/mcp/{name}/logs`. */
export interface McpServerLogs {
  /** The last lines, oldest first, each with its time. */
  lines: string[];
}

/** `POST /-/mcp/{name}/restart`. */
export interface McpServerRestarted {
  /** The server. */
  restarted: string;
}

/** A definition that waits for an approval. */
export interface McpToolDifference {
  /** The tool's name there. */
  tool: string;
  /** What was approved; absent if nothing was. */
  approved?: unknown;
  /** What is offered now. */
  offered: unknown;
}

/** What makes a call long; absent means none. */
export interface MeasuresBody {
  /** Characters of the input. */
  content_length?: number | null;
  /** Number of perspectives asked for. */
  num_perspectives?: number | null;
  /** Number of branches asked for. */
  num_branches?: number | null;
  /** Thinking budget, in tokens. */
  thinking_budget?: number | null;
  /** Tokens of context sent along. */
  context_tokens?: number | null;
}

/** A memory. */
export interface MemoryAnswer {
  /** Unique within its tenant. */
  id: string;
  /** message, cognitive_process, document or task. */
  kind: 'message' | 'cognitive_process' | 'document' | 'task';
  /** The text, as it was given. */
  content: string;
  /** Its metadata, by its kind. */
  metadata: Record<string, unknown>;
  /** 1 when it is added, one more with each change. */
  version: number;
  /** When it was added, RFC 3339. */
  createdAt: string;
  /** When it was last changed, RFC 3339. */
  updatedAt: string;
  /** How well it matches the query; comparable within one answer only. */
  score?: number | null;
  /** The terms of the query that it has itself in any form, stemmed. */
  matched?: string[] | null;
  /** What the score is made of. */
  explanation?: ScoreExplanation | null;
}

/** What came with a message. */
export interface MessageAttachment {
  /** What it is, such as image or file. */
  type: string;
  /** Where the content is found. */
  url?: string | null;
  /** Itself, as text. */
  data?: string | null;
  /** Its file's name. */
  filename?: string | null;
  /** Its media type, such as text/plain. */
  contentType?: string | null;
  /** Whatever else is to be said of it. */
  metadata?: Record<string, unknown> | null;
}

/** Metadata of a message. */
export interface MessageMetadata {
  /** Who wrote the message. */
  role: MessageRole;
  /** The person. */
  userId: StructuredId;
  /** The agent. */
  agentId: StructuredId;
  /** The chat. */
  chatId: StructuredId;
  /** Where it stands in its thread. */
  thread: ThreadInfo;
  /** How much it matters; made from the score if only that is given. */
  importance?: ImportanceLevel | null;
  /** The same as a number of 0 to 1; made from the level if only that is given. */
  importance_score?: Share | null;
  /** Words to find it by. */
  tags?: string[] | null;
  /** Set by a soft delete; writers may not. */
  is_deleted?: boolean | null;
  /** When it was deleted; writers may not set it. */
  deletion_time?: Moment | null;
  /** The version of this format; the current one if it is not given. */
  schemaVersion?: string;
  /** Such as greeting. */
  messageType?: string | null;
  /** What came with it. */
  attachments?: MessageAttachment[] | null;
  /** Where it came from. */
  source?: string | null;
  /** What it belongs to. */
  category?: string | null;
  /** The agent that speaks, between agents. */
  senderAgentId?: StructuredId | null;
  /** The agent that is spoken to. */
  receiverAgentId?: StructuredId | null;
  /** What it is for, between agents. */
  communicationType?: CommunicationType | null;
  /** How pressing it is. */
  priority?: MessagePriority | null;
  /** Does the sender wait for an answer? */
  requiresResponse?: boolean | null;
  [key: string]: unknown;
}

/**
 * How pressing a message is.
 *
 * - `low`: When there is time.
 * - `normal`: In its turn.
 * - `high`: Soon.
 * - `urgent`: Now.
 */
export type MessagePriority = 'low' | 'normal' | 'high' | 'urgent';

/**
 * Who wrote the message.
 *
 * - `user`: A person.
 * - `assistant`: An agent.
 * - `system`: The frame around them.
 * - `tool`: A tool's answer.
 */
export type MessageRole = 'user' | 'assistant' | 'system' | 'tool';

/** Body of `POST /v1/metadata`. */
export interface MetadataRequest {
  /** The tool's name, as its document gives it. */
  tool_name: string;
  /** Its mode, if it has modes. */
  mode_name?: string | null;
  /** How much it has to do. */
  complexity?: MeasuresBody;
  /** What the call gave. */
  result_context?: ResultContext;
  /** The tools called before, oldest first; the session's last 20 by default. */
  tool_history?: string[] | null;
  /** What the session is about. */
  goal?: string | null;
  /** How long the model may think. */
  thinking_budget?: ThinkingBudget | null;
  /** Whatever the tool says of its session. */
  session_state?: string | null;
  /** When the caller gives up, in ms. */
  timeout_ms?: number | null;
  /** How long the call has run already, in ms. */
  elapsed_ms?: number | null;
}

/** Calls that were recorded in one minute. */
export interface MinuteOfCalls {
  /** When it began, RFC 3339. */
  at: string;
  /** All of them. */
  calls: number;
  /** Those that failed. */
  errors: number;
  /** Those that their callers gave up on. */
  timeouts: number;
}

/** Answer of `POST /v1/qualify/miss`. */
export interface MissAnswer {
  /** `missing_tool`, then `auto_retry`. */
  events: MissEvent[];
  /** The session's context, with the category added. */
  intentContext?: IntentContextBody | null;
  /** Why it may be forgotten when the daemon ends; absent if it is durable. */
  degraded?: string | null;
}

/** A tool was missed, or its category was added. */
export interface MissEvent {
  /** `missing_tool` or `auto_retry`. */
  type: string;
  /** The tool's name, as its document gives it. */
  toolName: string;
  /** Its category, of `missing_tool`. */
  categoryId?: string | null;
  /** The category that was added, of `auto_retry`. */
  addedCategory?: string | null;
  /** Misses of this turn, of `auto_retry`. */
  retryCount?: number | null;
  /** What to tell a developer. */
  message: string;
  /** RFC 3339, UTC, milliseconds. */
  timestamp: string;
}

/** Body of `POST /v1/qualify/miss`. */
export interface MissRequest {
  /** The tool that was needed. */
  toolName: string;
  /** The conversation. */
  sessionId?: string | null;
  /** The message that needed it; the session's last one by default. */
  message?: string | null;
}

/** A rule library that could not be asked. */
export interface MissingPlugin {
  /** Which one. */
  plugin: string;
  /** Why not. */
  reason: string;
}

/** A prerequisite of which environment variables are missing. */
export interface MissingPrerequisite {
  /** The tool that needs it. */
  tool: string;
  /** What is needed. */
  name: string;
  /** The variables that are missing. */
  env_vars: string[];
  /** Providers or modes that need it; empty means all. */
  required_for: string[];
  /** Where to get it. */
  how_to_get: string;
  /** What works without it. */
  fallback?: string;
  /** Does the tool work without: by another provider, in another mode, or with less? */
  optional: boolean;
}

/** A moment as its writer spelt it, in RFC 3339. */
export type Moment = string;

/** Body of `POST /v1/memories/{kind}`. */
export interface NewMemoryWithCognitiveProcessMetadata {
  /** The text, as it was given. */
  content: string;
  /** Its metadata, by its kind. */
  metadata: CognitiveProcessMetadata;
}

/** Body of `POST /v1/memories/{kind}`. */
export interface NewMemoryWithDocumentMetadata {
  /** The text, as it was given. */
  content: string;
  /** Its metadata, by its kind. */
  metadata: DocumentMetadata;
}

/** Body of `POST /v1/memories/{kind}`. */
export interface NewMemoryWithMessageMetadata {
  /** The text, as it was given. */
  content: string;
  /** Its metadata, by its kind. */
  metadata: MessageMetadata;
}

/** Body of `POST /v1/memories/{kind}`. */
export interface NewMemoryWithTaskMetadata {
  /** The text, as it was given. */
  content: string;
  /** Its metadata, by its kind. */
  metadata: TaskMetadata;
}

/**
 * How a call ended.
 *
 * - `success`: It answered.
 * - `error`: It failed.
 * - `timeout`: The caller gave up on it.
 * - `cancelled`: The caller changed its mind.
 */
export type Outcome = 'success' | 'error' | 'timeout' | 'cancelled';

/**
 * What a document can say instead of a server.
 *
 * - `description`: What the tool does.
 */
export type Overridden = 'description';

/** `GET /v1/overview`. */
export interface OverviewAnswer {
  /** How the daemon is. */
  status: StatusAnswer;
  /** When it started, RFC 3339. */
  started_at: string;
  store: StoreState;
  /** Do file events announce changes of documents? Else only the poll finds them. */
  watching: boolean;
  /** Share of recent calls that ended inside the interval that nine in ten should, 0 to 1; absent before the first. */
  coverage?: number | null;
  /** Calls that were judged so since the start. */
  judged_calls: number;
  /** Results that were delivered after their clients would have given up, since the start. */
  saved_calls: number;
  /**
   * Calls that were recorded in the last hour, of all tenants, by minute, oldest first; a minute without calls is
   * left out.
   */
  minutes: MinuteOfCalls[];
  /** Clients that listen to events. */
  listeners: number;
}

/** Body of `PATCH /v1/memories/{id}`: a JSON Merge Patch. */
export interface PatchRequest {
  /** Another text. */
  content?: string;
  /** Merged into the metadata; null removes a key. */
  metadata?: Record<string, unknown>;
}

/** Answer of `POST /v1/plans/check`. */
export interface PlanAnswer {
  /** Is nothing unknown, missing or in conflict? */
  ok: boolean;
  /** What is wrong with the order or the tools. */
  faults: PlanFault[];
  /** Tools that may serve better than a step's. */
  instead: PlanInstead[];
  /**
   * The same plan with one step replaced, where that is expected to be faster; fastest first, and last what is
   * documented to cost more.
   */
  faster: FasterPlan[];
  /** The same plan with one step replaced, where that is documented to cost less; fastest first. */
  cheaper: CheaperPlan[];
  /** What the whole plan will take. */
  timing: Timing;
}

/** What is wrong with a step. */
export interface PlanFault {
  /** unknown-tool, conflict or missing-predecessor. */
  code: string;
  /** The step, 0-based. */
  step: number;
  /** Its tool. */
  tool: string;
  /** What is wrong, and what to do. */
  detail: string;
  /** Names that may have been meant. */
  near?: string[];
}

/** A tool that may serve better. */
export interface PlanInstead {
  /** The step, 0-based. */
  step: number;
  /** Its tool. */
  tool: string;
  /** The tool that may serve better. */
  instead: string;
  /** The question to ask oneself. */
  question: string;
  /** When it serves better. */
  when: string;
  /** What the other choice gains. */
  benefits?: string;
  /** What the step's own document says it is not for, if the goal reads like that. */
  not_for?: string | null;
}

/** Body of `POST /v1/plans/check`. */
export interface PlanRequest {
  /** The calls in their order, at most 100. */
  steps: PlanStep[];
  /** What the plan is for; what the session is about by default. */
  goal?: string | null;
  /** The session it belongs to, whose calls count as made before. */
  session_id?: string | null;
  /** When the caller of the whole plan gives up, in ms; the factory's limit by default. */
  timeout_ms?: number | null;
}

/** One call of a plan: the name of its tool, or more about it. */
export type PlanStep = string | Step;

/** Calls of a rule library by how they came out. */
export interface PluginCalls {
  /** With proposals, or none. */
  answered: number;
  /** With the library's own error. */
  failed: number;
  /** No answer before the deadline. */
  timeout: number;
  /** Not asked: earlier calls took all the time. */
  busy: number;
  /** Not: the library or its process was at fault. */
  fault: number;
  /** Not asked: it was not ready. */
  unavailable: number;
}

/** A fault of a rule library. */
export interface PluginFault {
  /** timeout, slow_start, crash, protocol, oversized, broken, refused or spawn. */
  kind: string;
  /** What happened. */
  message: string;
  /** The moment, by RFC 3339, in UTC. */
  at: string;
  /** SHA-256 of the content that was at fault. */
  hash: string;
  /** Its version, if it told. */
  version?: string | null;
}

/** A rule library. */
export interface PluginItem {
  /** Its id; the name of its file as long as that cannot be read. */
  id: string;
  /** starting, ready, backoff, quarantined or refused. */
  state: 'starting' | 'ready' | 'backoff' | 'quarantined' | 'refused';
  /** Failures within the last minute, in the state backoff. */
  failures: number;
  /** Where its file is. */
  file: string;
  /** The version that serves, or is to. */
  version?: string | null;
  /** Its name for people. */
  name?: string | null;
  /** Who made it. */
  vendor?: string | null;
  /** Where to read on. */
  url?: string | null;
  /** SHA-256 of the content that serves. */
  hash?: string | null;
  /** SHA-256 of the file's content; another than `hash` while a new version starts, or has failed. */
  file_hash?: string | null;
  /** The version in the file. */
  file_version?: string | null;
  /** The interface that the file was built for. */
  abi?: string | null;
  /** The process that serves. */
  pid?: number | null;
  /** Is its access to files confined? */
  sandboxed: boolean;
  /** full, partial (something is lacking), system_calls (no Landlock) or none (it runs in the daemon, or not at all). */
  sandbox: 'none' | 'system_calls' | 'partial' | 'full';
  /** What it lacks to be full: user_namespace, network_namespace, landlock_rights (an older kernel) or landlock. */
  sandbox_lacks?: ('user_namespace' | 'network_namespace' | 'landlock_rights' | 'landlock')[];
  /** Why the file is not run. */
  refusal?: string | null;
  /** Why the file's content does not serve, while an earlier one does. */
  update_refused?: string | null;
  /** Its last fault. */
  last_fault?: PluginFault | null;
  /** When it is tried again, if it is put aside. */
  retry_in_seconds?: number | null;
  /** Processes that were replaced, for whatever reason. */
  restarts: number;
  /** Calls by how they came out. */
  calls: PluginCalls;
  /** Time of answered calls, to a fifth; absent before the first. */
  latency_us?: PluginLatency | null;
}

/** How long answered calls took, in microseconds. */
export interface PluginLatency {
  /** Half of them at most. */
  p50: number;
  /** All but one in a hundred at most. */
  p99: number;
}

/** `GET /v1/plugins`. */
export interface PluginList {
  /** The libraries, in the order of their precedence. */
  items: PluginItem[];
  /** How many there are. */
  total: number;
  /** Can this kernel confine the files of their processes? It needs Landlock for that. */
  sandbox_available: boolean;
}

/** Answer of `POST /-/plugins/{name}/reset`. */
export interface PluginReset {
  /** The library's id. */
  reset: string;
}

/** One fault of a request's body. */
export interface PointedError {
  /** RFC 6901 pointer into the body. */
  pointer: string;
  /** A stable code. */
  code: string;
  /** What is wrong there. */
  detail: string;
}

/** When to prefer a tool. */
export interface Preference {
  /** The tool's name, as its document gives it. */
  tool: string;
  /** The situation. */
  when: string;
}

/** Something the caller needs first. */
export interface Prerequisite {
  /** What is needed. */
  name: string;
  /** The tool that gives it, to be called before (added by Almanac). */
  tool?: string;
  /** Providers or modes that need it; empty means all. */
  required_for?: string[];
  /** Environment variables that hold it. */
  env_vars?: string[];
  /** Where to get it. */
  how_to_get: string;
  /** What works without it. */
  fallback?: string;
}

/** A preset: a workflow of tools. */
export interface PresetMetadata {
  /** Its identity. */
  id: string;
  /** Its name for people. */
  name: string;
  /** What it does. */
  description: string;
  /** The tools in the order of their calls; a tool may occur more than once. */
  tools: string[];
  /** How long all of it takes, in ms. */
  estimated_duration_ms: number;
  /** What it is good for. */
  use_cases: string[];
  /** Words by which a goal calls for it. */
  keywords: string[];
}

/** `GET /v1/presets`. */
export interface PresetPage {
  /** The presets, by id. */
  items: PresetMetadata[];
  /** How many there are on all pages. */
  total: number;
  /** Where the next page starts, if there is one. */
  next_cursor?: string | null;
}

/** A preset that fits. */
export interface PresetSuggestion {
  /** The preset. */
  preset_id: string;
  /** What it is. */
  description: string;
  /** How long all of it takes, in ms. */
  estimated_duration_ms: number;
  /** The tools that are still to be called, in their order. */
  remaining_steps: string[];
  /** How long these take, in ms. */
  remaining_duration_ms: number;
}

/** US dollars for a million tokens. */
export interface PricesBody {
  /** Plain input. */
  input: number;
  /** Output. */
  output: number;
  /** Input read from a cache; as plain input by default. */
  cacheRead?: number | null;
  /** Input written to a cache; as plain input by default. */
  cacheWrite?: number | null;
  /** US dollars for a call. */
  perCall?: number;
  /** Prices of calls with a long input. */
  tiers?: TierBody[];
}

/** An error on the wire. */
export interface ProblemDocument {
  /** The status in words. */
  title: string;
  /** The HTTP status. */
  status: number;
  /** What to decide by. */
  code: Code;
  /** What is wrong, and what to do. */
  detail: string;
  /** Every fault of the body. */
  errors?: PointedError[];
  /** Names that may have been meant. */
  near?: string[];
}

/** Answer of `POST /-/memories/purge`. */
export interface PurgeAnswer {
  /** Memories that were removed. */
  purged: number;
}

/** Body of `POST /-/memories/purge`: exactly one of these. */
export interface PurgeRequest {
  /** These memories. */
  ids?: string[] | null;
  /** All that is known of this person. */
  userId?: StructuredId | null;
  /** What was deleted softly before this, RFC 3339. */
  deletedBefore?: string | null;
  /** true: everything of the tenant. */
  all?: boolean | null;
}

/** Answer of `POST /v1/qualify`. */
export interface QualifyAnswer {
  /** Networks that matter. */
  networks: string[];
  /** Categories that are offered, those always offered first. */
  categories: string[];
  /** The best category's probability, or what the context has left of its own; 0 to 1. */
  confidence: number;
  /** Why, in plain words. */
  reasoning: string;
  /** Up to five best tools, best first. */
  toolHints: string[];
  /** Send it back with the next message of the conversation. */
  intentContext: IntentContextBody;
  /** What the user is after. */
  activeIntent?: string | null;
  /** The tools that are offered, best first. */
  availableTools: string[];
  /** Their scores in the same order, if asked for. */
  scores?: number[] | null;
  /** What each of them is made of, in the same order, if asked for. */
  explanations?: ToolExplanation[] | null;
  /**
   * Tools that the message may well need and that `maxTools` cut, best first, at most five; absent if there are
   * none.
   */
  cutTools?: string[];
  /** How many are offered. */
  toolCount: number;
  /** How many there are. */
  toolsTotal: number;
  /** Can a model answer by itself? */
  noToolNeeded: boolean;
  /** The probability of that, 0 to 1; `noToolNeeded` holds from `qualifier.no_tool_threshold` on. */
  noToolProbability: number;
  /** Was an older context kept? */
  stickyFallbackApplied: boolean;
  /** Why the session does not go on with this message; absent if it does, and without one. */
  degraded?: string | null;
  /** RFC 3339, UTC, milliseconds. */
  timestamp: string;
}

/** Body of `POST /v1/qualify`. */
export interface QualifyRequest {
  /** What the user wrote, at most 256 KiB. */
  message: string;
  /**
   * The conversation; its context is kept, and what is called in it is learnt from. A token that may only read is
   * answered by its context, and leaves it as it is.
   */
  sessionId?: string | null;
  /** The `intentContext` of the answer before, sent back; it wins over that of the session. */
  intentContext?: IntentContextBody | null;
  /** Networks that matter, beside those that the message names. */
  networks?: string[];
  /** Offer these categories instead of guessing; empty means to guess. */
  selectedToolCategories?: string[];
  /** Offer these tools whatever the message is. */
  exactToolNames?: string[];
  /** Offer no other tools than those of `exactToolNames`. */
  ignoreOtherTools?: boolean;
  /** Never offer these tools. */
  excludedTools?: string[];
  /**
   * Tools at most; the configuration's `qualifier.max_tools` by default. Those always offered count and are never
   * cut, and they leave room for the best five.
   */
  maxTools?: number | null;
  /** Leave out what is less likely, 0 to 1. */
  minConfidence?: number | null;
  /** Also answer with the tools' scores. */
  scores?: boolean;
  /** Also answer with what each tool's score is made of. */
  explain?: boolean;
}

/** How often providers may be called. */
export interface RateLimit {
  /** Requests per month, by provider. */
  limits?: Record<string, number>;
  /** What the numbers do not say. */
  notes?: string;
}

/** `GET /ready`. */
export interface Ready {
  /** Are questions answered? */
  ready: boolean;
  /**
   * What is missing: catalog, listeners, plugins, running; or history, what was recorded before the start, without
   * which questions are answered.
   */
  missing: string[];
}

/** How forecasts came true of late, older calls fading. */
export interface RecentAccuracy {
  /** Share of calls within 20 % (or 50 ms) of the estimate, 0 to 1. */
  within_20pct: number;
  /** Share of calls inside `interval_ms`, 0 to 1; .9 is right. */
  coverage90: number;
}

/** Answer of `POST /v1/executions`. */
export interface RecordAnswer {
  /** How many records were new and are durable now. */
  recorded: number;
  /** What they are durable by less than they should be: on one machine alone, since the database cannot be reached. */
  degraded?: string[];
}

/** Body of `POST /v1/executions`. */
export type RecordRequest = ExecutionBody | ExecutionBody[];

/** The name of another thing: 1 to `MAX_PART` characters, none of them a control character. */
export type Reference = string;

/** One name or a list of names; answers have a list. */
export type References = string | string[];

/** A memory that another leads to. */
export interface RelatedAnswer {
  /** Its id. */
  id: string;
  /** Its kind. */
  kind: string;
  /** What it is to `via`: `ledTo` if `via` led to it, `cameFrom` if `via` came from it, else `related`. */
  direction: string;
  /** The key that says so, on either side. */
  relation: string;
  /** References between it and the memory that was asked about. */
  depth: number;
  /** The memory it was reached from. */
  via: string;
}

/** Answer of `GET /v1/relations`. */
export interface RelationGraph {
  /** The generation that it is of. */
  generation: number;
  /** All tools, by name. */
  tools: GraphTool[];
  /** What documents declare, at most 50,000; one between two tools of the catalog each. */
  relations: GraphRelation[];
  /** How many relations there are in all. */
  relations_total: number;
  /** Which tools sessions called one after the other: of each tool the eight that followed it most. */
  transitions: GraphTransition[];
}

/** `GET /v1/memories/{id}/relations`. */
export interface RelationsAnswer {
  /** Memories that it leads to, nearest first. */
  items: RelatedAnswer[];
  /** How many are listed. */
  total: number;
  /** References to what is not there. */
  dangling: DanglingAnswer[];
  /** Were there more than are listed? */
  truncated: boolean;
}

/** Answer of `POST /-/reload`. */
export interface ReloadAnswer {
  /** changed, unchanged or rejected. */
  outcome: 'changed' | 'unchanged' | 'rejected';
  /** The generation that is served now. */
  generation: number;
  /** How many tools are served. */
  tools: number;
  /** Errors among all diagnostics. */
  errors: number;
  /** What is wrong: at most 100 diagnostics, errors first. All are listed by `GET /v1/catalog`. */
  diagnostics: Diagnostic[];
  /** How many diagnostics there are. */
  total?: number;
  /** Rule libraries that answer. */
  plugins_ready: number;
  /** Rule libraries whose file is not what serves. */
  plugins_failed: FailedPlugin[];
  /** Keys of the configuration that changed and take effect at the next start only. */
  waiting?: string[];
}

/** Answer of `POST /-/reload?wait=false`. */
export interface ReloadStarted {
  /** Always true: the answer itself says it. */
  started: boolean;
}

/** What is left of a running call, in ms. */
export interface RemainingTime {
  /** Half of the calls that ran so long end sooner. */
  p50_ms: number;
  /** Nine in ten end sooner. */
  p90_ms: number;
  /** 19 in 20 end sooner. */
  p95_ms: number;
}

/** What a call gave. */
export interface ResultContext {
  /** Results, perspectives, nodes. */
  num_outputs?: number;
  /** Did it branch? */
  has_branches?: boolean;
  /** The session it belongs to. */
  session_id?: string | null;
  /** How complex it is. */
  complexity?: ComplexityLevel | null;
}

/**
 * What a score is made of. Words and meaning are each divided by their spread among the candidates; meaning counts 1.3
 * times, the less the fewer words there are, and that of neighbours a tenth of it; a named date adds 2, or more
 * than all else comes to where nothing else is asked for, and a time that is named where one is asked for 2.
 */
export interface ScoreExplanation {
  /** BM25 of its words and its speaker's name. */
  words: number;
  /** Likeness of its meaning, -1 to 1. */
  meaning: number;
  /** What the words of the messages beside it in its thread, and of its date, add to that. */
  nearWords: number;
  /** The sum of `meaning` of the messages beside it. */
  nearMeaning: number;
  /** Was it added on a day, or in a month of a year, that the text names? Left out if not. */
  ofNamedDate?: boolean;
  /**
   * Does it name a time, such as `yesterday`, where the text asks when something was? Left out if not, or if it is
   * none of the best hundred.
   */
  namesTime?: boolean;
}

/** Answer of a search. */
export interface SearchAnswer {
  /** The memories, in order. */
  memories: MemoryAnswer[];
  /** How many there are on all pages; of a text all that match. */
  total: number;
  /** Where the next page starts, if there is one. */
  nextCursor?: string | null;
}

/** How memories are searched for. */
export interface SearchOptions {
  /** What they are about; only those that match are found. */
  query?: string | null;
  /** At most so many, 1 to 200; 10 by default. */
  limit?: number | null;
  /** So many left out; not together with a cursor. */
  offset?: number | null;
  /**
   * A path in the metadata, `createdAt`, `updatedAt` or, with a query, `score`. By default the score or, without a
   * query, the newest first.
   */
  sortBy?: string | null;
  /** asc or desc; asc by default, but desc for the score. */
  sortDirection?: string | null;
  /** Also what was deleted softly. */
  includeDeleted?: boolean | null;
  /** `nextCursor` of the page before. */
  cursor?: string | null;
  /** Say what each score is made of. */
  explain?: boolean | null;
}

/** Body of `POST /v1/memories/{kind}/search`. */
export interface SearchRequest {
  /**
   * What must hold, all of it: the kind's fields by their paths, of which a list must hold the value; `threadId`
   * for `thread.id`; `tags`, one or a list of which all are meant; `minImportance`, a level or a score; `from`
   * and `to`, when it was added; and `metadata.` and a path for keys of the writer's own.
   */
  criteria?: Record<string, unknown>;
  /** How it is searched. */
  options?: SearchOptions | null;
}

/** Answer of `GET /v1/servers`. */
export interface ServersAnswer {
  /** The servers, by name. */
  items: McpServerItem[];
  /** The tenant's calls that are under way, the one that began first at the beginning. */
  calls: CallInFlight[];
}

/** `GET /v1/sessions/{id}`, spelled as the context that it holds. */
export interface SessionAnswer {
  /** The session the calls belong to. */
  sessionId: string;
  /** Its calls, oldest first, repeats kept. */
  toolHistory: string[];
  /** Tools called since its last message, each once; absent if no message of it was qualified. */
  turnTools?: string[] | null;
  /** What it is about, if messages of it were qualified. */
  intentContext?: IntentContextBody | null;
  /** What it used, if streams of it or reports told. */
  usage?: SessionUsage | null;
}

/** A session, as its calls among the latest 100,000 of the daemon show it. */
export interface SessionItem {
  /** The session. */
  sessionId: string;
  /** Its calls. */
  calls: number;
  /** Of these, those that failed. */
  errors: number;
  /** Of these, those that their callers gave up on. */
  timeouts: number;
  /** When its first call ended: RFC 3339, in UTC. */
  firstAt: string;
  /** When its last call ended. */
  lastAt: string;
}

/** Answer of `GET /v1/sessions`. */
export interface SessionList {
  /** Sessions, those that called last first. */
  items: SessionItem[];
  /** Where the next page starts, if there is one. */
  nextCursor?: string | null;
}

/** What a session used so far, as its streams and `POST /v1/usage` told it. */
export interface SessionUsage {
  /** Turns that told it. */
  turns: number;
  /** All input tokens, cached or not. */
  tokensIn: number;
  /** Tokens that the model wrote. */
  tokensOut: number;
  /** Input tokens read from a cache. */
  cachedTokens: number;
  /** US dollars, of those turns that told it; absent if none did. */
  costUsd?: number | null;
}

/**
 * How bad a finding is.
 *
 * - `error`: The document is not served, or its last good version is.
 * - `warning`: The document is served.
 * - `hint`: The document is served, and nothing need be wrong with it.
 */
export type Severity = 'error' | 'warning' | 'hint';

/** A share, 0 to 1. */
export type Share = number;

/** `GET /-/status`. */
export interface StatusAnswer {
  /** The daemon's version. */
  version: string;
  /** One line for people. */
  status: string;
  /** Are questions answered? */
  ready: boolean;
  /** What is missing. */
  missing: string[];
  /** Seconds since the start. */
  uptime_seconds: number;
  /** The generation that is served. */
  generation: number;
  /** When it was published, RFC 3339. */
  loaded_at: string;
  /** Tools in it. */
  tools: number;
  /** Tools served in their last good version. */
  stale: number;
  /** Rule libraries that answer. */
  plugins_ready: number;
  /** Rule libraries that failed too often, and are put aside for a while. */
  plugins_quarantined: number;
  /** Rule libraries that are not run: not trusted, not allowed, or none. */
  plugins_refused?: number;
  /** Errors in documents. */
  errors: number;
  /** Warnings in documents. */
  warnings: number;
  /** What goes wrong now, a line each: what cannot be stored, a configuration that was not taken, tokens. */
  troubles?: string[];
  /** The database that several daemons share, if there is one. */
  database?: DatabaseState | null;
}

/** A call of a plan, with what its duration depends on. */
export interface Step {
  /** The tool's name, as its document gives it. */
  tool_name: string;
  /** Its mode, if it has modes. */
  mode_name?: string | null;
  /** How much it has to do. */
  complexity?: MeasuresBody;
}

/** How the store is. */
export interface StoreState {
  /** Can records be stored? */
  usable: boolean;
  /** Why not. */
  trouble?: string | null;
  /** Batches that wait to be written. */
  queued: number;
  /** Why what was recorded before the start is not known, if it is not. */
  missing_history?: string | null;
}

/** Answer of `POST /v1/streams`. */
export interface StreamAnswer {
  /** Calls whose durations were recorded. */
  recorded: number;
  /** Calls that ended, in the order in which they did. */
  calls: StreamedCall[];
  /** Calls without a result when the stream ended, which are not recorded. */
  unfinished: UnfinishedCall[];
  /** The last intent that the stream told, if it told one of at most 16 KiB. */
  intent_context?: unknown;
  /** What the stream told of tokens and cost, in order: at most 100 values, each of at most 16 KiB. */
  usage: unknown[];
  /** Lines that could not be read, at most 100. */
  faults: StreamFault[];
}

/** A line that could not be read. */
export interface StreamFault {
  /** The line, from 1. */
  line: number;
  /** What is wrong with it. */
  message: string;
}

/** A call that ended. */
export interface StreamedCall {
  /** Its id in the stream. */
  tool_call_id: string;
  /** The tool's name, as its document gives it. */
  tool_name: string;
  /** success, error, or cancelled when the stream was given up before it ended. */
  outcome: 'success' | 'error' | 'cancelled';
  /**
   * In ms; absent when the result arrived together with the call, or the user had to allow the call, so that the
   * duration is not known: such a call stands in its session's history, and teaches no duration.
   */
  duration_ms?: number | null;
}

/** An id: its parts, or its text form `namespace:type:id[:version]`. Answers have the parts. */
export type StructuredId = string | {
  namespace: string;
  type: string;
  id: string;
  version?: number | null;
};

/** What may come next. */
export interface SuggestionsAnswer {
  /** Tools that may come next. */
  next_tools: ToolSuggestion[];
  /** Presets that fit. */
  relevant_presets: PresetSuggestion[];
  /** Rule libraries that could not be asked, so that something may be missing; absent if there are none. */
  degraded?: MissingPlugin[];
}

/** Metadata of a task. */
export interface TaskMetadata {
  /** What is to be done, in short. */
  title: string;
  /** How far it is. */
  status: TaskStatus;
  /** How pressing it is. */
  priority: TaskPriority;
  /** Who keeps it. */
  agentId: StructuredId;
  /** How much it matters; made from the score if only that is given. */
  importance?: ImportanceLevel | null;
  /** The same as a number of 0 to 1; made from the level if only that is given. */
  importance_score?: Share | null;
  /** Words to find it by. */
  tags?: string[] | null;
  /** Set by a soft delete; writers may not. */
  is_deleted?: boolean | null;
  /** When it was deleted; writers may not set it. */
  deletion_time?: Moment | null;
  /** The version of this format; the current one if it is not given. */
  schemaVersion?: string;
  /** What is to be done, at length. */
  description?: string | null;
  /** Who is to do it. */
  assignedTo?: StructuredId | null;
  /** When it should be done. */
  dueDate?: Moment | null;
  /** When it was done. */
  completedDate?: Moment | null;
  /** The task it is a part of: a memory's id. */
  parentTaskId?: Reference | null;
  /** How far it is, 0 to 1. */
  progress?: Share | null;
  /** How long it should take, in ms. */
  estimatedDuration?: number | null;
  /** How long it took, in ms. */
  actualDuration?: number | null;
  /** How often it was tried. */
  attemptCount?: number | null;
  [key: string]: unknown;
}

/**
 * How pressing a task is.
 *
 * - `low`: When there is time.
 * - `medium`: In its turn.
 * - `high`: Soon.
 * - `urgent`: Now.
 */
export type TaskPriority = 'low' | 'medium' | 'high' | 'urgent';

/**
 * How far a task is.
 *
 * - `pending`: Not begun.
 * - `in_progress`: Begun.
 * - `completed`: Done.
 * - `cancelled`: Given up.
 * - `failed`: Tried in vain.
 */
export type TaskStatus = 'pending' | 'in_progress' | 'completed' | 'cancelled' | 'failed';

/**
 * How long a model may think.
 *
 * - `none`: Not at all.
 * - `standard`: As usual.
 * - `deep`: Longer.
 * - `maximum`: As long as it can.
 */
export type ThinkingBudget = 'none' | 'standard' | 'deep' | 'maximum';

/** `GET /v1/threads/{id}`. */
export interface ThreadAnswer {
  /** The thread. */
  id: string;
  /** The chat it is in. */
  chatId: StructuredId;
  /** Its messages by position. */
  items: MemoryAnswer[];
  /** How many there are on all pages. */
  total: number;
  /** Positions before the last that no message has; at most 1,000 ranges. */
  gaps: Gap[];
  /** Where the next page starts, if there is one. */
  nextCursor?: string | null;
}

/** Where a message stands in its thread. */
export interface ThreadInfo {
  /** The thread. */
  id: Reference;
  /** 0 for the first message; each position of a thread is taken once. */
  position: number;
  /** The thread that this one branched off. */
  parentId?: Reference | null;
}

/** Prices of calls with a long input. */
export interface TierBody {
  /** The tier begins above so many tokens of input in one call. */
  aboveTokens: number;
  /** Plain input. */
  input: number;
  /** Output. */
  output: number;
  /** Input read from a cache; as plain input by default. */
  cacheRead?: number | null;
  /** Input written to a cache; as plain input by default. */
  cacheWrite?: number | null;
}

/** A moment: RFC 3339, or milliseconds since the epoch. */
export type Timestamp = string | number;

/** What is said of a call. */
export interface Timing {
  /** The duration that most calls come close to, in ms. */
  estimated_duration_ms: number;
  /** high, medium or low. */
  confidence: 'low' | 'medium' | 'high';
  /** Is the estimate beyond the caller's limit? */
  will_timeout_on_factory: boolean;
  /** The caller's limit, in ms. */
  factory_timeout_ms: number;
  /** Half of all calls take less, in ms. */
  p50_ms: number;
  /** Nine in ten take less, in ms. */
  p90_ms: number;
  /** 19 in 20 take less, in ms. */
  p95_ms: number;
  /** Nine in ten end between these, in ms. */
  interval_ms: [number, number];
  /** The probability that the call takes longer than the limit, 0 to 1. */
  timeout_probability: number;
  /** unlikely, possible or likely. */
  timeout: 'unlikely' | 'possible' | 'likely';
  /** Calls of this tool and mode that were recorded, ever. */
  samples: number;
  /** Calls of this tool and mode that daemons of other hosts recorded, ever, if there are any. */
  fleet_samples?: number | null;
  /** What the estimate rests on: history, tool, fleet, hint or default. */
  basis: 'history' | 'tool' | 'fleet' | 'hint' | 'default';
  /** Was the tool, or every tool of the plan, ever heard of: documented, recorded, or among the defaults? */
  known: boolean;
  /** Names that may have been meant by one that is not known. */
  near?: string[];
  /** What is left of a call that runs already. */
  remaining?: RemainingTime | null;
  /** Why what was recorded before the daemon's start is not in it, if it is not. */
  degraded?: string | null;
}

/** What to expect before anything was recorded. */
export interface TimingHint {
  /** A typical call, in milliseconds, 1 to 86,400,000 (a day). */
  estimated_duration_ms: number;
}

/** `GET /v1/timing` and `GET /v1/timing/{tool}`. */
export interface TimingPage {
  /** What was learnt, by tool and mode. */
  items: KeyTiming[];
  /** How many there are on all pages. */
  total: number;
  /** Where the next page starts, if there is one. */
  next_cursor?: string | null;
}

/**
 * What a tool's score is made of: parts of a logarithm of odds, which add up. Probabilities are made of these and of
 * how the tool stands among all others.
 */
export interface ToolExplanation {
  /** Words that the message shares with the document. */
  words: number;
  /** How much of the tool's name the message says, and how literally. */
  name: number;
  /** How alike the message and the document are in meaning. */
  meaning: number;
  /** What choices taught. */
  usage: number;
  /** What the conversation and its categories add, and what a document takes away that says what it is not for. */
  context: number;
}

/** Everything a document says about a tool. */
export interface ToolMetadata {
  /** Unique name, 1 to 128 characters without control characters and `/`. */
  name: string;
  /** Name for people. */
  title: string;
  /** What the tool does, to choose by. */
  description: string;
  /** Open vocabulary: web, file, communication, data; may be empty. */
  category: string;
  /** Semantic tags: search, http, `rest_api`. */
  capabilities: string[];
  /** Additional search terms. */
  keywords: string[];
  /** When to use the tool, and when not. */
  use_cases: UseCase[];
  /** Tools that should not be used beside this one. */
  conflicts?: Conflict[];
  /** Tools that serve some scenarios better. */
  alternatives?: Alternative[];
  /** Tools that work well with this one. */
  complements?: Complement[];
  /** Worked examples. */
  examples?: Example[];
  /** Guidelines, as one text. */
  best_practices?: string;
  /** Errors often met. */
  common_errors?: CommonError[];
  /** API keys, environment variables and the like. */
  prerequisites?: Prerequisite[];
  /** How often providers may be called. */
  rate_limit?: RateLimit | null;
  /** Providers of a tool that has several. */
  providers?: string[];
  /** Target backend, if specific. */
  backend?: string;
  /** JSON Schema of the tool's input (added by Almanac). */
  input_schema?: Record<string, unknown> | null;
  /** What to expect before anything was recorded (added by Almanac). */
  timing?: TimingHint | null;
  /** What this document says instead of the MCP server whose tool it describes (added by Almanac). */
  override?: Overridden[];
  /** The argument of an MCP tool that says in which mode it works (added by Almanac). */
  mode_argument?: string | null;
  /** Does a call of the MCP tool change nothing (added by Almanac)? */
  read_only?: boolean | null;
}

/** A page of `GET /v1/tools`. */
export interface ToolPage {
  /** The tools, by name, or by rank if `q` was given. */
  items: ToolSummary[];
  /** How many there are on all pages. */
  total: number;
  /** Where the next page starts, if there is one. */
  next_cursor?: string | null;
}

/** `GET /v1/tools/{name}/relations`. */
export interface ToolRelations {
  /** The tool that was asked about. */
  tool: string;
  /** Tools that should not be used beside it. */
  conflicts: ConflictRelation[];
  /** Tools that serve some scenarios better. */
  alternatives: AlternativeRelation[];
  /** Tools that work well with it. */
  complements: ComplementRelation[];
}

/** A tool that may come next. */
export interface ToolSuggestion {
  /** The tool's name, as its document gives it. */
  tool: string;
  /** Why. */
  reason: string;
  /** How long it will take, in ms. */
  estimated_duration_ms: number;
  /** How likely it is to be called next by what sessions did, 0 to 1; absent where they say nothing of it. */
  confidence?: number | null;
}

/** A tool in short. */
export interface ToolSummary {
  /** The tool's name. */
  name: string;
  /** Its name for people. */
  title: string;
  /** What it does. */
  description: string;
  /** Its category; may be empty. */
  category: string;
  /** Its semantic tags. */
  capabilities: string[];
  /** Further search terms. */
  keywords: string[];
  /** How well it fits `q`, above 0; comparable within one answer only. */
  score?: number | null;
  /** Its errors that `error` goes with, each with its cause and what to do; absent if `error` was not asked for. */
  common_errors?: CommonError[];
}

/** A turn of a session: what was made of a message, and what was suggested until the next. */
export interface TurnItem {
  /** Which turn of its session it is, from 1 on. */
  number: number;
  /** When its message was qualified first: RFC 3339, in UTC. */
  at: string;
  /** What the user was after, as a phrase; absent if nothing said so, and without the scope `memory`. */
  intent?: string | null;
  /** Categories of its context. */
  categories: string[];
  /** How sure they are, 0 to 1. */
  confidence: number;
  /** Tools that were suggested, 32 at most. */
  suggested: string[];
  /** Those of them that were called after that. */
  taken: string[];
}

/** Answer of `GET /v1/sessions/{name}/turns`. */
export interface TurnList {
  /** The last 20 turns at most, the latest first. */
  items: TurnItem[];
}

/** A call without a result. */
export interface UnfinishedCall {
  /** Its id in the stream. */
  tool_call_id: string;
  /** The tool's name, as its document gives it. */
  tool_name: string;
}

/** A name that the catalog does not have. */
export interface UnknownTool {
  /** The name. */
  tool: string;
  /** Names that may have been meant. */
  near: string[];
}

/** The event that tells a client what a turn used. */
export interface UsageEvent {
  /** token_usage or path_info. */
  type: UsageKind;
  /** The account in words. */
  message: string;
  /** The path's name. */
  path: string;
  /** All input. */
  tokensIn: number;
  /** Output. */
  tokensOut: number;
  /** Input read from a cache. */
  cachedTokens: number;
  /** Input written to a cache; left out at 0. */
  cacheWriteTokens?: number;
  /** tokensIn + tokensOut − cachedTokens. */
  totalTokens: number;
  /** Tokens from which on a conversation should be summarised. */
  threshold: number;
  /** `totalTokens` ≥ `threshold`. */
  thresholdReached: boolean;
  /** User messages to keep when it is summarised. */
  messageRetentionCount?: number | null;
  /** US dollars; left out where no price is known. */
  costUsd?: number | null;
  /** Number of tools executed. */
  toolsExecuted?: number | null;
  /** Most steps that are allowed. */
  maxSteps?: number | null;
  /** Were no more tools allowed? */
  maxToolsReached?: boolean | null;
  /** Did the turn run out of time? */
  timedOut?: boolean | null;
  /** The moment, by RFC 3339, in UTC. */
  timestamp: string;
  /** Why the turn went as it did. */
  reasoning?: string | null;
}

/**
 * What an event of usage is about.
 *
 * - `token_usage`: What a turn used.
 * - `path_info`: How a path went.
 */
export type UsageKind = 'token_usage' | 'path_info';

/** What a session used. */
export interface UsageOfSession {
  /** The session. */
  sessionId: string;
  /** What it used. */
  used: SessionUsage;
}

/** Answer of `GET /v1/usage`. */
export interface UsageReport {
  /** When the daemon started, RFC 3339; what days used before is not kept. */
  since: string;
  /** Tokens of a turn from which on it reaches its threshold, unless its report says otherwise. */
  threshold: number;
  /** Days on which something was used, oldest first, at most 31. */
  days: DayOfUsage[];
  /** Sessions that used something, those that were heard of last first, at most 1000. These outlast a restart. */
  sessions: UsageOfSession[];
}

/** Body of `POST /v1/usage`: what a turn used. */
export interface UsageRequest {
  /** token_usage (the default) or path_info. */
  type?: UsageKind | null;
  /** The conversation: what a token_usage tells is added to what it used, and its tools of this turn are counted. */
  sessionId?: string | null;
  /** The path's name, such as PATH_1, which is the default. */
  path?: string | null;
  /** All input, cached or not. */
  tokensIn?: number;
  /** Output. */
  tokensOut?: number;
  /** Input read from a cache, a part of `tokensIn`. */
  cachedTokens?: number;
  /** Input written to a cache, a part of `tokensIn`. */
  cacheWriteTokens?: number;
  /** Only to be checked: tokensIn + tokensOut − cachedTokens. */
  totalTokens?: number | null;
  /** Tokens from which on a conversation should be summarised; 30000 by default. */
  threshold?: number | null;
  /** Only to be checked: `totalTokens` ≥ `threshold`. */
  thresholdReached?: boolean | null;
  /** User messages to keep when it is summarised. */
  messageRetentionCount?: number | null;
  /** What it cost, in US dollars; only to be checked where prices are known. */
  costUsd?: number | null;
  /** Tools executed; with a session those called since its last message by default. */
  toolsExecuted?: number | null;
  /** Most steps that are allowed. */
  maxSteps?: number | null;
  /** Were no more tools allowed? */
  maxToolsReached?: boolean | null;
  /** Did the turn run out of time? */
  timedOut?: boolean | null;
  /** When, RFC 3339; now by default. */
  timestamp?: string | null;
  /** Why the turn went as it did. */
  reasoning?: string | null;
  /** Only to be checked: it is made from the other fields. */
  message?: string | null;
  /** Calls of the model among which the tokens are shared; 1 by default. Decides on the tier of prices. */
  calls?: number | null;
  /** A model whose prices the configuration has; not together with `prices`. */
  model?: string | null;
  /** The prices. */
  prices?: PricesBody | null;
}

/** A scenario the tool is for. */
export interface UseCase {
  /** Name of the scenario. */
  title: string;
  /** The situation in which to use the tool. */
  when_to_use: string;
  /** A message a user might write. */
  example?: string;
  /** When not to use it. */
  not_for?: string;
}

/** An earlier version of a memory. */
export interface VersionAnswer {
  /** 1 or more. */
  version: number;
  /** The text of that version. */
  content: string;
  /** The metadata of that version. */
  metadata: Record<string, unknown>;
  /** When it became so, RFC 3339. */
  updatedAt: string;
}

/** What each operation takes and answers. */
export interface Operations {
  /** Keep a memory. With an `Idempotency-Key`, telling it again changes nothing. */
  addCognitiveProcess: {
    request: {
      query?: {
        /** Whose memories; for the admin socket only. */
        tenant?: string | null | undefined;
      };
      body: NewMemoryWithCognitiveProcessMetadata;
    };
    answer: MemoryAnswer;
  };
  /** Keep a memory. With an `Idempotency-Key`, telling it again changes nothing. */
  addDocument: {
    request: {
      query?: {
        /** Whose memories; for the admin socket only. */
        tenant?: string | null | undefined;
      };
      body: NewMemoryWithDocumentMetadata;
    };
    answer: MemoryAnswer;
  };
  /** Keep a memory. With an `Idempotency-Key`, telling it again changes nothing. */
  addMessage: {
    request: {
      query?: {
        /** Whose memories; for the admin socket only. */
        tenant?: string | null | undefined;
      };
      body: NewMemoryWithMessageMetadata;
    };
    answer: MemoryAnswer;
  };
  /** Keep a memory. With an `Idempotency-Key`, telling it again changes nothing. */
  addTask: {
    request: {
      query?: {
        /** Whose memories; for the admin socket only. */
        tenant?: string | null | undefined;
      };
      body: NewMemoryWithTaskMetadata;
    };
    answer: MemoryAnswer;
  };
  /** Approve the definitions of an MCP server that wait for it. */
  approveMcpServer: {
    request: {
      path: {
        /** The server's name. */
        name: string;
      };
      query?: {
        /** One tool. Default: all that wait. */
        tool?: string | null | undefined;
      };
    };
    answer: McpServerApproved;
  };
  /** Approve the changed definitions of an MCP server. */
  approveServerChanges: {
    request: {
      path: {
        /** The server's name. */
        name: string;
      };
      query?: {
        /** One tool. Default: all that wait. */
        tool?: string | null | undefined;
      };
    };
    answer: McpServerApproved;
  };
  /** Whether a sequence of calls is a good one, and how long it will take. */
  checkPlan: {
    request: {
      body: PlanRequest;
    };
    answer: PlanAnswer;
  };
  /** Whether a set of tools is a good one to load together. */
  checkTools: {
    request: {
      body: CheckRequest;
    };
    answer: CheckAnswer;
  };
  /** Delete a memory softly: nothing finds it any more that does not ask for deleted ones. */
  deleteMemory: {
    request: {
      path: {
        /** The memory's id, percent-encoded. */
        id: string;
      };
      query?: {
        /** Whose memories; for the admin socket only. */
        tenant?: string | null | undefined;
      };
    };
    answer: MemoryAnswer;
  };
  /** Which definitions of an MCP server wait for an approval. */
  diffMcpServer: {
    request: {
      path: {
        /** The server's name. */
        name: string;
      };
    };
    answer: McpServerDiff;
  };
  /** A tool's response with the metadata object added. */
  enrich: {
    request: {
      body: EnrichRequest;
    };
    answer: Record<string, unknown>;
  };
  /** How long a call, or a plan, will take, and whether it will time out. */
  estimate: {
    request: {
      body: EstimateRequest;
    };
    answer: EstimateAnswer;
  };
  /** All memories with their history, by id. */
  exportMemories: {
    request: {
      query?: {
        /** At most so many, 1 to 1000; 200 by default. */
        limit?: number | null | undefined;
        /** `nextCursor` of the page before. */
        cursor?: string | null | undefined;
        /** Whose memories; `default` by default. */
        tenant?: string | null | undefined;
      };
    };
    answer: ExportAnswer;
  };
  /** How the catalog came out, with a page of what is wrong. */
  getCatalog: {
    request: {
      query?: {
        /** At most so many diagnostics, 1 to 1000; 100 by default. */
        limit?: number | null | undefined;
        /** `next_cursor` of the page before. After a reload between the two, findings of unchanged files are still listed once each. */
        cursor?: string | null | undefined;
      };
    };
    answer: CatalogReport;
  };
  /** Which daemons share the database, and how each is. */
  getFleet: {
    request: Record<never, never>;
    answer: FleetAnswer;
  };
  /** Whether the process answers. */
  getLive: {
    request: Record<never, never>;
    answer: Live;
  };
  /** One memory. */
  getMemory: {
    request: {
      path: {
        /** The memory's id, percent-encoded. */
        id: string;
      };
      query?: {
        /** Also if it was deleted softly. */
        includeDeleted?: boolean | null | undefined;
        /** Whose memories; for the admin socket only. */
        tenant?: string | null | undefined;
      };
    };
    answer: MemoryAnswer;
  };
  /** Earlier versions of a memory. */
  getMemoryHistory: {
    request: {
      path: {
        /** The memory's id, percent-encoded. */
        id: string;
      };
      query?: {
        /** At most so many, 1 to 200; 100 by default. */
        limit?: number | null | undefined;
        /** `nextCursor` of the page before. */
        cursor?: string | null | undefined;
        /** Also if it was deleted softly. */
        includeDeleted?: boolean | null | undefined;
        /** Whose memories; for the admin socket only. */
        tenant?: string | null | undefined;
      };
    };
    answer: HistoryAnswer;
  };
  /** What a memory led to and came from, by what either side says. */
  getMemoryRelations: {
    request: {
      path: {
        /** The memory's id, percent-encoded. */
        id: string;
      };
      query?: {
        /** So many references far, 1 to 10; 1 by default. */
        depth?: number | null | undefined;
        /** Whose memories; for the admin socket only. */
        tenant?: string | null | undefined;
      };
    };
    answer: RelationsAnswer;
  };
  /** The metadata object for a call. */
  getMetadata: {
    request: {
      body: MetadataRequest;
    };
    answer: CallMetadata;
  };
  /** Metrics for Prometheus, in the format that is asked for. */
  getMetrics: {
    request: Record<never, never>;
    answer: string;
  };
  /** This document. */
  getOpenapi: {
    request: Record<never, never>;
    answer: Record<string, unknown>;
  };
  /** How all is: the daemon, its store, its forecasts and the calls of the last hour. */
  getOverview: {
    request: Record<never, never>;
    answer: OverviewAnswer;
  };
  /** What this workflow is. */
  getPreset: {
    request: {
      path: {
        /** The preset's id. */
        name: string;
      };
    };
    answer: PresetMetadata;
  };
  /** Whether questions are answered. */
  getReady: {
    request: Record<never, never>;
    answer: Ready;
  };
  /** How all tools hang together: what documents declare, and what sessions called next. */
  getRelations: {
    request: Record<never, never>;
    answer: RelationGraph;
  };
  /** What a session did lately. */
  getSession: {
    request: {
      path: {
        /** The session, percent-encoded. */
        name: string;
      };
    };
    answer: SessionAnswer;
  };
  /** How the daemon is. */
  getStatus: {
    request: Record<never, never>;
    answer: StatusAnswer;
  };
  /** A thread's messages in order, and the positions that are missing. */
  getThread: {
    request: {
      path: {
        /** The thread's id, percent-encoded. */
        id: string;
      };
      query?: {
        /** The chat it is in, as namespace:type:id; needed if several have one of that name. */
        chatId?: string | null | undefined;
        /** At most so many, 1 to 200; 100 by default. */
        limit?: number | null | undefined;
        /** `nextCursor` of the page before. */
        cursor?: string | null | undefined;
        /** Whose memories; for the admin socket only. */
        tenant?: string | null | undefined;
      };
    };
    answer: ThreadAnswer;
  };
  /** What was learnt of a tool, by mode. */
  getTiming: {
    request: {
      path: {
        /** The tool's name, percent-encoded. */
        name: string;
      };
      query?: {
        /** One mode only. */
        mode?: string | null | undefined;
      };
    };
    answer: TimingPage;
  };
  /** What this tool is. */
  getTool: {
    request: {
      path: {
        /** The tool's name, percent-encoded. */
        name: string;
      };
    };
    answer: ToolMetadata;
  };
  /** What goes with this tool, and what does not. */
  getToolRelations: {
    request: {
      path: {
        /** The tool's name, percent-encoded. */
        name: string;
      };
    };
    answer: ToolRelations;
  };
  /** What the tenant's turns used and cost, by day and by session. */
  getUsage: {
    request: Record<never, never>;
    answer: UsageReport;
  };
  /** Take memories that were kept elsewhere, all or none. */
  importMemories: {
    request: {
      query?: {
        /** Whose memories; `default` by default. */
        tenant?: string | null | undefined;
      };
      body: ImportRequest;
    };
    answer: ImportAnswer;
  };
  /** The tenant's recorded calls, those that were recorded last first. */
  listExecutions: {
    request: {
      query?: {
        /** Calls of this tool only. */
        tool?: string | null | undefined;
        /** Calls of this session only. */
        session?: string | null | undefined;
        /** Calls that ended so only. */
        outcome?: 'success' | 'error' | 'timeout' | 'cancelled' | null | undefined;
        /** Calls that ended then or later: RFC 3339, or milliseconds since the epoch. */
        since?: string | null | undefined;
        /** Calls that ended before then, written likewise. */
        until?: string | null | undefined;
        /** At most so many, 1 to 1000; 100 by default. */
        limit?: number | null | undefined;
        /** `next_cursor` of the page before. */
        cursor?: string | null | undefined;
      };
    };
    answer: ExecutionList;
  };
  /** Which MCP servers there are, and how each is. */
  listMcpServers: {
    request: Record<never, never>;
    answer: McpServerList;
  };
  /** Which rule libraries there are, and how each is. */
  listPlugins: {
    request: Record<never, never>;
    answer: PluginList;
  };
  /** Which workflows there are. */
  listPresets: {
    request: {
      query?: {
        /** At most so many, 1 to 1000; 100 by default. */
        limit?: number | null | undefined;
        /** `next_cursor` of the page before. */
        cursor?: string | null | undefined;
      };
    };
    answer: PresetPage;
  };
  /** Which definitions of an MCP server changed and wait for an approval. */
  listServerChanges: {
    request: {
      path: {
        /** The server's name. */
        name: string;
      };
    };
    answer: McpServerDiff;
  };
  /** Which MCP servers there are, how each is, and the tenant's calls that are under way. */
  listServers: {
    request: Record<never, never>;
    answer: ServersAnswer;
  };
  /** What a session's last turns were about, what was suggested, and what was taken. */
  listSessionTurns: {
    request: {
      path: {
        /** The session, percent-encoded. */
        name: string;
      };
    };
    answer: TurnList;
  };
  /** The tenant's sessions of late, those that called last first. */
  listSessions: {
    request: {
      query?: {
        /** At most so many, 1 to 1000; 100 by default. */
        limit?: number | null | undefined;
        /** `nextCursor` of the page before. */
        cursor?: string | null | undefined;
      };
    };
    answer: SessionList;
  };
  /** The tenant's latest calls of a tool and mode over what was forecast of them. */
  listTimedCalls: {
    request: {
      path: {
        /** The tool's name, percent-encoded. */
        name: string;
      };
      query?: {
        /** The mode as `getTiming` names it, `#error` at its end for calls that failed; none if absent. */
        mode?: string | null | undefined;
      };
    };
    answer: CallPoints;
  };
  /** What was learnt of all tools. */
  listTiming: {
    request: {
      query?: {
        /** At most so many, 1 to 1000; 100 by default. */
        limit?: number | null | undefined;
        /** `next_cursor` of the page before. */
        cursor?: string | null | undefined;
      };
    };
    answer: TimingPage;
  };
  /** When this tool was chosen for the tenant, and for which messages. */
  listToolChoices: {
    request: {
      path: {
        /** The tool's name, percent-encoded. */
        name: string;
      };
      query?: {
        /** At most so many, 1 to 1000; 100 by default. */
        limit?: number | null | undefined;
      };
    };
    answer: ChoiceList;
  };
  /** Which tools exist, and which match. */
  listTools: {
    request: {
      query?: {
        /** Tools of this category. */
        category?: string | null | undefined;
        /** Tools with this capability. */
        capability?: string | null | undefined;
        /** Tools with this keyword. */
        keyword?: string | null | undefined;
        /** Tools with this provider. */
        provider?: string | null | undefined;
        /** Tools with a prerequisite in this environment variable. */
        env_var?: string | null | undefined;
        /** Tools with a common error that this message, or a part of one, goes with. */
        error?: string | null | undefined;
        /** Rank by this message as `POST /v1/qualify` does, and list only what may be meant. */
        q?: string | null | undefined;
        /** At most so many, 1 to 1000; 100 by default. */
        limit?: number | null | undefined;
        /** `next_cursor` of the page before. */
        cursor?: string | null | undefined;
      };
    };
    answer: ToolPage;
  };
  /** What happens, from now on: an event stream that does not end by itself. */
  listenToEvents: {
    request: {
      query?: {
        /** Events of these types only, separated by commas. Default: all. */
        types?: string | null | undefined;
        /** First so many of those that are kept, 0 to 2000. Default: 0. */
        last?: number | null | undefined;
      };
    };
    answer: string;
  };
  /** Which workflows a session has begun, or a goal calls for, and what is left of them. */
  matchPresets: {
    request: {
      body: MatchRequest;
    };
    answer: MatchAnswer;
  };
  /** Remove memories for good, with their history and all that was made from them. */
  purgeMemories: {
    request: {
      query?: {
        /** Whose memories; `default` by default. */
        tenant?: string | null | undefined;
      };
      body: PurgeRequest;
    };
    answer: PurgeAnswer;
  };
  /** Which tools fit this message, and why. */
  qualify: {
    request: {
      query?: {
        /** data-v1 or ui-v1: answer as the events of that chat stream; also by `Accept: text/event-stream`. */
        stream?: 'data-v1' | 'ui-v1' | null | undefined;
      };
      body: QualifyRequest;
    };
    answer: QualifyAnswer;
  };
  /** Listen to an agent's chat stream as it arrives: its tool calls are recorded. */
  readStream: {
    request: {
      query?: {
        /** data-v1 or ui-v1; may be left out with the protocol's header. */
        protocol?: 'data-v1' | 'ui-v1' | null | undefined;
        /** The session to which the calls belong. */
        session_id?: string | null | undefined;
      };
      body: string;
    };
    answer: StreamAnswer;
  };
  /** Record calls that ended. With an `Idempotency-Key`, telling the same again changes nothing. */
  recordExecutions: {
    request: {
      body: RecordRequest;
    };
    answer: RecordAnswer;
  };
  /** Read configuration, tokens, documents and rule libraries again. */
  reload: {
    request: {
      query?: {
        /** false: do not wait for the outcome. Default: true. */
        wait?: boolean | null | undefined;
      };
    };
    answer: ReloadAnswer | ReloadStarted;
  };
  /** A tool was needed and not offered: its category is added, and the choice is learnt. */
  reportMiss: {
    request: {
      query?: {
        /** data-v1 or ui-v1: answer as the events of that chat stream; also by `Accept: text/event-stream`. */
        stream?: 'data-v1' | 'ui-v1' | null | undefined;
      };
      body: MissRequest;
    };
    answer: MissAnswer;
  };
  /** What a turn used and cost, as the event that a client shows. With the scope `record` it counts. */
  reportUsage: {
    request: {
      query?: {
        /** data-v1 or ui-v1: answer as the events of that chat stream; also by `Accept: text/event-stream`. */
        stream?: 'data-v1' | 'ui-v1' | null | undefined;
      };
      body: UsageRequest;
    };
    answer: UsageEvent;
  };
  /** Forgive a rule library its faults, and try it again at once. */
  resetPlugin: {
    request: {
      path: {
        /** The library's id. */
        name: string;
      };
    };
    answer: PluginReset;
  };
  /** End an MCP server and start it again. */
  restartMcpServer: {
    request: {
      path: {
        /** The server's name. */
        name: string;
      };
    };
    answer: McpServerRestarted;
  };
  /** Take a soft delete back. */
  restoreMemory: {
    request: {
      path: {
        /** The memory's id, percent-encoded. */
        id: string;
      };
      query?: {
        /** Whose memories; for the admin socket only. */
        tenant?: string | null | undefined;
      };
    };
    answer: MemoryAnswer;
  };
  /** Find memories. */
  searchCognitiveProcesses: {
    request: {
      query?: {
        /** Whose memories; for the admin socket only. */
        tenant?: string | null | undefined;
      };
      body: SearchRequest;
    };
    answer: SearchAnswer;
  };
  /** Find memories. */
  searchDocuments: {
    request: {
      query?: {
        /** Whose memories; for the admin socket only. */
        tenant?: string | null | undefined;
      };
      body: SearchRequest;
    };
    answer: SearchAnswer;
  };
  /** Find memories. */
  searchMemories: {
    request: {
      query?: {
        /** Whose memories; for the admin socket only. */
        tenant?: string | null | undefined;
      };
      body: SearchRequest;
    };
    answer: SearchAnswer;
  };
  /** Find memories. */
  searchMessages: {
    request: {
      query?: {
        /** Whose memories; for the admin socket only. */
        tenant?: string | null | undefined;
      };
      body: SearchRequest;
    };
    answer: SearchAnswer;
  };
  /** Find memories. */
  searchTasks: {
    request: {
      query?: {
        /** Whose memories; for the admin socket only. */
        tenant?: string | null | undefined;
      };
      body: SearchRequest;
    };
    answer: SearchAnswer;
  };
  /** Set the log's level until the next restart. */
  setLogLevel: {
    request: {
      body: LogLevelRequest;
    };
    answer: LogLevelAnswer;
  };
  /** What an MCP server wrote of late, and what became of it. */
  showMcpServerLogs: {
    request: {
      path: {
        /** The server's name. */
        name: string;
      };
    };
    answer: McpServerLogs;
  };
  /** Change a memory by a JSON Merge Patch; with `If-Match` only if nobody else did. */
  updateMemory: {
    request: {
      path: {
        /** The memory's id, percent-encoded. */
        id: string;
      };
      query?: {
        /** Whose memories; for the admin socket only. */
        tenant?: string | null | undefined;
      };
      body: PatchRequest;
    };
    answer: MemoryAnswer;
  };
}

/** Where each operation is. */
export const OPERATIONS = {
  addCognitiveProcess: { method: 'POST', path: '/v1/memories/cognitive-processes', sends: 'application/json' },
  addDocument: { method: 'POST', path: '/v1/memories/documents', sends: 'application/json' },
  addMessage: { method: 'POST', path: '/v1/memories/messages', sends: 'application/json' },
  addTask: { method: 'POST', path: '/v1/memories/tasks', sends: 'application/json' },
  approveMcpServer: { method: 'POST', path: '/-/mcp/{name}/approve' },
  approveServerChanges: { method: 'POST', path: '/v1/servers/{name}/approve' },
  checkPlan: { method: 'POST', path: '/v1/plans/check', sends: 'application/json' },
  checkTools: { method: 'POST', path: '/v1/tools/check', sends: 'application/json' },
  deleteMemory: { method: 'DELETE', path: '/v1/memories/{id}' },
  diffMcpServer: { method: 'GET', path: '/-/mcp/{name}/diff' },
  enrich: { method: 'POST', path: '/v1/enrich', sends: 'application/json' },
  estimate: { method: 'POST', path: '/v1/estimate', sends: 'application/json' },
  exportMemories: { method: 'GET', path: '/-/memories/export' },
  getCatalog: { method: 'GET', path: '/v1/catalog' },
  getFleet: { method: 'GET', path: '/v1/fleet' },
  getLive: { method: 'GET', path: '/live' },
  getMemory: { method: 'GET', path: '/v1/memories/{id}' },
  getMemoryHistory: { method: 'GET', path: '/v1/memories/{id}/history' },
  getMemoryRelations: { method: 'GET', path: '/v1/memories/{id}/relations' },
  getMetadata: { method: 'POST', path: '/v1/metadata', sends: 'application/json' },
  getMetrics: { method: 'GET', path: '/metrics', isText: true },
  getOpenapi: { method: 'GET', path: '/openapi.json' },
  getOverview: { method: 'GET', path: '/v1/overview' },
  getPreset: { method: 'GET', path: '/v1/presets/{name}' },
  getReady: { method: 'GET', path: '/ready', answers: [503] },
  getRelations: { method: 'GET', path: '/v1/relations' },
  getSession: { method: 'GET', path: '/v1/sessions/{name}' },
  getStatus: { method: 'GET', path: '/-/status' },
  getThread: { method: 'GET', path: '/v1/threads/{id}' },
  getTiming: { method: 'GET', path: '/v1/timing/{name}' },
  getTool: { method: 'GET', path: '/v1/tools/{name}' },
  getToolRelations: { method: 'GET', path: '/v1/tools/{name}/relations' },
  getUsage: { method: 'GET', path: '/v1/usage' },
  importMemories: { method: 'POST', path: '/-/memories/import', sends: 'application/json' },
  listExecutions: { method: 'GET', path: '/v1/executions' },
  listMcpServers: { method: 'GET', path: '/-/mcp' },
  listPlugins: { method: 'GET', path: '/v1/plugins' },
  listPresets: { method: 'GET', path: '/v1/presets' },
  listServerChanges: { method: 'GET', path: '/v1/servers/{name}/changes' },
  listServers: { method: 'GET', path: '/v1/servers' },
  listSessionTurns: { method: 'GET', path: '/v1/sessions/{name}/turns' },
  listSessions: { method: 'GET', path: '/v1/sessions' },
  listTimedCalls: { method: 'GET', path: '/v1/timing/{name}/calls' },
  listTiming: { method: 'GET', path: '/v1/timing' },
  listToolChoices: { method: 'GET', path: '/v1/tools/{name}/choices' },
  listTools: { method: 'GET', path: '/v1/tools' },
  listenToEvents: { method: 'GET', path: '/v1/events', isEvents: true },
  matchPresets: { method: 'POST', path: '/v1/presets/match', sends: 'application/json' },
  purgeMemories: { method: 'POST', path: '/-/memories/purge', sends: 'application/json' },
  qualify: { method: 'POST', path: '/v1/qualify', sends: 'application/json' },
  readStream: { method: 'POST', path: '/v1/streams', sends: 'text/plain' },
  recordExecutions: { method: 'POST', path: '/v1/executions', sends: 'application/json' },
  reload: { method: 'POST', path: '/-/reload' },
  reportMiss: { method: 'POST', path: '/v1/qualify/miss', sends: 'application/json' },
  reportUsage: { method: 'POST', path: '/v1/usage', sends: 'application/json' },
  resetPlugin: { method: 'POST', path: '/-/plugins/{name}/reset' },
  restartMcpServer: { method: 'POST', path: '/-/mcp/{name}/restart' },
  restoreMemory: { method: 'POST', path: '/v1/memories/{id}/restore' },
  searchCognitiveProcesses: { method: 'POST', path: '/v1/memories/cognitive-processes/search', sends: 'application/json' },
  searchDocuments: { method: 'POST', path: '/v1/memories/documents/search', sends: 'application/json' },
  searchMemories: { method: 'POST', path: '/v1/memories/search', sends: 'application/json' },
  searchMessages: { method: 'POST', path: '/v1/memories/messages/search', sends: 'application/json' },
  searchTasks: { method: 'POST', path: '/v1/memories/tasks/search', sends: 'application/json' },
  setLogLevel: { method: 'PUT', path: '/-/log-level', sends: 'application/json' },
  showMcpServerLogs: { method: 'GET', path: '/-/mcp/{name}/logs' },
  updateMemory: { method: 'PATCH', path: '/v1/memories/{id}', sends: 'application/json' },
} as const;
