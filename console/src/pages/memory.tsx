/** What is remembered? */

import { useLayoutEffect, useState } from 'preact/hooks';

import {
  api,
  type MemoryAnswer,
  type SearchAnswer,
  type StructuredId,
  structuredIdToString,
  type VersionAnswer,
} from '../api.js';
import { type Pages, useAsk, useDo, usePages } from '../ask.js';
import { differences } from '../differences.js';
import { count, many } from '../format.js';
import { go, link, type Place } from '../router.js';
import {
  Badge,
  Card,
  Chips,
  Choice,
  type Column,
  Confirm,
  Empty,
  Fault,
  Json,
  Page,
  Shown,
  Table,
  Text,
  Time,
} from '../ui.js';

const KINDS = [
  ['', 'all kinds'],
  ['messages', 'messages'],
  ['cognitive-processes', 'thoughts'],
  ['documents', 'documents'],
  ['tasks', 'tasks'],
] as const;

/** Memories on a page. */
const PAGE = 25;

const EXAMPLE = `curl ${location.origin}/v1/memories/documents -H 'content-type: application/json' \\
  -d '{"content": "Tea at four", "metadata": {"source": "user", "agentId": "agent:agent:a"}}'`;

export function Memory({ place }: { place: Place }) {
  const [part, subject] = [place.query.get('show') ?? '', place.subject];
  if (subject === undefined) return <Search place={place} />;
  return part === 'thread' ? (
    <Thread key={subject} id={subject} chat={place.query.get('chat') ?? undefined} />
  ) : (
    <One key={subject} id={subject} />
  );
}

function ask(
  kind: string,
  body: Parameters<ReturnType<typeof api>['searchMemories']>[0]['body'],
  signal: AbortSignal,
): Promise<SearchAnswer> {
  switch (kind) {
    case 'messages':
      return api().searchMessages({ body, signal });
    case 'cognitive-processes':
      return api().searchCognitiveProcesses({ body, signal });
    case 'documents':
      return api().searchDocuments({ body, signal });
    case 'tasks':
      return api().searchTasks({ body, signal });
    default:
      return api().searchMemories({ body, signal });
  }
}

const FIELDS = ['q', 'kind', 'field', 'value', 'deleted'] as const;

function Search({ place }: { place: Place }) {
  const filled = Object.fromEntries(FIELDS.map((name) => [name, place.query.get(name) ?? ''])) as Record<
    (typeof FIELDS)[number],
    string
  >;
  const [form, setForm] = useState(filled);
  const offset = Number(place.query.get('offset')) || 0;
  // Before anybody can type: what was typed meanwhile would be lost.
  useLayoutEffect(() => setForm(filled), [JSON.stringify(filled)]);
  const body = {
    ...(filled.field !== '' && { criteria: { [filled.field]: valueOf(filled.field, filled.value) } }),
    options: {
      limit: PAGE,
      offset,
      explain: true,
      includeDeleted: filled.deleted !== '',
      ...(filled.q.trim() !== '' && { query: filled.q }),
    },
  };
  const found = useAsk(`memories ${filled.kind} ${JSON.stringify(body)}`, (signal) => ask(filled.kind, body, signal));
  const set = (name: string) => (value: string) => setForm((form) => ({ ...form, [name]: value }));
  return (
    <Page title="Memory" lead="What was said, thought, read and planned: by what it says and by its fields.">
      <form
        class="card"
        role="search"
        onSubmit={(event) => {
          event.preventDefault();
          go(link('memory', undefined, form));
        }}
      >
        <div class="form">
          <Text label="Text" type="search" value={form.q} onChange={set('q')} placeholder="tea" class="grow" />
          <Choice label="Kind" value={form.kind} options={KINDS} onChange={set('kind')} />
          <Text label="Field" value={form.field} onChange={set('field')} placeholder="importance" />
          <Text label="Its value" value={form.value} onChange={set('value')} placeholder="high" />
          <label class="check">
            <input
              type="checkbox"
              checked={form.deleted !== ''}
              onChange={(event) => set('deleted')(event.currentTarget.checked ? '1' : '')}
            />{' '}
            deleted ones
          </label>
          <button class="button primary">Search</button>
        </div>
      </form>
      <Shown asked={found}>
        {({ memories, total }) => (
          <Card title={many(total, 'memory', 'memories')} {...(filled.q !== '' && { note: 'the best first' })}>
            {memories.length === 0 ? (
              filled.q === '' && filled.field === '' && filled.kind === '' ? (
                <Empty command={EXAMPLE}>Nothing is remembered yet. Agents keep memories so:</Empty>
              ) : (
                <p>Nothing is like that.</p>
              )
            ) : (
              <Found memories={memories} isRanked={filled.q !== ''} />
            )}
            {total > PAGE && (
              <p class="more">
                {count(offset + 1)} to {count(offset + memories.length)} of {count(total)}.{' '}
                {offset > 0 && (
                  <a href={link('memory', undefined, { ...filled, offset: Math.max(0, offset - PAGE) })}>Earlier</a>
                )}{' '}
                {offset + PAGE < total && (
                  <a href={link('memory', undefined, { ...filled, offset: offset + PAGE })}>More</a>
                )}
              </p>
            )}
          </Card>
        )}
      </Shown>
    </Page>
  );
}

