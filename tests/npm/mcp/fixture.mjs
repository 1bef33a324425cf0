// The server that the conformance suite expects, on the published SDK: `fixture.mjs stdio`, or `fixture.mjs http`, which
// prints its address. `ERA=legacy` or `ERA=modern` makes it speak that era alone; with `TASKS=1` it has slow tools alone.
import { randomUUID, randomBytes } from 'node:crypto';
import { createServer } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import {
    NodeStreamableHTTPServerTransport, hostHeaderValidation, originValidation, toNodeHandler, toWebRequest,
} from '@modelcontextprotocol/node';
import {
    Server, createMcpHandler, createRequestStateCodec, inputRequired, isLegacyRequest, ProtocolError,
} from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';

const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const WAV = 'UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=';

const text = (text) => ({ content: [{ type: 'text', text }] });
const object = (properties = {}, required = []) => ({ type: 'object', properties, required });
const resource = (uri, mimeType, text) => ({ type: 'resource', resource: { uri, mimeType, text } });
const form = (message, properties, required = Object.keys(properties)) =>
    ({ message, requestedSchema: object(properties, required) });
const asked = (message, properties, required) =>
    ({ method: 'elicitation/create', params: { mode: 'form', ...form(message, properties, required) } });
const sampled = (text, maxTokens = 100) =>
    ({ method: 'sampling/createMessage', params: { messages: [{ role: 'user', content: { type: 'text', text } }], maxTokens } });
const roots = { method: 'roots/list', params: {} };

const states = createRequestStateCodec({ key: randomBytes(32) });

const schema2020 = {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    type: 'object',
    $defs: { address: {
        $anchor: 'addressDef', type: 'object',
        properties: { street: { type: 'string' }, city: { type: 'string' } },
    } },
    properties: {
        name: { type: 'string' }, address: { $ref: '#/$defs/address' },
        contactMethod: { type: 'string', enum: ['phone', 'email'] }, phone: { type: 'string' }, email: { type: 'string' },
    },
    allOf: [{ anyOf: [{ required: ['phone'] }, { required: ['email'] }] }],
    if: { properties: { contactMethod: { const: 'phone' } }, required: ['contactMethod'] },
    then: { required: ['phone'] },
    else: { required: ['email'] },
    additionalProperties: false,
};

const simple = {
    test_simple_text: () => text('This is a simple text response for testing.'),
    test_image_content: () => ({ content: [{ type: 'image', data: PNG, mimeType: 'image/png' }] }),
    test_audio_content: () => ({ content: [{ type: 'audio', data: WAV, mimeType: 'audio/wav' }] }),
    test_embedded_resource: () =>
        ({ content: [resource('test://embedded-resource', 'text/plain', 'This is an embedded resource content.')] }),
    test_multiple_content_types: () => ({ content: [
        { type: 'text', text: 'Multiple content types test:' },
        { type: 'image', data: PNG, mimeType: 'image/png' },
        resource('test://mixed-content-resource', 'application/json', '{"test":"data","value":123}'),
    ] }),
    test_error_handling: () => ({ ...text('This tool intentionally returns an error for testing'), isError: true }),
    json_schema_2020_12_tool: () => text('ok'),
    test_trigger_tool_change: (_, { changed }) => (changed('tools'), text('changed')),
    test_trigger_prompt_change: (_, { changed }) => (changed('prompts'), text('changed')),
    test_x_mcp_header: ({ region }) => text(`region ${region}`),
    async test_tool_with_progress(_, { ctx }) {
        const token = ctx.mcpReq._meta?.progressToken;
        for (const progress of [0, 50, 100]) {
            if (token !== undefined) {
                const params = { progressToken: token, progress, total: 100 };
                await ctx.mcpReq.notify({ method: 'notifications/progress', params });
            }
            await sleep(50);
        }
        return text('progressed');
    },
    // Until it is cancelled, which it says on its stderr.
    async test_cancel(_, { ctx }) {
        await new Promise((done) => ctx.mcpReq.signal.addEventListener('abort', done, { once: true }));
        process.stderr.write('heard the cancellation\n');
        return text('cancelled');
    },
};

