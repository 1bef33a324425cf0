/** What does it cost? */

import { api, type DayOfUsage, type UsageOfSession } from '../api.js';
import { useAsk } from '../ask.js';
import { count, dollars, many } from '../format.js';

import { Badge, Bar, Card, type Column, Empty, Page, posting, SessionLink, Shown, Table, Time } from '../ui.js';

/** Sessions that are drawn. */
const SHOWN = 200;

export function Usage() {
  const usage = useAsk('usage', (signal) => api().getUsage({ signal }));
  return (
    <Page
      title="Usage"
      lead="Tokens and money, as streams and reports of agents told them."
      actions={
        <button type="button" class="button" onClick={usage.again}>
          Ask again
        </button>
      }
    >
      <Shown asked={usage}>
        {({ days, sessions, since, threshold }) => (
          <>
            <Card
              title="By day"
              note={
                <>
                  since <Time at={since} />; what was used before is not kept by day
                </>
              }
            >
              {days.length === 0 ? (
                <Empty
                  command={posting('v1/usage', {
                    sessionId: 's1',
                    tokensIn: 9000,
                    tokensOut: 400,
                    prices: { input: 3, output: 15 },
                  })}
                >
                  No turn was reported since the start. Agents report theirs so:
                </Empty>
              ) : (
                <Days days={days} threshold={threshold} />
              )}
            </Card>
            <Card
              title="By session"
              note={
                sessions.length > SHOWN
                  ? `the latest ${SHOWN} of ${count(sessions.length)}`
                  : many(sessions.length, 'session')
              }
            >
              {sessions.length === 0 ? (
                <p>No session reported what it used.</p>
              ) : (
                <OfSessions sessions={sessions.slice(0, SHOWN)} />
              )}
            </Card>
          </>
        )}
      </Shown>
    </Page>
  );
}

function Days({ days, threshold }: { days: readonly DayOfUsage[]; threshold: number }) {
  const most = Math.max(1, ...days.map(({ used }) => used.tokensIn + used.tokensOut));
  const columns: Column<DayOfUsage>[] = [
    { head: 'Day', cell: (row) => row.day, class: 'nowrap' },
    {
      head: 'Tokens',
      cell: ({ used }) => (
        <Bar value={(used.tokensIn + used.tokensOut) / most} label={count(used.tokensIn + used.tokensOut)} />
      ),
      class: 'wide',
    },
    { head: 'Turns', cell: ({ used }) => count(used.turns), isNumber: true, isExtra: true },
    {
      head: `Turns over ${count(threshold)}`,
      cell: ({ overThreshold }) => (overThreshold === 0 ? '0' : <Badge tone="warn">{count(overThreshold)}</Badge>),
      isNumber: true,
    },
    { head: 'Cost', cell: ({ used }) => (used.costUsd == null ? '–' : dollars(used.costUsd)), isNumber: true },
  ];
  return <Table caption="Usage by day" columns={columns} rows={days} keyOf={(row) => row.day} />;
}

function OfSessions({ sessions }: { sessions: readonly UsageOfSession[] }) {
  const columns: Column<UsageOfSession>[] = [
    {
      head: 'Session',
      cell: (row) => <SessionLink id={row.sessionId} />,
      class: 'wide',
    },
    { head: 'Turns', cell: ({ used }) => count(used.turns), isNumber: true, isExtra: true },
    { head: 'Tokens in', cell: ({ used }) => count(used.tokensIn), isNumber: true },
    { head: 'Of a cache', cell: ({ used }) => count(used.cachedTokens), isNumber: true, isExtra: true },
    { head: 'Tokens out', cell: ({ used }) => count(used.tokensOut), isNumber: true, isExtra: true },
    { head: 'Cost', cell: ({ used }) => (used.costUsd == null ? '–' : dollars(used.costUsd)), isNumber: true },
  ];
  return <Table caption="Usage by session" columns={columns} rows={sessions} keyOf={(row) => row.sessionId} />;
}