/** Fields that are text, whatever it looks like. */
const TEXTS: ReadonlySet<string> = new Set([
  'authors',
  'category',
  'contentType',
  'contextId',
  'description',
  'fileName',
  'influencedBy',
  'influences',
  'messageType',
  'parentTaskId',
  'relatedTo',
  'schemaVersion',
  'source',
  'thread.id',
  'thread.parentId',
  'threadId',
  'title',
  'url',
]);

/** Of other fields, numbers, truth values and lists are such; anything else is text. */
function valueOf(field: string, text: string): unknown {
  const name = field.replace(/^metadata\./, '');
  if (TEXTS.has(name)) return text;
  try {
    const value: unknown = JSON.parse(text);
    return name === 'tags' && !Array.isArray(value) ? text : value;
  } catch {
    return text;
  }
}

function explained({ explanation }: MemoryAnswer): string {
  if (explanation == null) return '';
  const parts = [
    ['words', explanation.words],
    ['meaning', explanation.meaning],
    ['near words', explanation.nearWords],
    ['near meaning', explanation.nearMeaning],
  ] as const;
  return parts
    .filter(([, value]) => value !== 0)
    .map(([name, value]) => `${name} ${value.toFixed(3)}`)
    .concat(explanation.ofNamedDate ? ['of the named date'] : [])
    .concat(explanation.namesTime ? ['names a time'] : [])
    .join(' · ');
}

function Found({ memories, isRanked }: { memories: readonly MemoryAnswer[]; isRanked: boolean }) {
  const columns: Column<MemoryAnswer>[] = [
    {
      head: 'Memory',
      cell: (memory) => (
        <>
          <a class="clamp" href={link('memory', memory.id)}>
            {memory.content.trim() === '' ? '(no text)' : memory.content}
          </a>
          {isRanked && <div class="sub">{explained(memory)}</div>}
        </>
      ),
      class: 'wide',
    },
    { head: 'Kind', cell: (memory) => memory.kind.replace('_', ' '), isExtra: true },
    {
      head: 'State',
      cell: (memory) =>
        memory.metadata['is_deleted'] === true ? (
          <Badge tone="bad">deleted</Badge>
        ) : (
          <Badge tone="quiet">version {memory.version}</Badge>
        ),
      isExtra: true,
    },
    { head: 'Changed', cell: (memory) => <Time at={memory.updatedAt} />, class: 'nowrap', isExtra: true },
    ...(isRanked
      ? [{ head: 'Score', cell: (memory: MemoryAnswer) => memory.score?.toFixed(3) ?? '–', isNumber: true }]
      : []),
  ];
  return <Table caption="Memories" columns={columns} rows={memories} keyOf={(memory) => memory.id} />;
}

function threadOf(memory: MemoryAnswer): { id: string; chat: string | undefined } | undefined {
  const thread = memory.metadata['thread'] as { id?: unknown } | undefined;
  const chat = memory.metadata['chatId'] as StructuredId | undefined;
  return typeof thread?.id === 'string' ? { id: thread.id, chat: chat && structuredIdToString(chat) } : undefined;
}

function One({ id }: { id: string }) {
  const memory = useAsk(`memory ${id}`, (signal) =>
    api().getMemory({ path: { id }, query: { includeDeleted: true }, signal }),
  );
  const history = usePages(`history ${id}`, (cursor, signal) =>
    api().getMemoryHistory({ path: { id }, query: { includeDeleted: true, limit: 100, cursor }, signal }),
  );
  const restored = useDo(async () => {
    await api().restoreMemory({ path: { id } });
    memory.again();
    history.again();
  });
  return (
    <Page
      title="A memory"
      lead={<code>{id}</code>}
      actions={
        <a class="button" href={link('memory')}>
          All memories
        </a>
      }
    >
      <Fault error={restored.error} />
      <Shown asked={memory}>
        {(found) => {
          const thread = threadOf(found);
          const isDeleted = found.metadata['is_deleted'] === true;
          return (
            <>
              <Card
                title={found.kind.replace('_', ' ')}
                note={
                  <>
                    version {found.version}, <Time at={found.updatedAt} />
                  </>
                }
              >
                {isDeleted && (
                  <div class="fault-line">
                    <Badge tone="bad">deleted</Badge>
                    <span>Nothing finds it that does not ask for deleted ones.</span>
                  </div>
                )}
                <p class="prose">{found.content}</p>
                <div class="actions">
                  {thread !== undefined && (
                    <a class="button" href={link('memory', thread.id, { show: 'thread', chat: thread.chat })}>
                      Its thread
                    </a>
                  )}
                  {isDeleted && (
                    <Confirm
                      label="Restore"
                      question="Take the deletion back?"
                      detail={
                        <p>
                          It is found again, as a new version. It needs the scope <code>memory</code>.
                        </p>
                      }
                      disabled={restored.isBusy}
                      onYes={() => void restored.run()}
                    />
                  )}
                </div>
                <details>
                  <summary>Its fields</summary>
                  <Json value={found.metadata} />
                </details>
              </Card>
              <Card title="How it changed">
                <Shown asked={history}>{({ items }) => <History now={found} earlier={items} />}</Shown>
                <More pages={history} ofThem="latest" />
              </Card>
              {!isDeleted && <Related id={id} />}
            </>
          );
        }}
      </Shown>
    </Page>
  );
}