const legacy = {
    async test_tool_with_logging(_, { ctx }) {
        for (const data of ['Tool execution started', 'Tool processing data', 'Tool execution completed']) {
            await ctx.mcpReq.notify({ method: 'notifications/message', params: { level: 'info', data } });
            await sleep(50);
        }
        return text('logged');
    },
    async test_sampling({ prompt }, { ctx }) {
        const result = await ctx.mcpReq.send(sampled(prompt));
        return text(`LLM response: ${result.content.text}`);
    },
    async test_elicitation({ message }, { ctx }) {
        const properties = {
            username: { type: 'string', description: "User's response" },
            email: { type: 'string', description: "User's email address" },
        };
        const answer = await ctx.mcpReq.send(asked(message, properties));
        return text(`User response: action: ${answer.action}, content: ${JSON.stringify(answer.content)}`);
    },
    async test_elicitation_sep1034_defaults(_, { ctx }) {
        const answer = await ctx.mcpReq.send(asked('Please review the defaults', {
            name: { type: 'string', default: 'John Doe' },
            age: { type: 'integer', default: 30 },
            score: { type: 'number', default: 95.5 },
            status: { type: 'string', enum: ['active', 'inactive', 'pending'], default: 'active' },
            verified: { type: 'boolean', default: true },
        }, []));
        return text(`Elicitation completed: action=${answer.action}, content=${JSON.stringify(answer.content)}`);
    },
    async test_elicitation_sep1330_enums(_, { ctx }) {
        const titled = (one, names) => names.map((name, place) => ({ const: `value${place + 1}`, title: `${name} ${one}` }));
        const names = ['First', 'Second', 'Third'];
        const plain = ['option1', 'option2', 'option3'];
        const answer = await ctx.mcpReq.send(asked('Please choose', {
            untitledSingle: { type: 'string', enum: plain },
            titledSingle: { type: 'string', oneOf: titled('Option', names) },
            legacyEnum: {
                type: 'string', enum: ['opt1', 'opt2', 'opt3'], enumNames: ['Option One', 'Option Two', 'Option Three'],
            },
            untitledMulti: { type: 'array', items: { type: 'string', enum: plain } },
            titledMulti: { type: 'array', items: { anyOf: titled('Choice', names) } },
        }, []));
        return text(`Elicitation completed: action=${answer.action}, content=${JSON.stringify(answer.content)}`);
    },
    async test_roots(_, { ctx }) {
        const answer = await ctx.mcpReq.send(roots);
        return text(`roots: ${answer.roots.map((root) => root.uri).join(' ')}`);
    },
};

// A tool that asks in one round.
const round = (inputRequests, finish, state) => async (_, { responses, ctx, can }) => {
    const wanted = Object.entries(inputRequests);
    const open = wanted.filter(([key]) => responses[key] === undefined);
    const needs = { 'elicitation/create': 'elicitation', 'sampling/createMessage': 'sampling', 'roots/list': 'roots' };
    const missing = open.filter(([, { method }]) => !can[needs[method]]);
    if (missing.length > 0) {
        const requiredCapabilities = Object.fromEntries(missing.map(([, { method }]) => [needs[method], {}]));
        throw new ProtocolError(-32021, 'the client lacks what this needs', { requiredCapabilities });
    }
    if (open.length === 0 && (!state || ctx.mcpReq.requestState() !== undefined)) return finish(responses);
    const requestState = state && { requestState: await states.mint(state, ctx) };
    return inputRequired({ inputRequests: Object.fromEntries(open.length > 0 ? open : wanted), ...requestState });
};

