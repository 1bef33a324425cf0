/** One tool: its document readable, what it goes with, how long it takes, what follows it. */

import type { ComponentChildren } from 'preact';

import { api, type ChoiceItem, type KeyTiming, type ToolMetadata, type ToolRelations } from '../api.js';
import { useAsk } from '../ask.js';
import { count, duration, modeName, share } from '../format.js';
import { useOnEvent } from '../live.js';
import { link } from '../router.js';
import { Badge, Card, Chips, type Column, Json, Page, RecordSo, Shown, Table, Time, ToolLink } from '../ui.js';

/** What was learnt of its calls; nothing if there was none, which is no error. */
async function learnt(tool: string, signal: AbortSignal): Promise<KeyTiming[]> {
  const calls = await api().listExecutions({ query: { tool, limit: 1 }, signal });
  if (calls.items.length === 0) return [];
  return (await api().getTiming({ path: { name: tool }, signal })).items;
}

/** Choices that are shown. */
const CHOICES = 20;

export function Tool({ name }: { name: string }) {
  const tool = useAsk(`tool ${name}`, (signal) => api().getTool({ path: { name }, signal }));
  const relations = useAsk(`relations ${name}`, (signal) => api().getToolRelations({ path: { name }, signal }));
  const timing = useAsk(`learnt ${name}`, (signal) => learnt(name, signal));
  const next = useAsk(`next ${name}`, (signal) =>
    api().getMetadata({ body: { tool_name: name, tool_history: [name] }, signal }),
  );
  useOnEvent(['catalog_reloaded'], 500, () => (tool.again(), relations.again(), next.again()));
  const choices = useAsk(`choices ${name}`, (signal) =>
    api().listToolChoices({ path: { name }, query: { limit: CHOICES }, signal }),
  );
  useOnEvent(['execution_recorded'], 2000, () => (timing.again(), choices.again()));
  useOnEvent(['tool_missed'], 500, choices.again);
  return (
    <Page
      title={<code>{name}</code>}
      lead={tool.answer?.title}
      actions={
        <div class="actions">
          {/* Calls are recorded of tools without a document as well. */}
          {(tool.answer !== undefined || (timing.answer?.length ?? 0) > 0) && (
            <a class="button" href={link('timing', name)}>
              Its calls
            </a>
          )}
          {tool.answer !== undefined && (
            <a class="button" href={link('try', undefined, { tab: 'call', tool: name })}>
              Try a call
            </a>
          )}
        </div>
      }
    >
      <Shown asked={tool}>
        {(document) => (
          <>
            <Document tool={document} />
            <Card title="Goes with">
              <Shown asked={relations}>{(found) => <Relations found={found} />}</Shown>
            </Card>
            <Card title="How long it takes" note="as forecast for a usual call">
              <Shown asked={timing}>{(found) => <Durations found={found} name={name} />}</Shown>
            </Card>
            <Card title="What follows it" note="as an agent is told after a call of it">
              <Shown asked={next}>
                {({ suggestions }) => (
                  <ul class="plain-list">
                    {suggestions.next_tools.map((step) => (
                      <li key={step.tool}>
                        <ToolLink name={step.tool} /> {step.reason}{' '}
                        <span class="sub-inline">{duration(step.estimated_duration_ms)}</span>
                      </li>
                    ))}
                    {suggestions.next_tools.length === 0 && <li>Nothing is suggested.</li>}
                  </ul>
                )}
              </Shown>
            </Card>
            <Card title="When it was chosen" note="and for which messages, the latest first">
              <Shown asked={choices}>{({ items }) => <Choices found={items} name={name} />}</Shown>
            </Card>
          </>
        )}
      </Shown>
    </Page>
  );
}

function Choices({ found, name }: { found: readonly ChoiceItem[]; name: string }) {
  if (found.length === 0) {
    return (
      <p>
        It was not chosen yet. What a session calls after a message was qualified is a choice, and so is a{' '}
        <a href={link('try')}>miss that is reported</a>; both bring <code>{name}</code> up for messages like it.
      </p>
    );
  }
  const columns: Column<ChoiceItem>[] = [
    { head: 'When', cell: ({ at }) => <Time at={at} />, class: 'nowrap' },
    {
      head: 'Message',
      cell: ({ message }) => (message == null ? <span class="sub">needs the scope memory</span> : message),
      class: 'wide',
    },
    { head: 'Trusted', cell: ({ trust }) => share(trust), isNumber: true },
  ];
  return <Table caption="Choices" columns={columns} rows={found} keyOf={({ at }, index) => `${at} ${index}`} />;
}

function Part({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <div class="part">
      <h3>{title}</h3>
      {children}
    </div>
  );
}

