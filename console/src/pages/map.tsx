/** How do tools hang together? */

import { useEffect, useMemo, useRef, useState } from 'preact/hooks';

import { api, type RelationGraph } from '../api.js';
import { useAsk } from '../ask.js';
import { count, many, share } from '../format.js';
import { type Connection, connections, type Kind, KINDS, SAYS } from '../graph.js';
import { useOnEvent } from '../live.js';
import type { MapView } from '../map-view.js';
import { go, link, type Place } from '../router.js';
import { Badge, Card, Choice, type Column, Empty, Page, Shown, Table, Tabs, Text, type Tone, ToolLink } from '../ui.js';

/** Rows that are drawn. */
const SHOWN = 300;
const TONES: Record<Kind, Tone> = { conflict: 'bad', alternative: 'info', complement: 'good', transition: 'quiet' };

/** What stands in addresses for tools without a category: no category is called so, and the empty one means all. */
const NO_CATEGORY = '-';

function saysOf(category: string): string {
  return category === NO_CATEGORY ? 'no category' : category;
}

/** The same with a word for no category. */
function categorized(graph: RelationGraph): RelationGraph {
  return { ...graph, tools: graph.tools.map((tool) => ({ ...tool, category: tool.category || NO_CATEGORY })) };
}

/** What is filled in, as the address has it. */
interface Wanted {
  view: string | undefined;
  category: string;
  kinds: ReadonlySet<Kind>;
  tool: string;
}

function wantedOf({ query }: Place): Wanted {
  const kinds = (query.get('kinds') ?? KINDS.join()).split(',');
  return {
    view: query.get('view') ?? undefined,
    category: query.get('category') ?? '',
    kinds: new Set(KINDS.filter((kind) => kinds.includes(kind))),
    tool: query.get('tool') ?? '',
  };
}

function addressOf({ view, category, kinds, tool }: Wanted): string {
  const all = kinds.size === KINDS.length;
  return link('map', undefined, { view, category, kinds: all ? undefined : [...kinds].join() || 'none', tool });
}

export function Map({ place }: { place: Place }) {
  const graph = useAsk('relations', (signal) => api().getRelations({ signal }));
  useOnEvent(['catalog_reloaded'], 1000, graph.again);
  return (
    <Page title="Map" lead="How tools hang together: what documents declare, and what sessions called next.">
      <Shown asked={graph}>
        {(found) =>
          found.tools.length === 0 ? (
            <Card>
              <Empty command="almanacd serve --tool-metadata ./tool_metadata">
                There are no tools. Documents in the directory of tools fill this page:
              </Empty>
            </Card>
          ) : (
            <Loaded graph={found} wanted={wantedOf(place)} />
          )
        }
      </Shown>
    </Page>
  );
}

type Drawing = typeof import('../map-view.js');

