/** A state as after some time of use, made through the public calls. The same each time. */

const TOOLS = [
  ['web_search', 1400],
  ['scrape_webpage', 2600],
  ['http_request', 700],
  ['reasoning_divergent', 9000],
  ['reasoning_linear', 6000],
  ['read_file', 90],
];
const MODES = { web_search: ['news', 'images'] };
const MESSAGES = [
  'search the web for news about chips',
  'read the first hit and tell me what it says',
  'compare the two vendors step by step',
  'write that into a file',
  'what is the weather in Rome',
];

/** Numbers that look random and are the same each time. */
function numbers(seed) {
  let state = seed;
  return () => {
    state = (state * 1664525 + 1013904223) % 4294967296;
    return state / 4294967296;
  };
}

export async function post(url, path, body, headers = {}) {
  const answer = await fetch(url + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  });
  if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
  return answer.json();
}

/** The version of MCP that is spoken here. */
const VERSION = '2026-07-28';

/** Calls a tool of a server behind the daemon; nothing comes of it if the daemon ends before. */
export async function callTool(url, name, given, headers = {}) {
  const meta = {
    'io.modelcontextprotocol/protocolVersion': VERSION,
    'io.modelcontextprotocol/clientInfo': { name: 'tests', version: '1' },
    'io.modelcontextprotocol/clientCapabilities': {},
  };
  const params = { name, arguments: given, _meta: meta };
  const ofEra = { 'mcp-protocol-version': VERSION, 'mcp-method': 'tools/call', 'mcp-name': name };
  const accept = 'application/json, text/event-stream';
  const body = { jsonrpc: '2.0', id: 1, method: 'tools/call', params };
  await post(url, '/mcp', body, { accept, ...ofEra, ...headers }).catch(() => undefined);
}

/** Records so many calls of so many sessions, and keeps so many memories. */
export async function prepare(url, { calls = 300, sessions = 20, memories = 60, headers = {} } = {}) {
  const next = numbers(7);
  const normal = () => Math.sqrt(-2 * Math.log(next() || 1e-9)) * Math.cos(2 * Math.PI * next());
  const now = Date.now();
  for (let session = 0; session < sessions; session += 1) {
    const sessionId = `session-${String(session).padStart(3, '0')}`;
    await post(url, '/v1/qualify', { message: MESSAGES[session % MESSAGES.length], sessionId }, headers);
    await post(
      url,
      '/v1/usage',
      {
        sessionId,
        tokensIn: Math.round(8000 + next() * 40000),
        tokensOut: Math.round(300 + next() * 900),
        prices: { input: 3, output: 15 },
      },
      headers,
    );
  }
  let batch = [];
  for (let call = 0; call < calls; call += 1) {
    const [tool, typical] = TOOLS[Math.floor(next() * TOOLS.length)];
    const modes = MODES[tool];
    const drift = tool === 'http_request' && call > calls * 0.7 ? 2.5 : 1;
    const roll = next();
    const outcome = roll < 0.04 ? 'error' : roll < 0.06 ? 'timeout' : 'success';
    batch.push({
      tool_name: tool,
      ...(modes && { mode_name: modes[Math.floor(next() * modes.length)] }),
      duration_ms: Math.max(1, Math.round(typical * drift * Math.exp(0.45 * normal()))),
      outcome,
      session_id: `session-${String(Math.floor((call / calls) * sessions)).padStart(3, '0')}`,
      timestamp: now - Math.round((calls - call) * (86_400_000 / calls)),
    });
    if (batch.length === 500 || call === calls - 1) {
      await post(url, '/v1/executions', batch, headers);
      batch = [];
    }
  }
  for (let memory = 0; memory < memories; memory += 1) {
    const thread = Math.floor(memory / 12);
    await post(
      url,
      '/v1/memories/messages',
      {
        content: `${MESSAGES[memory % MESSAGES.length]} (${memory})`,
        metadata: {
          role: memory % 2 === 0 ? 'user' : 'assistant',
          userId: 'user:user:ada',
          agentId: 'agent:agent:helper',
          chatId: `chat:chat:c${thread}`,
          // A gap in each thread, as when a message was lost.
          thread: {
            id: `thread-${thread}`,
            position: (memory % 12) + (memory % 12 > 6 ? 2 : 0),
          },
        },
      },
      headers,
    );
  }
}
