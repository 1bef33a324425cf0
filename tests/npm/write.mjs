// Writes a stream of everything that a release of the AI SDK can write: `node write.mjs 4|5|7`.
import * as v4 from 'ai-4';
import * as v5 from 'ai-5';
import * as v7 from 'ai-7';

const call = { toolCallId: 'call-1', toolName: 'web_search' };

const dataStream = [
  ['start_step', { messageId: 'message-1' }],
  ['text', 'grüße: "[1]"\n'],
  ['reasoning', 'because'],
  ['reasoning_signature', { signature: 's' }],
  ['redacted_reasoning', { data: 'd' }],
  ['source', { sourceType: 'url', id: '1', url: 'https://example.org' }],
  ['file', { data: 'AA==', mimeType: 'image/png' }],
  ['data', [{ type: 'reasoning' }, null, 3]],
  ['message_annotations', [{ a: 1 }]],
  ['tool_call_streaming_start', call],
  ['tool_call_delta', { toolCallId: call.toolCallId, argsTextDelta: '{"q":' }],
  ['tool_call', { ...call, args: { q: 'x' } }],
  ['tool_result', { toolCallId: call.toolCallId, result: { hits: 2 } }],
  ['finish_step', { finishReason: 'tool-calls', usage: { promptTokens: 7, completionTokens: 2 }, isContinued: false }],
  ['finish_message', { finishReason: 'stop', usage: { promptTokens: 7, completionTokens: NaN } }],
];

const uiStream = [
  { type: 'start', messageId: 'message-1' },
  { type: 'start-step' },
  { type: 'text-start', id: '1' },
  { type: 'text-delta', id: '1', delta: 'grüße: "[1]"\n' },
  { type: 'text-end', id: '1' },
  { type: 'reasoning-start', id: '2' },
  { type: 'reasoning-delta', id: '2', delta: 'because' },
  { type: 'reasoning-end', id: '2' },
  { type: 'source-url', sourceId: '1', url: 'https://example.org' },
  { type: 'file', url: 'https://example.org/a.png', mediaType: 'image/png' },
  { type: 'data-reasoning', data: { type: 'reasoning' }, transient: true },
  { type: 'tool-input-start', ...call },
  { type: 'tool-input-delta', toolCallId: call.toolCallId, inputTextDelta: '{"q":' },
  { type: 'tool-input-available', ...call, input: { q: 'x' } },
  { type: 'tool-output-available', toolCallId: call.toolCallId, output: { hits: 2 } },
  { type: 'finish-step' },
  { type: 'finish', messageMetadata: { totalTokens: 9 } },
];

const version = process.argv[2];
if (version === '4') {
  for (const [type, value] of dataStream) process.stdout.write(v4.formatDataStreamPart(type, value));
} else {
  const sdk = { 5: v5, 7: v7 }[version];
  const stream = sdk.createUIMessageStream({
    execute: ({ writer }) => uiStream.forEach((chunk) => writer.write(chunk)),
  });
  const response = sdk.createUIMessageStreamResponse({ stream });
  process.stdout.write(await response.text());
}