function Loaded({ graph: found, wanted }: { graph: RelationGraph; wanted: Wanted }) {
  const graph = useMemo(() => categorized(found), [found]);
  const [drawing, setDrawing] = useState<Drawing | 'none' | undefined>();
  const all = useMemo(() => connections(graph), [graph]);
  const categories = useMemo(() => [...new Set(graph.tools.map(({ category }) => category))].sort(), [graph]);
  const categoryOf = useMemo(
    () => new globalThis.Map(graph.tools.map(({ name, category }) => [name, category])),
    [graph],
  );
  const seen = useMemo(() => {
    const isIn = (tool: string) => wanted.category === '' || categoryOf.get(tool) === wanted.category;
    return all.filter(({ kind, from, to }) => wanted.kinds.has(kind) && isIn(from) && isIn(to));
  }, [all, [...wanted.kinds].join(), wanted.category]);
  useEffect(() => {
    void import('../map-view.js').then(
      (found) => setDrawing(found.canDraw() ? found : 'none'),
      () => setDrawing('none'),
    );
  }, []);
  const set = (change: Partial<Wanted>) => go(addressOf({ ...wanted, ...change }), true);
  const toggled = (kind: Kind) => {
    const kinds = new Set(wanted.kinds);
    if (!kinds.delete(kind)) kinds.add(kind);
    set({ kinds });
  };
  const isTable = wanted.view === 'table' || drawing === 'none';
  return (
    <>
      <Tabs
        current={isTable ? 'table' : 'map'}
        tabs={[
          ['map', 'Map', addressOf({ ...wanted, view: undefined })],
          ['table', 'Table', addressOf({ ...wanted, view: 'table' })],
        ]}
      />
      <form class="filters" role="search" onSubmit={(event) => event.preventDefault()}>
        <Text
          label="Find a tool"
          value={wanted.tool}
          onChange={(tool) => set({ tool })}
          list={graph.tools.slice(0, 1000).map(({ name }) => name)}
          class="grow"
        />
        <Choice
          label="Category"
          value={wanted.category}
          onChange={(category) => set({ category })}
          options={[['', 'all'], ...categories.map((name) => [name, saysOf(name)] as const)]}
        />
        <fieldset class="kinds">
          <legend class="unseen">Kinds of connections</legend>
          {KINDS.map((kind) => (
            <label key={kind} class="check">
              <input type="checkbox" checked={wanted.kinds.has(kind)} onChange={() => toggled(kind)} />
              <span class={`stroke ${kind}`} aria-hidden="true" />
              {kind}s
            </label>
          ))}
        </fieldset>
      </form>
      {!graph.tools.some(({ name }) => name.includes(wanted.tool)) && (
        <p class="fault" role="status">
          There is no tool <code>{wanted.tool}</code>.
        </p>
      )}
      {drawing === 'none' && wanted.view !== 'table' && (
        <p class="fault">
          <Badge tone="info">No map</Badge> This browser has no WebGL, which the map is drawn with; the table says the
          same.
        </p>
      )}
      {isTable ? (
        <Connections found={seen} tool={wanted.tool} all={all.length} />
      ) : (
        <Card
          title={`${many(graph.tools.length, 'tool')}, ${many(seen.length, 'connection')}`}
          {...(graph.relations_total > graph.relations.length && {
            note: `of ${count(graph.relations_total)} declared ones the first ${count(graph.relations.length)}`,
          })}
        >
          {drawing === undefined ? (
            <div class="map waiting">Loading the map …</div>
          ) : (
            <Drawn
              drawing={drawing}
              graph={graph}
              all={all}
              categories={categories}
              wanted={wanted}
              onSelect={(tool) => set({ tool: tool ?? '' })}
            />
          )}
        </Card>
      )}
      {categoryOf.has(wanted.tool) && (
        <One
          tool={wanted.tool}
          category={categoryOf.get(wanted.tool) ?? ''}
          all={all}
          onSelect={(tool) => set({ tool })}
        />
      )}
    </>
  );
}

/** How far an arrow key moves, as a share of what is seen, and how much nearer a step is. */
const STEP = 0.12;
const NEARER = 1.4;

function Drawn({
  drawing,
  graph,
  all,
  categories,
  wanted,
  onSelect,
}: {
  drawing: Drawing;
  graph: RelationGraph;
  all: readonly Connection[];
  categories: readonly string[];
  wanted: Wanted;
  onSelect: (tool: string | undefined) => void;
}) {
  const place = useRef<HTMLDivElement>(null);
  const view = useRef<MapView | undefined>(undefined);
  const chosen = useRef<string | undefined>(undefined);
  const latest = useRef(onSelect);
  latest.current = onSelect;
  const [zoom, setZoom] = useState(1);
  const [isPlaced, setPlaced] = useState(false);
  const [scheme, setScheme] = useState(0);
  useEffect(() => {
    const query = matchMedia('(prefers-color-scheme: dark)');
    const changed = () => setScheme((round) => round + 1);
    query.addEventListener('change', changed);
    return () => query.removeEventListener('change', changed);
  }, []);
  // What a reload of documents did not change is not drawn anew, so that nothing jumps.
  const same = useMemo(() => JSON.stringify([graph.tools, all.map(({ kind, from, to }) => [kind, from, to])]), [all]);
  useEffect(() => {
    if (place.current === null) return undefined;
    setPlaced(false);
    const made = new drawing.MapView(
      place.current,
      { tools: graph.tools, connections: all, categories },
      {
        onSelect: (tool) => {
          chosen.current = tool;
          latest.current(tool);
        },
        onZoom: setZoom,
        onPlaced: () => setPlaced(true),
      },
    );
    view.current = made;
    return () => made.end();
  }, [same, scheme]);
  useEffect(
    () => view.current?.filter(wanted.kinds, wanted.category),
    [same, scheme, wanted.kinds.size, [...wanted.kinds].join(), wanted.category],
  );
  useEffect(() => {
    // Who clicked on it sees it already.
    view.current?.select(wanted.tool || undefined, chosen.current !== wanted.tool);
    chosen.current = undefined;
  }, [same, scheme, wanted.tool, isPlaced]);
  const keys: Record<string, () => void> = {
    ArrowLeft: () => view.current?.pan(-STEP, 0),
    ArrowRight: () => view.current?.pan(STEP, 0),
    ArrowUp: () => view.current?.pan(0, STEP),
    ArrowDown: () => view.current?.pan(0, -STEP),
    '+': () => view.current?.zoom(NEARER),
    '=': () => view.current?.zoom(NEARER),
    '-': () => view.current?.zoom(1 / NEARER),
    '0': () => view.current?.whole(),
  };
  const shownZoom = share(zoom);
  return (
    <>
      <div
        class="map"
        ref={place}
        role="application"
        tabIndex={0}
        aria-label={`Map of ${many(graph.tools.length, 'tool')}; arrow keys move it, plus and minus zoom, 0 shows all of it. The table has the same.`}
        data-placed={isPlaced}
        onKeyDown={(event) => {
          const act = event.ctrlKey || event.metaKey || event.altKey ? undefined : keys[event.key];
          if (act === undefined) return;
          event.preventDefault();
          act();
        }}
      />
      <div class="map-foot">
        <div class="actions">
          <button type="button" class="button small" onClick={() => view.current?.zoom(NEARER)}>
            Nearer
          </button>
          <button type="button" class="button small" onClick={() => view.current?.zoom(1 / NEARER)}>
            Farther
          </button>
          <button type="button" class="button small" onClick={() => view.current?.whole()}>
            All of it
          </button>
          <output class="sub" aria-label="Zoom">
            {shownZoom}
          </output>
        </div>
        <ul class="legend" aria-label="Categories">
          {categories.slice(0, 14).map((name, index) => (
            <li key={name}>
              <svg viewBox="0 0 10 10" aria-hidden="true">
                <circle cx="5" cy="5" r="5" fill={drawing.categoryColour(index, categories.length)} />
              </svg>
              {saysOf(name)}
            </li>
          ))}
          {categories.length > 14 && <li>and {categories.length - 14} more</li>}
        </ul>
      </div>
    </>
  );
}

