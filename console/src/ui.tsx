/** The parts that pages are made of. Texts of the daemon are children, so that they are shown as text, whatever they say. */

import { type ComponentChildren, Fragment } from 'preact';
import { useEffect, useId, useRef, useState } from 'preact/hooks';

import { type ExecutionItem, ROOT, sentence } from './api.js';
import type { Asked } from './ask.js';
import { duration, moment } from './format.js';
import { useConnection } from './live.js';
import { link } from './router.js';

export type Tone = 'good' | 'warn' | 'bad' | 'quiet' | 'info';

/** Signs beside colours, since no colour carries meaning alone. */
const SIGNS: Record<Tone, string> = { good: '✓', warn: '!', bad: '✕', quiet: '·', info: 'i' };

export function Page({
  title,
  lead,
  actions,
  children,
}: {
  title: ComponentChildren;
  lead?: ComponentChildren;
  actions?: ComponentChildren;
  children: ComponentChildren;
}) {
  return (
    <>
      <header class="page-head">
        <div>
          <h1 tabIndex={-1}>{title}</h1>
          {lead !== undefined && <p class="lead">{lead}</p>}
        </div>
        {actions}
      </header>
      {children}
    </>
  );
}

export function Card({
  title,
  note,
  children,
  class: extra,
}: {
  title?: ComponentChildren;
  note?: ComponentChildren;
  children: ComponentChildren;
  class?: string;
}) {
  return (
    <section class={`card ${extra ?? ''}`}>
      {title !== undefined && (
        <div class="card-head">
          <h2>{title}</h2>
          {note !== undefined && <span class="note">{note}</span>}
        </div>
      )}
      {children}
    </section>
  );
}

export function Badge({ tone, children }: { tone: Tone; children: ComponentChildren }) {
  return (
    <span class={`badge ${tone}`}>
      <span aria-hidden="true">{SIGNS[tone]}</span> {children}
    </span>
  );
}

/** A tool's name, linked to what it is. */
export function ToolLink({ name }: { name: string }) {
  return (
    <a href={link('tools', name)}>
      <ToolName name={name} />
    </a>
  );
}

/** A tool's name, which is broken between its words if it has to be. */
export function ToolName({ name }: { name: string }) {
  return (
    <code>
      {name.split(/(?<=_)/).map((part, index) => (
        <Fragment key={index}>
          {index > 0 && <wbr />}
          {part}
        </Fragment>
      ))}
    </code>
  );
}

/** A session's name, linked to what it did; a dash without one. */
export function SessionLink({ id }: { id: string | null | undefined }) {
  if (id == null) return <>–</>;
  return (
    <a href={link('sessions', id)}>
      <code>{id}</code>
    </a>
  );
}

/** How a call ended. */
export function Outcome({ outcome }: { outcome: string }) {
  return <Badge tone={outcome === 'success' ? 'good' : outcome === 'timeout' ? 'warn' : 'bad'}>{outcome}</Badge>;
}

/** What was said of a call before it was learnt, with a sign if it ended outside what nine in ten should. */
export function Forecast({ call }: { call: ExecutionItem }) {
  const { predicted_ms: said, duration_ms: took } = call;
  if (said == null) return <>–</>;
  const [low = 0, , middle = 0, , high = 0] = said;
  const isOutside = call.outcome !== 'timeout' && took != null && (took < low || took > high);
  return (
    <span title={`nine in ten: ${duration(low)} to ${duration(high)}`}>
      {duration(middle)}
      {isOutside && <span class="unseen"> and it ended outside the interval</span>}
      {isOutside && <span aria-hidden="true"> !</span>}
    </span>
  );
}

/** How agents record a call, where none was. */
export function RecordSo({
  tool = 'web_search',
  session,
  children,
}: {
  tool?: string;
  session?: string;
  children: ComponentChildren;
}) {
  const call = { tool_name: tool, duration_ms: 1200, ...(session !== undefined && { session_id: session }) };
  return <Empty command={posting('v1/executions', call)}>{children}</Empty>;
}

/** The command that sends this, wherever the daemon is. */
export function posting(path: string, body: unknown): string {
  return `curl ${new URL(path, ROOT)} -H 'content-type: application/json' \\\n  -d '${JSON.stringify(body)}'`;
}

export function Chips({ items, label }: { items: readonly string[]; label?: string }) {
  if (items.length === 0) return null;
  return (
    <ul class="chips" aria-label={label}>
      {items.map((item) => (
        <li key={item}>{item}</li>
      ))}
    </ul>
  );
}

/** Why there is nothing, and what would fill it. */
export function Empty({ children, command }: { children: ComponentChildren; command?: string }) {
  return (
    <div class="empty">
      <p>{children}</p>
      {command !== undefined && <pre tabIndex={0}>{command}</pre>}
    </div>
  );
}

export function Fault({ error }: { error: unknown }) {
  if (error === undefined) return null;
  return (
    <p class="fault" role="alert">
      <Badge tone="bad">Not done</Badge> {sentence(error)}
    </p>
  );
}

/** What was asked: its answer, what went wrong, or that it is on its way. */
export function Shown<T>({ asked, children }: { asked: Asked<T>; children: (answer: T) => ComponentChildren }) {
  if (asked.answer !== undefined) return <>{children(asked.answer)}</>;
  if (asked.error !== undefined) return <Fault error={asked.error} />;
  return <Waiting />;
}

export function Waiting() {
  const isSilent = useConnection() === 'silent';
  return <p class="waiting">{isSilent ? 'The daemon was asked and does not answer.' : 'Asking the daemon …'}</p>;
}

