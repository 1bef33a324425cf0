/** Why did it choose these? A message, or a call, tried as an agent would. */

import { useEffect, useState } from 'preact/hooks';

import { api, type CallMetadata, type QualifyAnswer, type ToolExplanation } from '../api.js';
import { useDo } from '../ask.js';
import { duration, many, share } from '../format.js';
import { link, type Place } from '../router.js';
import {
  Badge,
  Bar,
  Card,
  Chips,
  type Column,
  Confirm,
  Fault,
  Page,
  Table,
  Tabs,
  Text,
  Tile,
  ToolLink,
} from '../ui.js';

export function Try({ place }: { place: Place }) {
  const tab = place.query.get('tab') ?? 'message';
  return (
    <Page title="Try" lead="Ask as an agent asks, and see why the answer is what it is.">
      <Tabs
        current={tab}
        tabs={[
          ['message', 'A message', link('try')],
          ['call', 'A call', link('try', undefined, { tab: 'call' })],
        ]}
      />
      {tab === 'call' ? <Call key={place.query.get('tool') ?? ''} tool={place.query.get('tool') ?? ''} /> : <Message />}
    </Page>
  );
}

function Message() {
  const [message, setMessage] = useState('');
  const [session, setSession] = useState('');
  const [most, setMost] = useState('');
  const [missing, setMissing] = useState('');
  const asked = useDo((text: string) =>
    api().qualify({
      body: {
        message: text,
        scores: true,
        explain: true,
        ...(session !== '' && { sessionId: session }),
        ...(most !== '' && { maxTools: Number(most) }),
      },
    }),
  );
  const missed = useDo((toolName: string) =>
    api().reportMiss({ body: { toolName, message, ...(session !== '' && { sessionId: session }) } }),
  );
  return (
    <>
      <form
        class="card"
        onSubmit={(event) => {
          event.preventDefault();
          missed.clear();
          void asked.run(message);
        }}
      >
        <div class="form">
          <Text
            label="Message"
            value={message}
            onChange={setMessage}
            placeholder="search the web for news about chips"
            class="grow"
          />
          <Text label="Session, if any" value={session} onChange={setSession} />
          <Text label="Tools at most" type="number" value={most} onChange={setMost} />
          <button class="button primary" disabled={asked.isBusy || message.trim() === ''}>
            Qualify
          </button>
        </div>
        {session !== '' && (
          <p class="sub">This moves the session on: its next message is read in the light of this one.</p>
        )}
      </form>
      <Fault error={asked.error} />
      {asked.answer !== undefined && (
        <>
          <Verdict answer={asked.answer} />
          <Offered answer={asked.answer} />
          <Card title="A tool that should have been there">
            <div class="form">
              <Text label="Its name" value={missing} onChange={setMissing} list={asked.answer.cutTools ?? []} />
              <Confirm
                label="Report the miss"
                question={`Was ${missing} missing?`}
                detail={
                  <p>
                    The daemon learns that this message needed <code>{missing}</code>, for this tenant, and ranks it
                    higher for messages like it. It needs the scope <code>record</code>.
                  </p>
                }
                disabled={missing.trim() === '' || missed.isBusy}
                onYes={() => void missed.run(missing.trim())}
              />
            </div>
            <Fault error={missed.error} />
            {missed.answer !== undefined && (
              <ul class="plain-list" role="status">
                {missed.answer.events.map((event) => (
                  <li key={event.message}>
                    <Badge tone="good">learnt</Badge> {event.message}
                  </li>
                ))}
                {missed.answer.degraded != null && <li>{missed.answer.degraded}</li>}
              </ul>
            )}
          </Card>
        </>
      )}
    </>
  );
}

function Verdict({ answer }: { answer: QualifyAnswer }) {
  return (
    <Card title="What it is about" note={`confidence ${share(answer.confidence)}`}>
      {answer.noToolNeeded && (
        <p>
          <Badge tone="info">No tool is needed</Badge>
        </p>
      )}
      <Chips items={answer.categories} label="Categories" />
      <p class="prose">{answer.reasoning}</p>
      {answer.stickyFallbackApplied && (
        <p class="sub">The session's categories were kept: the message alone says too little.</p>
      )}
    </Card>
  );
}

interface OfferedTool {
  name: string;
  score: number | undefined;
  parts: ToolExplanation | undefined;
}

/** The parts of a score that count, the greatest first. */
function explained(parts: ToolExplanation): string {
  const found = Object.entries(parts).filter(([, value]) => Math.abs(value) >= 0.05);
  const sorted = found.sort(([, one], [, other]) => Math.abs(other) - Math.abs(one));
  return sorted.map(([name, value]) => `${name} ${value.toFixed(1)}`).join(' · ');
}