/** The connections of one tool, by what they say. */
function One({
  tool,
  category,
  all,
  onSelect,
}: {
  tool: string;
  category: string;
  all: readonly Connection[];
  onSelect: (tool: string) => void;
}) {
  const mine = all.filter(({ from, to }) => from === tool || to === tool);
  return (
    <Card title={<ToolLink name={tool} />} note={saysOf(category)}>
      {mine.length === 0 && <p>Nothing is known to go with it, and nothing was called before or after it.</p>}
      <div class="parts">
        {KINDS.filter((kind) => mine.some((one) => one.kind === kind)).map((kind) => (
          <div class="part" key={kind}>
            <h3>{many(mine.filter((one) => one.kind === kind).length, kind)}</h3>
            <ul class="chips">
              {mine
                .filter((one) => one.kind === kind)
                .slice(0, 40)
                .map(({ from, to }) => {
                  const other = from === tool ? to : from;
                  return (
                    <li key={`${from} ${to}`}>
                      <button type="button" class="link" onClick={() => onSelect(other)}>
                        {kind === 'transition' && (from === tool ? 'then ' : 'after ')}
                        {kind === 'alternative' && to === tool && 'of '}
                        {other}
                      </button>
                    </li>
                  );
                })}
            </ul>
          </div>
        ))}
      </div>
    </Card>
  );
}

function Connections({ found, tool, all }: { found: readonly Connection[]; tool: string; all: number }) {
  const rows = tool === '' ? found : found.filter(({ from, to }) => from.includes(tool) || to.includes(tool));
  const columns: Column<Connection>[] = [
    { head: 'Tool', cell: ({ from }) => <ToolLink name={from} /> },
    { head: 'Kind', cell: ({ kind }) => <Badge tone={TONES[kind]}>{kind}</Badge> },
    { head: 'Says that it', cell: ({ kind }) => SAYS[kind], isExtra: true },
    { head: 'Tool there', cell: ({ to }) => <ToolLink name={to} /> },
    { head: 'Calls', cell: ({ kind, calls }) => (kind === 'transition' ? count(calls) : '–'), isNumber: true },
    {
      head: 'Of what followed',
      cell: ({ kind, share: part }) => (kind === 'transition' ? share(part) : '–'),
      isNumber: true,
      isExtra: true,
    },
  ];
  return (
    <Card
      title={many(rows.length, 'connection')}
      note={rows.length > SHOWN ? `the first ${SHOWN} are shown` : `of ${count(all)}`}
    >
      {rows.length === 0 ? (
        <p>No two tools are connected so.</p>
      ) : (
        <Table
          caption="Connections"
          columns={columns}
          rows={rows.slice(0, SHOWN)}
          keyOf={({ kind, from, to }) => `${kind} ${from} ${to}`}
        />
      )}
    </Card>
  );
}
