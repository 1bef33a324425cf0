/** An MCP server of a few tools, for tests: `slow` takes as long as it is told to, and `greet` says what `SAYS` has. */

import { createInterface } from 'node:readline';

const tool = (name, description) => ({
  name,
  description,
  inputSchema: { type: 'object' },
});
const TOOLS = [tool('greet', process.env['SAYS'] ?? 'Greets.'), tool('slow', 'Takes its time.')];

const say = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);

const ANSWERS = {
  initialize: () => ({
    protocolVersion: '2025-06-18',
    capabilities: { tools: {} },
    serverInfo: { name: 'tests', version: '1' },
  }),
  ping: () => ({}),
  'tools/list': () => ({ tools: TOOLS }),
};

createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) return;
  if (method === 'tools/call') {
    const result = { content: [{ type: 'text', text: 'done' }] };
    setTimeout(() => say({ id, result }), params.arguments?.ms ?? 0);
    return;
  }
  const answer = ANSWERS[method];
  say(answer === undefined ? { id, error: { code: -32601, message: `no ${method}` } } : { id, result: answer() });
});
