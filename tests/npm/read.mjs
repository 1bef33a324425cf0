// Reads a stream from stdin as a release of the AI SDK does and prints the data in it: `node read.mjs 4|5|7`.
import { Readable } from 'node:stream';
import * as v4 from 'ai-4';
import * as v5 from 'ai-5';
import * as v7 from 'ai-7';

const version = process.argv[2];
const stream = Readable.toWeb(process.stdin);
const data = [];
if (version === '4') {
  await v4.processDataStream({ stream, onDataPart: (values) => data.push(...values) });
} else {
  const sdk = { 5: v5, 7: v7 }[version];
  const parsed = sdk.parseJsonEventStream({ stream, schema: sdk.uiMessageChunkSchema });
  const [chunks, again] = parsed
    .pipeThrough(
      new TransformStream({
        transform(chunk, controller) {
          if (!chunk.success) throw chunk.error;
          controller.enqueue(chunk.value);
        },
      }),
    )
    .tee();
  for await (const chunk of chunks) data.push({ [chunk.type]: chunk.data });
  // The state that a user interface would show must hold the same.
  let message;
  for await (message of sdk.readUIMessageStream({ stream: again }));
  const shown = message.parts.filter((part) => part.type.startsWith('data-'));
  if (shown.length !== data.length) throw new Error(`the message shows ${shown.length} of ${data.length} parts`);
}
console.log(JSON.stringify(data));