function Document({ tool }: { tool: ToolMetadata }) {
  const { use_cases, examples = [], common_errors = [], prerequisites = [], rate_limit, providers = [] } = tool;
  return (
    <Card title="What it is" note={tool.category}>
      <p class="prose">{tool.description}</p>
      <div class="parts">
        <Part title="Capabilities">
          <Chips items={tool.capabilities} label="Capabilities" />
        </Part>
        <Part title="Keywords">
          <Chips items={tool.keywords} label="Keywords" />
        </Part>
        {providers.length > 0 && (
          <Part title="Providers">
            <Chips items={providers} label="Providers" />
          </Part>
        )}
      </div>
      {use_cases.length > 0 && (
        <Part title="When to use it">
          <ul class="plain-list">
            {use_cases.map((use, index) => (
              <li key={index}>
                <strong>{use.title}</strong> {use.when_to_use}
                {use.example !== undefined && <div class="sub">Such as: “{use.example}”</div>}
                {use.not_for !== undefined && <div class="sub">Not for: {use.not_for}</div>}
              </li>
            ))}
          </ul>
        </Part>
      )}
      {tool.best_practices !== undefined && (
        <Part title="Best practices">
          <p class="prose">{tool.best_practices}</p>
        </Part>
      )}
      {common_errors.length > 0 && (
        <Part title="Errors, and what to do">
          <dl>
            {common_errors.map((error, index) => (
              <div key={index}>
                <dt>{error.error}</dt>
                <dd>
                  {error.cause !== undefined && <>{error.cause} </>}
                  {error.solution}
                </dd>
              </div>
            ))}
          </dl>
        </Part>
      )}
      {prerequisites.length > 0 && (
        <Part title="Needs">
          <ul class="plain-list">
            {prerequisites.map((need, index) => (
              <li key={index}>
                <strong>{need.name}</strong> {need.how_to_get}
                {need.env_vars !== undefined && need.env_vars.length > 0 && (
                  <Chips items={need.env_vars} label="Environment" />
                )}
              </li>
            ))}
          </ul>
        </Part>
      )}
      {rate_limit != null && (
        <Part title="Limits">
          <p>
            {Object.entries(rate_limit.limits ?? {})
              .map(([what, limit]) => `${what}: ${limit}`)
              .join(', ')}{' '}
            {rate_limit.notes}
          </p>
        </Part>
      )}
      {examples.length > 0 && (
        <details>
          <summary>{examples.length === 1 ? 'An example' : `${examples.length} examples`}</summary>
          {examples.map((example, index) => (
            <div class="example" key={index}>
              <h3>{example.name}</h3>
              {example.description !== undefined && <p>{example.description}</p>}
              <Json value={example.input} />
              <Json value={example.output} />
              {example.explanation !== undefined && <p>{example.explanation}</p>}
            </div>
          ))}
        </details>
      )}
      {tool.input_schema != null && (
        <details>
          <summary>Schema of its input</summary>
          <Json value={tool.input_schema} />
        </details>
      )}
    </Card>
  );
}

function Relations({ found }: { found: ToolRelations }) {
  const rows = [
    ...found.conflicts.map((item) => ({
      kind: 'conflict',
      tone: 'bad' as const,
      ...item,
      why: `${item.reason} Prefer this: ${item.when_prefer_this} Prefer the other: ${item.when_prefer_other}`,
    })),
    ...found.alternatives.map((item) => ({
      kind: 'alternative',
      tone: 'info' as const,
      ...item,
      why: [item.when, item.benefits].filter(Boolean).join(' — '),
    })),
    ...found.complements.map((item) => ({ kind: 'complement', tone: 'good' as const, ...item, why: item.scenario })),
  ];
  type Row = (typeof rows)[number];
  if (rows.length === 0) return <p>Its document names no other tool, and no other document names it.</p>;
  const columns: Column<Row>[] = [
    { head: 'Relation', cell: (row) => <Badge tone={row.tone}>{row.kind}</Badge> },
    {
      head: 'With',
      cell: (row) =>
        row.dangling ? (
          <code>{row.tool}</code>
        ) : (
          <a href={link('tools', row.resolved[0] ?? row.tool)}>
            <code>{row.tool}</code>
          </a>
        ),
    },
    {
      head: 'Why',
      cell: (row) => (
        <>
          {row.why}
          {row.dangling && <div class="sub">No tool here has that name.</div>}
        </>
      ),
      class: 'wide',
    },
    { head: 'Said by', cell: (row) => row.direction, isExtra: true },
  ];
  return (
    <Table
      caption="Relations"
      columns={columns}
      rows={rows}
      keyOf={(row, index) => `${row.kind} ${row.tool} ${index}`}
    />
  );
}

function Durations({ found, name }: { found: readonly KeyTiming[]; name: string }) {
  if (found.length === 0) {
    return <RecordSo tool={name}>No call of it was recorded yet. Agents record theirs so:</RecordSo>;
  }
  const columns: Column<KeyTiming>[] = [
    { head: 'Mode', cell: (key) => modeName(key.mode) },
    { head: 'Calls', cell: (key) => count(key.samples), isNumber: true },
    { head: 'Usually', cell: (key) => duration(key.p50_ms), isNumber: true },
    { head: '9 in 10 within', cell: (key) => duration(key.p90_ms), isNumber: true },
    { head: 'Confidence', cell: (key) => key.confidence, isExtra: true },
    {
      head: 'Inside the interval',
      cell: (key) => (key.recent_accuracy == null ? '–' : share(key.recent_accuracy.coverage90)),
      isNumber: true,
      isExtra: true,
    },
  ];
  return <Table caption="Durations by mode" columns={columns} rows={found} keyOf={(key) => key.mode} />;
}