const name = asked('What is your name?', { name: { type: 'string' } });
const hello = ({ user_name: { action, content } }) => {
    if (action === 'accept' && typeof content?.name !== 'string') throw new ProtocolError(-32602, 'no name was given');
    return text(`Hello, ${content?.name ?? action}!`);
};
const confirm = { confirm: asked('Please confirm', { ok: { type: 'boolean' } }) };

const modern = {
    test_tool_with_logging: async (_, { ctx, log }) => (await log('a message'), text('logged')),
    test_logging_tool: async (_, { log }) => (await log('a message'), text('logged')),
    test_missing_capability: (_, { can }) => {
        if (can.sampling) return text('it can');
        throw new ProtocolError(-32021, 'this needs sampling', { requiredCapabilities: { sampling: {} } });
    },
    test_streaming_elicitation: round({ user_name: name }, hello),
    test_input_required_result_elicitation: round({ user_name: name }, hello),
    test_input_required_result_sampling: round(
        { capital_question: sampled('What is the capital of France?') },
        ({ capital_question: { content } }) => text(`The answer: ${content.text}`)),
    test_input_required_result_list_roots: round(
        { client_roots: roots }, ({ client_roots: { roots } }) => text(`roots: ${roots.map((root) => root.uri).join(' ')}`)),
    test_input_required_result_request_state: round(confirm, () => text('state-ok'), 'asked'),
    test_input_required_result_tampered_state: round(confirm, () => text('state-ok'), 'asked'),
    test_input_required_result_multiple_inputs: round(
        { user_name: name, greeting: sampled('Generate a greeting', 50), client_roots: roots },
        () => text('all is there'), 'asked'),
    async test_input_required_result_multi_round(_, { responses, ctx }) {
        const state = ctx.mcpReq.requestState() ?? { step: 0 };
        const step = state.step + (responses[`step${state.step}`] ? 1 : state.step === 0 ? 1 : 0);
        if (step > 2) return text(`Hello, ${state.name}`);
        const ask = step === 1
            ? asked('Step 1: What is your name?', { name: { type: 'string' } })
            : asked('Step 2: What is your favorite color?', { color: { type: 'string' } });
        const known = state.name ?? responses.step1?.content?.name;
        const requestState = await states.mint({ step, name: known }, ctx);
        return inputRequired({ inputRequests: { [`step${step}`]: ask }, requestState });
    },
    test_input_required_result_capabilities(_, { can }) {
        const all = { elicitation: name, sampling: sampled('Say hello', 50), roots };
        const inputRequests = Object.fromEntries(Object.entries(all).filter(([needs]) => can[needs]));
        return Object.keys(inputRequests).length > 0 ? inputRequired({ inputRequests }) : text('it can nothing');
    },
};

// Tools that are worked on for a while, which the scenarios of tasks call: who stands before this server makes tasks of
// them.
const PAUSE = 1200;
const late = (finish) => async (arguments_, around) => {
    if (Object.keys(around.responses).length === 0) await sleep(PAUSE);
    return finish(arguments_, around);
};
const slow = {
    greet: ({ name }) => text(`Hello, ${name}!`),
    async slow_compute({ seconds, label }, { ctx }) {
        await sleep(seconds * 1000, undefined, { signal: ctx.mcpReq.signal });
        return text(`${label} took ${seconds} s`);
    },
    failing_job: async () => (await sleep(PAUSE), { ...text('the job failed'), isError: true }),
    async protocol_error_job() {
        await sleep(PAUSE);
        throw new ProtocolError(-32603, 'the job broke');
    },
    confirm_delete: late(round(confirm, () => text('deleted'))),
    multi_input: late(round({ one: name, other: name }, () => text('both are there'))),
    test_tool_with_task: round({ user_name: name }, async (responses) => {
        await sleep(PAUSE);
        return hello(responses);
    }),
};

