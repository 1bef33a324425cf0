/** Renders the daemon's OpenAPI document as TypeScript: an interface per schema, and a table of all operations. */

/** As much of a JSON Schema as the daemon uses. */
interface Schema {
  $ref?: string;
  type?: string | string[];
  description?: string;
  const?: unknown;
  enum?: unknown[];
  anyOf?: Schema[];
  oneOf?: Schema[];
  allOf?: Schema[];
  properties?: Record<string, Schema>;
  required?: string[];
  additionalProperties?: boolean | Schema;
  items?: Schema | boolean;
  minItems?: number;
  maxItems?: number;
}

interface Content {
  content?: Record<string, { schema?: Schema }>;
}

interface Operation {
  operationId: string;
  summary: string;
  parameters: { name: string; in: string; required: boolean; description?: string; schema: Schema }[];
  requestBody?: Content;
  responses: Record<string, Content>;
  'x-almanac-door'?: string;
}

/** As much of an OpenAPI document as the daemon writes. */
export interface OpenApi {
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, Schema> };
}

const HEAD = `// Made from the daemon's OpenAPI document by \`npm run generate\`; edits are lost.
`;

/** The whole module. Its order is the names', so that it changes only where the document does. */
export function render(document: OpenApi): string {
  const schemas = sorted(document.components.schemas).map(([name, schema]) => declaration(name, schema));
  const operations = Object.entries(document.paths)
    .flatMap(([path, methods]) => Object.entries(methods).map(([method, operation]) => ({ path, method, operation })))
    // A page for people: no program has a use for where it leads.
    .filter(({ operation }) => !('302' in operation.responses))
    .sort((a, b) => compare(a.operation.operationId, b.operation.operationId));
  const types = operations.map(({ operation }) =>
    described(operation, `  ${operation.operationId}: ${exchange(operation)};`, '  '),
  );
  const table = operations.map(({ path, method, operation }) => {
    const sends = Object.keys(operation.requestBody?.content ?? {})[0];
    const type = sends === undefined ? '' : `, sends: '${sends}'`;
    const also = furtherAnswers(operation);
    const further = also.length === 0 ? '' : `, answers: [${also.join(', ')}]`;
    return `  ${operation.operationId}: { method: '${method.toUpperCase()}', path: '${path}'${type}${form(operation)}${further} },`;
  });
  return [
    HEAD,
    ...schemas,
    '/** What each operation takes and answers. */',
    'export interface Operations {',
    ...types,
    '}\n',
    '/** Where each operation is. */',
    'export const OPERATIONS = {',
    ...table,
    '} as const;\n',
  ].join('\n');
}

function exchange(operation: Operation): string {
  const fields = ['path', 'query'].flatMap((place) => {
    const parameters = operation.parameters.filter((parameter) => parameter.in === place);
    if (parameters.length === 0) return [];
    const optional = parameters.some((parameter) => parameter.required) ? '' : '?';
    const members = parameters.map((parameter) => {
      const type = typeOf(parameter.schema, '        ');
      // As cursors come: null and undefined are left out.
      const isLeftOut = place === 'query' && !parameter.required;
      const text = `${key(parameter.name)}${parameter.required ? '' : '?'}: ${type}${isLeftOut ? ' | null | undefined' : ''};`;
      return described(parameter, `        ${text}`, '        ');
    });
    return [`      ${place}${optional}: {\n${members.join('\n')}\n      };`];
  });
  const sent = Object.values(operation.requestBody?.content ?? {})[0];
  if (sent !== undefined) fields.push(`      body: ${typeOf(sent.schema ?? {}, '      ')};`);
  const request = fields.length === 0 ? 'Record<never, never>' : `{\n${fields.join('\n')}\n    }`;
  return `{\n    request: ${request};\n    answer: ${answer(operation)};\n  }`;
}

/** How the answer is read, if it is no JSON. */
function form(operation: Operation): string {
  const isStream = Object.keys(operation.responses['200']?.content ?? {})[0] === 'text/event-stream';
  if (isStream) return ', isEvents: true';
  return answer(operation) === 'string' ? ', isText: true' : '';
}

/** Statuses beside 2xx with an answer instead of a problem. */
function furtherAnswers({ responses }: Operation): string[] {
  const isAnswer = ([status, { content }]: [string, Content]) =>
    /^[45]\d\d$/.test(status) && content?.['application/json'];
  return Object.entries(responses)
    .filter(isAnswer)
    .map(([status]) => status);
}

