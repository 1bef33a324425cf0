/** What is connected? */

import { useEffect, useRef } from 'preact/hooks';

import { api, type CallInFlight, type McpServerItem, type McpToolDifference } from '../api.js';
import { useAsk, useDo } from '../ask.js';
import { differences } from '../differences.js';
import { count, duration, many, share } from '../format.js';
import { useOnEvent } from '../live.js';
import { TONES } from '../servers.js';
import { Badge, Bar, Card, type Column, Confirm, Empty, Fault, Page, Shown, Table, ToolLink } from '../ui.js';

/** Between two questions while the page is looked at, in ms: often while calls are under way. */
const OFTEN_MS = 1000;
const SELDOM_MS = 5000;

export function Servers() {
  const servers = useAsk('servers', (signal) => api().listServers({ signal }));
  useOnEvent(['tool_relayed', 'config_reloaded', 'catalog_reloaded'], 500, servers.again);
  const isBusy = (servers.answer?.calls.length ?? 0) > 0;
  useEffect(() => {
    const timer = setInterval(() => document.hidden || servers.again(), isBusy ? OFTEN_MS : SELDOM_MS);
    return () => clearInterval(timer);
  }, [isBusy]);
  return (
    <Page title="Servers" lead="MCP servers behind the daemon: how each is, what it changed, what it works on.">
      <Shown asked={servers}>
        {({ items, calls }) => (
          <>
            <Card title={many(items.length, 'server')}>
              {items.length === 0 ? (
                <Empty
                  command={
                    'mcp:\n  servers:\n    files: {command: [npx, -y, "@modelcontextprotocol/server-filesystem", /srv]}'
                  }
                >
                  No MCP server is configured. The section `mcp` of the configuration fills this page:
                </Empty>
              ) : (
                <List servers={items} />
              )}
            </Card>
            {items
              .filter(({ waiting }) => waiting > 0)
              .map(({ name, waiting }) => (
                <Changes key={name} server={name} waiting={waiting} onApproved={servers.again} />
              ))}
            <Card title="Calls under way" note="of this tenant">
              {calls.length === 0 ? <p>No call is under way.</p> : <Calls calls={calls} />}
            </Card>
          </>
        )}
      </Shown>
    </Page>
  );
}

function List({ servers }: { servers: readonly McpServerItem[] }) {
  const listed = (number: number | null | undefined) => (number == null ? '–' : count(number));
  const columns: Column<McpServerItem>[] = [
    {
      head: 'Server',
      cell: ({ name, prefix }) => (
        <>
          <code>{name}</code>
          <div class="sub">{prefix === '' ? 'no prefix' : `${prefix}_…`}</div>
        </>
      ),
    },
    {
      head: 'State',
      cell: ({ state, problem }) => (
        <>
          <Badge tone={TONES[state] ?? 'quiet'}>{state}</Badge>
          {problem != null && <div class="sub">{problem}</div>}
        </>
      ),
      class: 'wide',
    },
    { head: 'Tools', cell: ({ tools }) => listed(tools), isNumber: true },
    { head: 'Prompts', cell: ({ prompts }) => listed(prompts), isNumber: true, isExtra: true },
    { head: 'Resources', cell: ({ resources }) => listed(resources), isNumber: true, isExtra: true },
    {
      head: 'Changed',
      cell: ({ waiting }) => (waiting === 0 ? '0' : <Badge tone="warn">{count(waiting)}</Badge>),
      isNumber: true,
    },
    { head: 'Starts', cell: ({ starts }) => count(starts), isNumber: true, isExtra: true },
    { head: 'Protocol', cell: ({ version }) => version ?? '–', class: 'nowrap', isExtra: true },
  ];
  return <Table caption="Servers" columns={columns} rows={servers} keyOf={({ name }) => name} />;
}