const arguments_ = {
    slow_compute: object({ seconds: { type: 'number' }, label: { type: 'string' } }),
    greet: object({ name: { type: 'string' } }),
    test_sampling: object({ prompt: { type: 'string' } }, ['prompt']),
    test_elicitation: object({ message: { type: 'string' } }, ['message']),
    json_schema_2020_12_tool: schema2020,
    test_x_mcp_header: object({ region: { type: 'string', 'x-mcp-header': 'Region' }, query: { type: 'string' } }, ['region']),
};

const argument = (name, description) => ({ name, description, required: true });
const said = (...contents) => ({ messages: contents.map((content) => ({ role: 'user', content })) });
const prompts = {
    test_simple_prompt: { get: () => said({ type: 'text', text: 'This is a simple prompt for testing.' }) },
    test_prompt_with_arguments: {
        arguments: [argument('arg1', 'First test argument'), argument('arg2', 'Second test argument')],
        get: ({ arg1, arg2 }) => said({ type: 'text', text: `Prompt with arguments: arg1='${arg1}', arg2='${arg2}'` }),
    },
    test_prompt_with_embedded_resource: {
        arguments: [argument('resourceUri', 'URI of the resource to embed')],
        get: ({ resourceUri }) => said(
            resource(resourceUri, 'text/plain', 'Embedded resource content for testing.'),
            { type: 'text', text: 'Please process the embedded resource above.' }),
    },
    test_prompt_with_image: {
        get: () => said(
            { type: 'image', data: PNG, mimeType: 'image/png' },
            { type: 'text', text: 'Please analyze the image above.' }),
    },
    test_input_required_result_prompt: {
        get: round(
            { user_context: asked('What context should the prompt use?', { context: { type: 'string' } }) },
            ({ user_context: { content } }) => said({ type: 'text', text: `In the context of ${content?.context}` })),
    },
};

const contents = {
    'test://static-text': { mimeType: 'text/plain', text: 'This is the content of the static text resource.' },
    'test://static-binary': { mimeType: 'image/png', blob: PNG },
    'test://watched-resource': { mimeType: 'text/plain', text: 'watched' },
};

