/** Why did it choose these? A message, or a call, tried as an agent would. */

import { useLayoutEffect, useRef, useState } from 'preact/hooks';

import { api, type CallMetadata, type QualifyAnswer, type ToolExplanation } from '../api.js';
import { useDo } from '../ask.js';
import { duration, many, share } from '../format.js';
import { go, link, type Place } from '../router.js';
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
      {tab === 'call' ? <Call place={place} /> : <Message place={place} />}
    </Page>
  );
}

type Fields<Name extends string> = Record<Name, string>;

/**
 * A form whose fields the address has once it was submitted. `onGiven` is told what is filled in when the page opens, and
 * when the address becomes another one by itself.
 */
function useForm<Name extends string>(
  { query }: Place,
  names: readonly Name[],
  onGiven: (fields: Fields<Name>) => void,
) {
  const given = Object.fromEntries(names.map((name) => [name, query.get(name) ?? ''])) as Fields<Name>;
  const key = JSON.stringify(given);
  const [fields, setFields] = useState(given);
  const handled = useRef('');
  // Before anybody can type: what was typed meanwhile would be lost.
  useLayoutEffect(() => {
    setFields(given);
    if (handled.current !== key) onGiven(given);
    handled.current = key;
  }, [key]);
  return {
    fields,
    set: (name: Name) => (value: string) => setFields((fields) => ({ ...fields, [name]: value })),
    /** Puts the fields into the address; whoever calls it does what is to be done with them. */
    submit: () => {
      handled.current = JSON.stringify(fields);
      go(link('try', undefined, { tab: query.get('tab') ?? undefined, ...fields }), true);
    },
  };
}

const MESSAGE_FIELDS = ['message', 'session', 'most'] as const;

type MessageFields = Fields<(typeof MESSAGE_FIELDS)[number]>;

function Message({ place }: { place: Place }) {
  const [missing, setMissing] = useState('');
  const asked = useDo(({ message, session, most }: MessageFields) =>
    api().qualify({
      body: {
        message,
        scores: true,
        explain: true,
        ...(session !== '' && { sessionId: session }),
        ...(most !== '' && { maxTools: Number(most) }),
      },
    }),
  );
  const ask = (fields: MessageFields) => {
    missed.clear();
    void asked.run(fields);
  };
  const form = useForm(place, MESSAGE_FIELDS, (given) => {
    // A link moves no session on: its message is asked by whoever submits it.
    if (given.message.trim() !== '' && given.session === '') ask(given);
    else asked.clear();
  });
  const { message, session, most } = form.fields;
  const missed = useDo((toolName: string) =>
    api().reportMiss({ body: { toolName, message, ...(session !== '' && { sessionId: session }) } }),
  );
  return (
    <>
      <form
        class="card"
        onSubmit={(event) => {
          event.preventDefault();
          form.submit();
          ask(form.fields);
        }}
      >
        <div class="form">
          <Text
            label="Message"
            value={message}
            onChange={form.set('message')}
            placeholder="search the web for news about chips"
            class="grow"
          />
          <Text label="Session, if any" value={session} onChange={form.set('session')} />
          <Text label="Tools at most" type="number" value={most} onChange={form.set('most')} />
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

const CALL_FIELDS = ['tool', 'mode', 'before', 'goal', ...SIZES] as const;

type CallFields = Fields<(typeof CALL_FIELDS)[number]>;

function estimate({ tool, mode, before, goal, ...sizes }: CallFields): Promise<CallMetadata> {
  const given = Object.entries(sizes).filter(([, size]) => size !== '');
  const history = before.split(/[\s,]+/).filter((name) => name !== '');
  return api().getMetadata({
    body: {
      tool_name: tool.trim(),
      complexity: Object.fromEntries(given.map(([name, size]) => [name, Number(size)])),
      ...(mode !== '' && { mode_name: mode }),
      ...(history.length > 0 && { tool_history: history }),
      ...(goal !== '' && { goal }),
    },
  });
}

function Call({ place }: { place: Place }) {
  const asked = useDo(estimate);
  const form = useForm(place, CALL_FIELDS, (given) => {
    if (given.tool.trim() === '') asked.clear();
    else void asked.run(given);
  });
  const { tool, mode, before, goal } = form.fields;
  return (
    <>
      <form
        class="card"
        onSubmit={(event) => {
          event.preventDefault();
          form.submit();
          void asked.run(form.fields);
        }}
      >
        <div class="form">
          <Text label="Tool" value={tool} onChange={form.set('tool')} placeholder="web_search" class="grow" />
          <Text label="Mode, if any" value={mode} onChange={form.set('mode')} />
          <Text
            label="Tools called before"
            value={before}
            onChange={form.set('before')}
            placeholder="web_search scrape_webpage"
            class="grow"
          />
          <Text label="Goal" value={goal} onChange={form.set('goal')} class="grow" />
        </div>
        <div class="form">
          {SIZES.map((size, index) => (
            <Text
              key={size}
              label={SIZE_LABELS[index] ?? size}
              type="number"
              value={form.fields[size]}
              onChange={form.set(size)}
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
