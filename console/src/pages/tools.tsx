/** What tools are there, and what is wrong with them? */

import { useEffect, useLayoutEffect, useState } from 'preact/hooks';

import { api, type Diagnostic, type ToolSummary } from '../api.js';
import { gather, useAsk } from '../ask.js';
import { count, many } from '../format.js';
import { useOnEvent } from '../live.js';
import { go, link, type Place } from '../router.js';
import { Badge, Card, Chips, Choice, type Column, Empty, Page, Shown, Table, Tabs, Text, ToolLink } from '../ui.js';

/** Tools that are listed at first. */
const PAGE = 100;
/** Tools that categories, capabilities and keywords are counted in. */
const COUNTED = 20_000;
/** From the last key to the question, in ms. */
const TYPING_MS = 200;

const FACETS = ['q', 'category', 'capability', 'keyword', 'provider', 'error'] as const;

export function Tools({ place }: { place: Place }) {
  const tab = place.query.get('tab') ?? 'list';
  return (
    <Page title="Tools" lead="What agents can find, as they find it, and what is wrong with the documents.">
      <Tabs
        current={tab}
        tabs={[
          ['list', 'Tools', link('tools')],
          ['diagnostics', 'Diagnostics', link('tools', undefined, { tab: 'diagnostics' })],
        ]}
      />
      {tab === 'diagnostics' ? <Diagnostics place={place} /> : <List place={place} />}
    </Page>
  );
}

function List({ place }: { place: Place }) {
  const filled = Object.fromEntries(FACETS.map((name) => [name, place.query.get(name) ?? '']));
  const [form, setForm] = useState(filled);
  const limit = Number(place.query.get('limit')) || PAGE;
  const key = JSON.stringify([filled, limit]);
  // Before anybody can type: what was typed meanwhile would be lost.
  useLayoutEffect(() => setForm(filled), [JSON.stringify(filled)]);
  useEffect(() => {
    const timer = setTimeout(() => {
      if (JSON.stringify(form) !== JSON.stringify(filled)) go(link('tools', undefined, form), true);
    }, TYPING_MS);
    return () => clearTimeout(timer);
  }, [JSON.stringify(form)]);
  const given = Object.fromEntries(Object.entries(filled).filter(([, value]) => value !== ''));
  const tools = useAsk(`tools ${key}`, (signal) =>
    gather(limit, (page) => api().listTools({ query: { ...given, ...page }, signal })),
  );
  const all = useAsk('facets', (signal) => gather(COUNTED, (page) => api().listTools({ query: page, signal })));
  useOnEvent(['catalog_reloaded'], 500, () => (tools.again(), all.again()));
  const set = (name: string) => (value: string) => setForm((form) => ({ ...form, [name]: value }));
  const counts = (of: (tool: ToolSummary) => readonly string[]) => {
    const found = new Map<string, number>();
    for (const tool of all.answer?.items ?? [])
      for (const name of of(tool)) found.set(name, (found.get(name) ?? 0) + 1);
    return [...found].sort(([a], [b]) => (a < b ? -1 : 1));
  };
  // Tools without one cannot be asked for.
  const categories = counts((tool) => (tool.category === '' ? [] : [tool.category]));
  const isRanked = filled['q'] !== '';
  const columns: Column<ToolSummary>[] = [
    {
      head: 'Tool',
      cell: (tool) => (
        <>
          <ToolLink name={tool.name} />
          <div class="sub">{tool.title}</div>
        </>
      ),
    },
    { head: 'What it does', cell: (tool) => <span class="clamp">{tool.description}</span>, class: 'wide' },
    { head: 'Category', cell: (tool) => tool.category, isExtra: true },
    ...(isRanked
      ? [
          {
            head: 'Score',
            cell: (tool: ToolSummary) => (tool.score == null ? '–' : tool.score.toFixed(3)),
            isNumber: true,
          },
        ]
      : []),
  ];
  return (
    <>
      <form class="filters" role="search" onSubmit={(event) => event.preventDefault()}>
        <Text
          label="Search as agents do"
          type="search"
          value={form['q'] ?? ''}
          onChange={set('q')}
          placeholder="find news about chips"
          class="grow"
        />
        <Choice
          label="Category"
          value={form['category'] ?? ''}
          onChange={set('category')}
          options={[['', 'all'], ...categories.map(([name, number]) => [name, `${name} (${number})`] as const)]}
        />
        <Text
          label="Capability"
          value={form['capability'] ?? ''}
          onChange={set('capability')}
          list={counts((tool) => tool.capabilities).map(([name]) => name)}
        />
        <Text
          label="Keyword"
          value={form['keyword'] ?? ''}
          onChange={set('keyword')}
          list={counts((tool) => tool.keywords).map(([name]) => name)}
        />
        <Text label="Provider" value={form['provider'] ?? ''} onChange={set('provider')} />
        <Text label="Error received" value={form['error'] ?? ''} onChange={set('error')} placeholder="HTTP 401" />
      </form>
      <Shown asked={tools}>
        {({ items, total }) => (
          <Card title={many(total, 'tool')} note={isRanked ? 'the best first' : 'by name'}>
            {items.length === 0 ? (
              total === 0 && Object.keys(given).length === 0 ? (
                <Empty command="almanacd serve --tool-metadata ./tool_metadata">
                  There are no tools. Documents in the directory of tools fill this page:
                </Empty>
              ) : (
                <p>No tool is like that.</p>
              )
            ) : (
              <>
                <Table caption="Tools" columns={columns} rows={items} keyOf={(tool) => tool.name} />
                {items.length < total && (
                  <p class="more">
                    The first {count(items.length)} of {count(total)}.{' '}
                    <a href={link('tools', undefined, { ...given, limit: Math.min(total, items.length * 5) })}>
                      Show more
                    </a>
                  </p>
                )}
              </>
            )}
          </Card>
        )}
      </Shown>
    </>
  );
}