function fixture(era, changed) {
    const capabilities = {
        tools: { listChanged: true }, prompts: { listChanged: true }, resources: { subscribe: true }, completions: {}, logging: {},
    };
    const server = new Server({ name: 'fixture', version: '1' }, {
        capabilities, requestState: { verify: (state, ctx) => states.verify(state, ctx) },
        instructions: 'The tools of the conformance suite.',
    });
    const tools = process.env.TASKS ? slow : { ...simple, ...(era === 'modern' ? modern : legacy) };
    const around = (ctx) => ({
        ctx, changed,
        responses: ctx.mcpReq.inputResponses ?? {},
        can: ctx.mcpReq.envelope?.['io.modelcontextprotocol/clientCapabilities'] ?? server.getClientCapabilities() ?? {},
        log: async (data) => {
            if (ctx.mcpReq.envelope?.['io.modelcontextprotocol/logLevel'] === undefined) return;
            await ctx.mcpReq.notify({ method: 'notifications/message', params: { level: 'info', data } });
        },
    });
    server.setRequestHandler('tools/list', () => ({
        tools: Object.keys(tools).sort().map((name) =>
            ({ name, description: `The tool ${name}.`, inputSchema: arguments_[name] ?? object() })),
    }));
    server.setRequestHandler('tools/call', ({ params }, ctx) => {
        const tool = tools[params.name];
        if (!tool) throw new ProtocolError(-32602, `there is no tool ${params.name}`);
        return tool(params.arguments ?? {}, around(ctx));
    });
    server.setRequestHandler('prompts/list', () => ({
        prompts: Object.entries(prompts).map(([name, { arguments: wanted }]) =>
            ({ name, description: `The prompt ${name}.`, ...(wanted && { arguments: wanted }) })),
    }));
    server.setRequestHandler('prompts/get', ({ params }, ctx) => {
        const prompt = prompts[params.name];
        if (!prompt) throw new ProtocolError(-32602, `there is no prompt ${params.name}`);
        return prompt.get(params.arguments ?? {}, around(ctx));
    });
    server.setRequestHandler('resources/list', () => ({
        resources: Object.entries(contents).map(([uri, { mimeType }]) =>
            ({ uri, name: uri.slice('test://'.length), description: `The resource ${uri}.`, mimeType })),
    }));
    server.setRequestHandler('resources/templates/list', () => ({
        resourceTemplates: [{
            uriTemplate: 'test://template/{id}/data', name: 'template', description: 'Data by id.', mimeType: 'application/json',
        }],
    }));
    server.setRequestHandler('resources/read', ({ params: { uri } }) => {
        const id = /^test:\/\/template\/([^/]+)\/data$/.exec(uri)?.[1];
        const found = contents[uri] ?? (id && {
            mimeType: 'application/json', text: JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` }),
        });
        if (!found) throw new ProtocolError(era === 'modern' ? -32602 : -32002, 'Resource not found', { uri });
        return { contents: [{ uri, ...found }] };
    });
    server.setRequestHandler('completion/complete', ({ params: { argument: { value } } }) => {
        const values = ['paris', 'park', 'party'].filter((word) => word.startsWith(value));
        return { completion: { values, total: values.length, hasMore: false } };
    });
    if (era === 'legacy') {
        server.setRequestHandler('resources/subscribe', () => ({}));
        server.setRequestHandler('resources/unsubscribe', () => ({}));
        server.setRequestHandler('logging/setLevel', () => ({}));
    }
    return server;
}

const tell = (server) => (what) => what === 'tools' ? server.sendToolListChanged() : server.sendPromptListChanged();

function over(era) {
    let server;
    server = fixture(era, (what) => tell(server)(what));
    return server;
}

function serveHttp() {
    const only = process.env.ERA;
    const handler = createMcpHandler(
        () => fixture('modern', (what) => what === 'tools' ? handler.notify.toolsChanged() : handler.notify.promptsChanged()),
        { legacy: 'reject' });
    const answer = toNodeHandler(handler);
    const sessions = new Map();
    const checks = [hostHeaderValidation(['localhost', '127.0.0.1']), originValidation(['localhost', '127.0.0.1'])];
    const http = createServer(async (request, response) => {
        if (!checks.every((check) => check(request, response))) return;
        const pieces = [];
        for await (const piece of request) pieces.push(piece);
        let body;
        try {
            body = pieces.length > 0 ? JSON.parse(Buffer.concat(pieces)) : undefined;
        } catch {
            response.writeHead(400, { 'content-type': 'application/json' });
            return response.end('{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no JSON"}}');
        }
        const isLegacy = only !== 'modern' && (only === 'legacy' || (await isLegacyRequest(await toWebRequest(request, body), body)));
        if (!isLegacy) return answer(request, response, body);
        const known = sessions.get(request.headers['mcp-session-id']);
        if (known) return known.handleRequest(request, response, body);
        if (request.headers['mcp-session-id'] !== undefined) {
            response.writeHead(404, { 'content-type': 'application/json' });
            return response.end('{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"no such session"}}');
        }
        const transport = new NodeStreamableHTTPServerTransport({
            sessionIdGenerator: randomUUID, onsessioninitialized: (id) => void sessions.set(id, transport),
            onsessionclosed: (id) => void sessions.delete(id),
        });
        await over('legacy').connect(transport);
        return transport.handleRequest(request, response, body);
    });
    http.listen(0, '127.0.0.1', () => process.stdout.write(`http://127.0.0.1:${http.address().port}/mcp\n`));
}

if (process.argv[2] === 'http') {
    serveHttp();
} else if (process.env.ERA === 'legacy') {
    const { StdioServerTransport } = await import('@modelcontextprotocol/server/stdio');
    await over('legacy').connect(new StdioServerTransport());
} else {
    serveStdio(({ era }) => over(era), process.env.ERA === 'modern' ? { legacy: 'reject' } : {});
}