/** Definitions that a server changed after they were approved. */
function Changes({ server, waiting, onApproved }: { server: string; waiting: number; onApproved: () => void }) {
  const changes = useAsk(`changes ${server} ${waiting}`, (signal) =>
    api().listServerChanges({ path: { name: server }, signal }),
  );
  const approved = useDo(async (tool: string | undefined) => {
    const answer = await api().approveServerChanges({
      path: { name: server },
      query: { ...(tool !== undefined && { tool }) },
    });
    onApproved();
    return answer;
  });
  const before = useRef(waiting);
  useEffect(() => {
    if (before.current !== waiting) changes.again();
    before.current = waiting;
  }, [waiting]);
  return (
    <Card
      title={
        <>
          Changed definitions of <code>{server}</code>
        </>
      }
      note={<code>almanacd ctl mcp diff {server}</code>}
    >
      <Fault error={approved.error} />
      <Shown asked={changes}>
        {({ items }) => (
          <>
            {items.length > 1 && (
              <div class="actions">
                <Confirm
                  label={`Approve all ${items.length}`}
                  question={`Approve ${many(items.length, 'definition')} of ${server}?`}
                  detail={<Consequence />}
                  disabled={approved.isBusy}
                  onYes={() => void approved.run(undefined)}
                />
              </div>
            )}
            {items.map((change) => (
              <Change
                key={change.tool}
                change={change}
                isBusy={approved.isBusy}
                onApprove={() => void approved.run(change.tool)}
              />
            ))}
          </>
        )}
      </Shown>
    </Card>
  );
}

function Consequence() {
  return (
    <p>
      Models read what a definition says, and act on it. From now on clients are shown it as it is offered now, and
      calls are made again. It needs the scope <code>admin</code>.
    </p>
  );
}

function Change({ change, isBusy, onApprove }: { change: McpToolDifference; isBusy: boolean; onApprove: () => void }) {
  const lines = differences(shown(change.approved), shown(change.offered));
  const side = (left: boolean) => lines.filter(({ kind }) => kind !== (left ? 'added' : 'removed'));
  const half = (left: boolean) => (
    <div class="part">
      <h3>{left ? 'Approved' : 'Offered now'}</h3>
      {left && change.approved == null ? (
        <p>Nothing was approved: the tool is new.</p>
      ) : (
        <pre class="differences" tabIndex={0}>
          {side(left).map(({ kind, text }, index) => (
            <div key={index} class={kind}>
              {kind === 'same' ? ' ' : left ? '−' : '+'} {text}
            </div>
          ))}
        </pre>
      )}
    </div>
  );
  return (
    <section class="change" aria-label={`Change of ${change.tool}`}>
      <div class="card-head">
        <h3>
          <code>{change.tool}</code>
        </h3>
        <Confirm
          label="Approve"
          question={`Approve what ${change.tool} says now?`}
          detail={<Consequence />}
          disabled={isBusy}
          onYes={onApprove}
        />
      </div>
      <div class="two">
        {half(true)}
        {half(false)}
      </div>
    </section>
  );
}

function shown(definition: unknown): string {
  return definition == null ? '' : JSON.stringify(definition, null, 2);
}

function Calls({ calls }: { calls: readonly CallInFlight[] }) {
  const columns: Column<CallInFlight>[] = [
    { head: 'Tool', cell: ({ tool }) => <ToolLink name={tool} />, class: 'wide' },
    { head: 'Server', cell: ({ server }) => <code>{server}</code>, isExtra: true },
    {
      head: 'Running for',
      cell: ({ running_ms: ms }) => (ms == null ? 'waits to be sent' : duration(ms)),
      isNumber: true,
    },
    { head: 'Still, usually', cell: ({ p50_left_ms: ms }) => duration(ms), isNumber: true },
    { head: 'At most, in 9 of 10', cell: ({ p90_left_ms: ms }) => duration(ms), isNumber: true },
    {
      head: 'Calls that ended sooner',
      cell: ({ longer_probability: longer }) => <Bar value={1 - longer} label={share(1 - longer)} />,
      isExtra: true,
    },
  ];
  return (
    <Table
      caption="Calls under way"
      columns={columns}
      rows={calls}
      keyOf={({ server, tool }, index) => `${server} ${tool} ${index}`}
    />
  );
}
