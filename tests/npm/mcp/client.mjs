// A client on the published SDK: MODE, then a URL, or a command and its arguments. Prints what it was told, as JSON.
// The mode `1.x` is the SDK's older line.
const [mode, target, ...args] = process.argv.slice(2);
const packages = mode === '1.x'
    ? ['@modelcontextprotocol/sdk/client/index.js', '@modelcontextprotocol/sdk/client/streamableHttp.js', '@modelcontextprotocol/sdk/client/stdio.js']
    : ['@modelcontextprotocol/client', '@modelcontextprotocol/client', '@modelcontextprotocol/client/stdio'];
const [{ Client }, { StreamableHTTPClientTransport }, { StdioClientTransport }] =
    await Promise.all(packages.map((name) => import(name)));

const client = new Client({ name: 'test', version: '1' }, mode === '1.x' ? {} : { versionNegotiation: { mode } });
await client.connect(args.length > 0
    ? new StdioClientTransport({ command: target, args })
    : new StreamableHTTPClientTransport(new URL(target)));
const text = ({ content }) => content[0].text;
const { tools } = await client.listTools();
const call = (name, arguments_) => client.callTool({ name, arguments: arguments_ });
const failed = await call('py_fail', {});
console.log(JSON.stringify({
    version: mode === '1.x' ? null : client.getNegotiatedProtocolVersion(),
    tools: tools.map(({ name }) => name),
    found: text(await call('find_tools', { names: ['py_add'] })),
    through: text(await call('call_tool', { name: 'py_add', arguments: { a: 2, b: 3 } })),
    direct: text(await call('py_add', { a: 20, b: 30 })),
    failed: [failed.isError, text(failed)],
}));
await client.close();