function Diagnostics({ place }: { place: Place }) {
  const cursor = place.query.get('cursor');
  const catalog = useAsk(`catalog ${cursor ?? ''}`, (signal) =>
    api().getCatalog({ query: cursor === null ? {} : { cursor }, signal }),
  );
  useOnEvent(['catalog_reloaded'], 500, catalog.again);
  return (
    <Shown asked={catalog}>
      {({ diagnostics, stale, loaded, total, next_cursor }) => (
        <>
          {stale.length > 0 && (
            <Card title="Served in an earlier version">
              <Chips items={stale} label="Stale tools" />
            </Card>
          )}
          <Card title={many(total, 'finding')} note={many(loaded, 'document served', 'documents served')}>
            {total === 0 ? <p>Nothing is wrong with the documents.</p> : null}
            <ul class="diagnostics">
              {diagnostics.map((fault, index) => (
                <li key={index}>
                  <OneDiagnostic fault={fault} />
                </li>
              ))}
            </ul>
            {(cursor !== null || next_cursor != null) && (
              <p class="more">
                {cursor !== null && <a href={link('tools', undefined, { tab: 'diagnostics' })}>From the beginning</a>}{' '}
                {next_cursor != null && (
                  <a href={link('tools', undefined, { tab: 'diagnostics', cursor: next_cursor })}>Next page</a>
                )}
              </p>
            )}
          </Card>
        </>
      )}
    </Shown>
  );
}

function OneDiagnostic({ fault }: { fault: Diagnostic }) {
  const tone = fault.severity === 'error' ? 'bad' : fault.severity === 'warning' ? 'warn' : 'info';
  return (
    <>
      <div class="fault-line">
        <Badge tone={tone}>{fault.severity}</Badge>
        <span>{fault.message}</span>
      </div>
      <div class="sub">
        <code>
          {fault.file}:{fault.line}:{fault.column}
        </code>{' '}
        · {fault.code}
        {fault.hint != null && <> · {fault.hint}</>}
      </div>
      {fault.source != null && (
        <pre class="source" tabIndex={0}>
          {fault.source}
          {'\n'}
          {' '.repeat(Math.max(0, fault.column - 1))}^
        </pre>
      )}
    </>
  );
}