function Offered({ answer }: { answer: QualifyAnswer }) {
  const rows: OfferedTool[] = answer.availableTools.map((name, index) => ({
    name,
    score: answer.scores?.[index],
    parts: answer.explanations?.[index],
  }));
  const cut = answer.cutTools ?? [];
  const columns: Column<OfferedTool>[] = [
    {
      head: 'Tool',
      cell: ({ name }) => <ToolLink name={name} />,
      class: 'wide',
    },
    {
      head: 'Its score, by parts',
      cell: ({ parts }) => <span class="sub">{parts === undefined ? '–' : explained(parts)}</span>,
    },
    {
      head: 'Probability',
      cell: ({ score }) => (score === undefined ? '–' : <Bar value={score} label={share(score)} />),
      class: 'wide',
    },
  ];
  return (
    <Card title={`${many(answer.toolCount, 'tool')} offered`} note={`of ${answer.toolsTotal}`}>
      {rows.length === 0 ? (
        <p>None fits.</p>
      ) : (
        <Table caption="Offered tools" columns={columns} rows={rows} keyOf={({ name }) => name} />
      )}
      <div class="cut" role="separator">
        <span>the cut</span>
      </div>
      {cut.length === 0 ? (
        <p class="sub">Nothing was nearly in.</p>
      ) : (
        <div class="part">
          <h3>Nearly in</h3>
          <Chips items={cut} label="Nearly in" />
        </div>
      )}
    </Card>
  );
}

const SIZES = ['content_length', 'num_perspectives', 'num_branches', 'thinking_budget', 'context_tokens'] as const;
const SIZE_LABELS = ['Characters of input', 'Perspectives', 'Branches', 'Tokens to think', 'Tokens of context'];

function Call({ tool: given }: { tool: string }) {
  const [tool, setTool] = useState(given);
  const [mode, setMode] = useState('');
  const [history, setHistory] = useState('');
  const [goal, setGoal] = useState('');
  const [sizes, setSizes] = useState<Record<string, string>>({});
  const asked = useDo(() => {
    const complexity = Object.fromEntries(
      Object.entries(sizes)
        .filter(([, size]) => size !== '')
        .map(([name, size]) => [name, Number(size)]),
    );
    const before = history.split(/[\s,]+/).filter((name) => name !== '');
    return api().getMetadata({
      body: {
        tool_name: tool.trim(),
        complexity,
        ...(mode !== '' && { mode_name: mode }),
        ...(before.length > 0 && { tool_history: before }),
        ...(goal !== '' && { goal }),
      },
    });
  });
  useEffect(() => {
    if (given !== '') void asked.run();
  }, []);
  return (
    <>
      <form
        class="card"
        onSubmit={(event) => {
          event.preventDefault();
          void asked.run();
        }}
      >
        <div class="form">
          <Text label="Tool" value={tool} onChange={setTool} placeholder="web_search" class="grow" />
          <Text label="Mode, if any" value={mode} onChange={setMode} />
          <Text
            label="Tools called before"
            value={history}
            onChange={setHistory}
            placeholder="web_search scrape_webpage"
            class="grow"
          />
          <Text label="Goal" value={goal} onChange={setGoal} class="grow" />
        </div>
        <div class="form">
          {SIZES.map((size, index) => (
            <Text
              key={size}
              label={SIZE_LABELS[index] ?? size}
              type="number"
              value={sizes[size] ?? ''}
              onChange={(value) => setSizes({ ...sizes, [size]: value })}
            />
          ))}
          <button class="button primary" disabled={asked.isBusy || tool.trim() === ''}>
            Estimate
          </button>
        </div>
      </form>
      <Fault error={asked.error} />
      {asked.answer !== undefined && <CallAnswer answer={asked.answer} />}
    </>
  );
}

function CallAnswer({ answer: { timing, suggestions } }: { answer: CallMetadata }) {
  return (
    <>
      {!timing.known && (
        <p class="fault">
          <Badge tone="warn">Not known</Badge> Nobody met a tool of that name.{' '}
          {timing.near !== undefined && timing.near.length > 0 && <>Did you mean {timing.near.join(' or ')}?</>}
        </p>
      )}
      <div class="tiles">
        <Tile
          label="Expected"
          value={duration(timing.estimated_duration_ms)}
          note={`from ${timing.basis}, ${many(timing.samples, 'call')}`}
        />
        <Tile label="Half within" value={duration(timing.p50_ms)} note={`9 in 10 within ${duration(timing.p90_ms)}`} />
        <Tile
          label="Interval"
          value={`${duration(timing.interval_ms[0])} – ${duration(timing.interval_ms[1])}`}
          note="nine in ten calls end inside it"
        />
        <Tile
          label="Times out"
          value={share(timing.timeout_probability)}
          note={`${timing.timeout}, at ${duration(timing.factory_timeout_ms)}`}
        />
      </div>
      <Card title="What comes next">
        <ul class="plain-list">
          {suggestions.next_tools.map((next) => (
            <li key={next.tool}>
              <ToolLink name={next.tool} /> {next.reason}{' '}
              <span class="sub-inline">
                {duration(next.estimated_duration_ms)}
                {next.confidence != null && `, ${share(next.confidence)} sure`}
              </span>
            </li>
          ))}
          {suggestions.next_tools.length === 0 && <li>Nothing is suggested.</li>}
        </ul>
        {suggestions.degraded?.map((missing) => (
          <p class="sub" key={missing.plugin}>
            {missing.plugin} did not answer: {missing.reason}
          </p>
        ))}
      </Card>
      <Card title="Workflows that fit">
        {suggestions.relevant_presets.length === 0 ? (
          <p>None.</p>
        ) : (
          <ul class="plain-list">
            {suggestions.relevant_presets.map((preset) => (
              <li key={preset.preset_id}>
                <strong>{preset.preset_id}</strong> {preset.description}
                <div class="sub">
                  still to do: {preset.remaining_steps.join(' → ')} ({duration(preset.remaining_duration_ms)})
                </div>
              </li>
            ))}
          </ul>
        )}
      </Card>
    </>
  );
}