function Related({ id }: { id: string }) {
  const relations = useAsk(`relations ${id}`, (signal) =>
    api().getMemoryRelations({ path: { id }, query: { depth: 2 }, signal }),
  );
  return (
    <Card title="What it led to, and came from" note="two steps far">
      <Shown asked={relations}>
        {({ items, dangling }) =>
          items.length === 0 && dangling.length === 0 ? (
            <p>It names no other memory, and no other names it.</p>
          ) : (
            <ul class="plain-list">
              {items.map((item) => (
                <li key={`${item.id} ${item.relation} ${item.direction}`}>
                  <Badge tone="info">{item.relation}</Badge> {item.direction}{' '}
                  <a href={link('memory', item.id)}>
                    <code>{item.id}</code>
                  </a>{' '}
                  <span class="sub-inline">
                    {item.kind}, step {item.depth}
                  </span>
                </li>
              ))}
              {dangling.map((item) => (
                <li key={`${item.from} ${item.target}`}>
                  <Badge tone="warn">gone</Badge> {item.relation} <code>{item.target}</code>
                </li>
              ))}
            </ul>
          )
        }
      </Shown>
    </Card>
  );
}

interface Version {
  version: number;
  content: string;
  metadata: Record<string, unknown>;
}

function History({ now, earlier }: { now: MemoryAnswer; earlier: readonly VersionAnswer[] }) {
  const versions: Version[] = [now, ...(earlier as readonly Version[])];
  if (versions.length === 1) return <p>It is as it was first kept.</p>;
  return (
    <ol class="plain-list history">
      {versions.slice(0, -1).map((version, index) => {
        const before = versions[index + 1];
        const lines = before === undefined ? [] : differences(shownVersion(before), shownVersion(version));
        return (
          <li key={version.version}>
            <h3>
              Version {before?.version} to {version.version}
            </h3>
            <pre class="differences" tabIndex={0}>
              {lines.map(({ kind, text }, line) => (
                <div key={line} class={kind}>
                  {kind === 'added' ? '+ ' : kind === 'removed' ? '− ' : '  '}
                  {text}
                </div>
              ))}
            </pre>
          </li>
        );
      })}
    </ol>
  );
}

function shownVersion({ content, metadata }: Version): string {
  return `${content}\n${JSON.stringify(metadata, null, 1)}`;
}

/** How much of a list is shown, and what shows more; nothing if that is all of it. */
function More({
  pages: { answer, isBusy, more },
  ofThem,
}: {
  pages: Pages<{ items: readonly unknown[]; total: number; nextCursor?: string | null }>;
  ofThem: 'first' | 'latest';
}) {
  if (answer?.nextCursor == null) return null;
  return (
    <p class="more">
      The {ofThem} {count(answer.items.length)} of {count(answer.total)}.{' '}
      <button type="button" class="link" disabled={isBusy} onClick={more}>
        More
      </button>
    </p>
  );
}

function Thread({ id, chat }: { id: string; chat: string | undefined }) {
  const thread = usePages(`thread ${id} ${chat}`, (cursor, signal) =>
    api().getThread({ path: { id }, query: { limit: 200, chatId: chat, cursor }, signal }),
  );
  return (
    <Page
      title="A thread"
      lead={<code>{id}</code>}
      actions={
        <a class="button" href={link('memory')}>
          All memories
        </a>
      }
    >
      <Shown asked={thread}>
        {({ items, gaps, total }) => (
          <Card title={many(total, 'message')} note={gaps.length === 0 ? 'without a gap' : many(gaps.length, 'gap')}>
            {gaps.length > 0 && (
              <Chips
                label="Gaps"
                items={gaps.map(({ from, to }) =>
                  from === to ? `position ${from} is missing` : `positions ${from} to ${to} are missing`,
                )}
              />
            )}
            <ol class="thread">
              {items.map((message) => {
                const position = (message.metadata['thread'] as { position?: number } | undefined)?.position ?? 0;
                const gap = gaps.find(({ to }) => to === position - 1);
                return (
                  <li key={message.id}>
                    {gap !== undefined && (
                      <p class="gap">{many(gap.to - gap.from + 1, 'message is', 'messages are')} missing here</p>
                    )}
                    <p class="sub">
                      {position} · {String(message.metadata['role'])} · <Time at={message.createdAt} /> ·{' '}
                      <a href={link('memory', message.id)}>open</a>
                    </p>
                    <p class="prose">{message.content}</p>
                  </li>
                );
              })}
            </ol>
            <More pages={thread} ofThem="first" />
          </Card>
        )}
      </Shown>
    </Page>
  );
}