/** What the operation answers if all goes well: JSON of a schema, or text. */
function answer(operation: Operation): string {
  const good = Object.entries(operation.responses).filter(([status]) => status.startsWith('2'));
  const types = good.map(([, response]) => {
    const [type, content] = Object.entries(response.content ?? {})[0] ?? [];
    if (type === undefined) return 'undefined';
    return type.includes('json') ? typeOf(content?.schema ?? {}, '    ') : 'string';
  });
  return union(types);
}

function declaration(name: string, schema: Schema): string {
  const isInterface = schema.properties !== undefined && schema.anyOf === undefined && schema.oneOf === undefined;
  const text = isInterface
    ? `export interface ${name} ${object(schema, '')}\n`
    : `export type ${name} = ${typeOf(schema, '')};\n`;
  return described(schema, text, '');
}

function typeOf(schema: Schema, indent: string): string {
  if (schema.$ref !== undefined) return schema.$ref.slice(schema.$ref.lastIndexOf('/') + 1);
  if (schema.const !== undefined) return literal(schema.const);
  if (schema.enum !== undefined) return union(schema.enum.map(literal));
  const choices = schema.anyOf ?? schema.oneOf;
  const types = choices === undefined ? plainTypes(schema, indent) : choices.map((choice) => typeOf(choice, indent));
  const all = (schema.allOf ?? []).map((part) => typeOf(part, indent));
  // An object beside a choice, as tagged and flattened types have it.
  if (choices !== undefined && schema.properties !== undefined) all.push(object(schema, indent));
  const own = union(types);
  if (all.length === 0) return own;
  return own === 'unknown' ? all.join(' & ') : [grouped(own), ...all].join(' & ');
}

function plainTypes(schema: Schema, indent: string): string[] {
  const types = [schema.type ?? []].flat();
  if (types.length === 0) return [schema.properties === undefined ? 'unknown' : object(schema, indent)];
  return types.map((type) => {
    switch (type) {
      case 'integer':
      case 'number':
        return 'number';
      case 'array':
        return array(schema, indent);
      case 'object':
        return object(schema, indent);
      default:
        return type;
    }
  });
}

function array({ items, minItems, maxItems }: Schema, indent: string): string {
  const item = typeof items === 'object' ? typeOf(items, indent) : 'unknown';
  const isTuple = minItems !== undefined && minItems === maxItems && minItems > 0 && minItems <= 4;
  if (isTuple) return `[${Array(minItems).fill(item).join(', ')}]`;
  return `${grouped(item)}[]`;
}

function object(schema: Schema, indent: string): string {
  const { properties, additionalProperties: other } = schema;
  const others = typeof other === 'object' ? typeOf(other, indent) : 'unknown';
  if (properties === undefined) return `Record<string, ${others}>`;
  const required = new Set(schema.required);
  const members = Object.entries(properties).map(([name, property]) => {
    const text = `${indent}  ${key(name)}${required.has(name) ? '' : '?'}: ${typeOf(property, `${indent}  `)};`;
    return described(property, text, `${indent}  `);
  });
  if (other !== undefined && other !== false) members.push(`${indent}  [key: string]: unknown;`);
  return `{\n${members.join('\n')}\n${indent}}`;
}

function described(of: { description?: string; summary?: string }, text: string, indent: string): string {
  // Links of the daemon's own documentation lead nowhere here.
  const said = (of.summary ?? of.description ?? '')
    .replace(/\[(`[^`]+`)\]/g, '$1')
    .replaceAll('*/', '*\\/')
    .trim();
  if (said === '') return text;
  const lines = said.split('\n');
  if (lines.length === 1) return `${indent}/** ${said} */\n${text}`;
  return `${indent}/**\n${lines.map((line) => `${indent} * ${line}`.trimEnd()).join('\n')}\n${indent} */\n${text}`;
}

function union(types: string[]): string {
  const each = [...new Set(types)];
  if (each.includes('unknown') || each.length === 0) return 'unknown';
  return each.join(' | ');
}

function grouped(type: string): string {
  return / [|&] /.test(type) && !type.startsWith('{') ? `(${type})` : type;
}

function literal(value: unknown): string {
  const text = JSON.stringify(value);
  return typeof value === 'string' && !/['\\]/.test(value) ? `'${value}'` : text;
}

function key(name: string): string {
  return /^[A-Za-z_$][\w$]*$/.test(name) ? name : JSON.stringify(name);
}

function sorted<T>(record: Record<string, T>): [string, T][] {
  return Object.entries(record).sort(([a], [b]) => compare(a, b));
}

/** By code units: the machine's language must not show. */
function compare(a: string, b: string): number {
  return a < b ? -1 : Number(a > b);
}