export function Tile({
  label,
  value,
  note,
  href,
  tone,
}: {
  label: string;
  value: ComponentChildren;
  note?: ComponentChildren;
  href?: string;
  tone?: Tone;
}) {
  const body = (
    <>
      <span class="tile-label">{label}</span>
      <span class="tile-value">{value}</span>
      {note !== undefined && <span class={`tile-note ${tone ?? ''}`}>{note}</span>}
    </>
  );
  return href === undefined ? (
    <div class="tile">{body}</div>
  ) : (
    <a class="tile" href={href}>
      {body}
    </a>
  );
}

export interface Column<T> {
  head: string;
  cell: (row: T) => ComponentChildren;
  isNumber?: boolean;
  /** Left out where the page is narrow. */
  isExtra?: boolean;
  class?: string;
}

export function Table<T>({
  caption,
  columns,
  rows,
  keyOf,
}: {
  caption: string;
  columns: readonly Column<T>[];
  rows: readonly T[];
  keyOf: (row: T, index: number) => string | number;
}) {
  const classOf = (column: Column<T>) =>
    [column.isNumber && 'number', column.isExtra && 'extra', column.class].filter(Boolean).join(' ');
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={caption}>
      <table>
        <caption class="unseen">{caption}</caption>
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column.head} scope="col" class={classOf(column)}>
                {column.head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, index) => (
            <tr key={keyOf(row, index)}>
              {columns.map((column) => (
                <td key={column.head} class={classOf(column)}>
                  {column.cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

export function Field({
  label,
  children,
  class: extra,
}: {
  label: string;
  children: (id: string) => ComponentChildren;
  class?: string;
}) {
  const id = useId();
  return (
    <div class={`field ${extra ?? ''}`}>
      <label for={id}>{label}</label>
      {children(id)}
    </div>
  );
}

export function Text({
  label,
  value,
  onChange,
  placeholder,
  class: extra,
  list,
  type = 'text',
}: {
  label: string;
  value: string;
  onChange: (value: string) => void;
  placeholder?: string;
  class?: string;
  list?: readonly string[];
  type?: 'text' | 'search' | 'number' | 'password';
}) {
  const options = useId();
  return (
    <Field label={label} {...(extra !== undefined && { class: extra })}>
      {(id) => (
        <>
          <input
            id={id}
            type={type as 'text'}
            value={value}
            placeholder={placeholder ?? ''}
            autocomplete={type === 'password' ? 'current-password' : 'off'}
            {...(list !== undefined && { list: options })}
            onInput={(event) => onChange(event.currentTarget.value)}
          />
          {list !== undefined && (
            <datalist id={options}>
              {list.map((item) => (
                <option key={item} value={item} />
              ))}
            </datalist>
          )}
        </>
      )}
    </Field>
  );
}

export function Choice({
  label,
  value,
  options,
  onChange,
}: {
  label: string;
  value: string;
  options: readonly (readonly [value: string, text: string])[];
  onChange: (value: string) => void;
}) {
  return (
    <Field label={label}>
      {(id) => (
        <select id={id} value={value} onChange={(event) => onChange(event.currentTarget.value)}>
          {options.map(([option, text]) => (
            <option key={option} value={option}>
              {text}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}

/** Tabs as links, so that each has an address. */
export function Tabs({
  tabs,
  current,
}: {
  tabs: readonly (readonly [id: string, text: string, href: string])[];
  current: string;
}) {
  return (
    <nav class="tabs" aria-label="Parts of this page">
      {tabs.map(([id, text, href]) => (
        <a key={id} href={href} aria-current={id === current ? 'page' : undefined}>
          {text}
        </a>
      ))}
    </nav>
  );
}

export function Time({ at }: { at: string }) {
  return (
    <time dateTime={at} title={at}>
      {moment(at)}
    </time>
  );
}

export function Json({ value }: { value: unknown }) {
  return <pre tabIndex={0}>{typeof value === 'string' ? value : JSON.stringify(value, null, 2)}</pre>;
}

/** A bar of a share, 0 to 1, with its number. */
export function Bar({ value, label, tone }: { value: number; label: string; tone?: Tone }) {
  const width = Math.max(0, Math.min(1, value)) * 100;
  return (
    <span class="bar-cell">
      <svg class={`bar ${tone ?? ''}`} viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">
        <rect width="100" height="6" class="bar-back" />
        <rect width={width} height="6" class="bar-front" />
      </svg>
      <span>{label}</span>
    </span>
  );
}

/** Asks before something is changed. */
export function Confirm({
  label,
  question,
  detail,
  onYes,
  isDanger,
  disabled,
}: {
  label: string;
  question: string;
  detail: ComponentChildren;
  onYes: () => void;
  isDanger?: boolean;
  disabled?: boolean;
}) {
  const [isOpen, setOpen] = useState(false);
  const dialog = useRef<HTMLDialogElement>(null);
  const title = useId();
  useEffect(() => {
    if (isOpen) dialog.current?.showModal();
  }, [isOpen]);
  const close = () => {
    dialog.current?.close();
    setOpen(false);
  };
  return (
    <>
      <button type="button" class="button" disabled={disabled ?? false} onClick={() => setOpen(true)}>
        {label}
      </button>
      {isOpen && (
        <dialog ref={dialog} aria-labelledby={title} onClose={() => setOpen(false)}>
          <h2 id={title}>{question}</h2>
          <div>{detail}</div>
          <div class="dialog-actions">
            <button type="button" class="button" onClick={close}>
              Cancel
            </button>
            <button
              type="button"
              class={`button ${isDanger === true ? 'danger' : 'primary'}`}
              onClick={() => (close(), onYes())}
            >
              {label}
            </button>
          </div>
        </dialog>
      )}
    </>
  );
}
