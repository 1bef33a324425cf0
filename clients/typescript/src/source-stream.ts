/** A stream that is sent while it arrives, and what becomes of it. */

/** The stream of a caller. */
export class SourceStream {
  /** What is sent: the same, in UTF-8. */
  readonly readable: ReadableStream<Uint8Array>;
  readonly #reader: ReadableStreamDefaultReader<string | Uint8Array>;
  #failure: { error: unknown } | undefined;

  /** Calls `ended` when all of `source` has arrived. Throws a TypeError if somebody reads it already. */
  constructor(source: ReadableStream<string | Uint8Array>, ended: () => void) {
    const reader = source.getReader();
    const encoder = new TextEncoder();
    this.#reader = reader;
    this.readable = new ReadableStream<Uint8Array>(
      {
        pull: async (controller) => {
          const next = await reader.read().catch((error: unknown) => {
            this.#failure = { error };
            throw error;
          });
          if (!next.done) {
            controller.enqueue(typeof next.value === 'string' ? encoder.encode(next.value) : next.value);
            return;
          }
          ended();
          controller.close();
        },
        cancel: (reason) => reader.cancel(reason),
      },
      { highWaterMark: 0 },
    );
  }

  /** Throws what the stream failed with, if it did by itself. */
  throwIfFailed(): void {
    if (this.#failure !== undefined) throw this.#failure.error;
  }

  /** Lets go of a stream that nobody is sent any more; the other branch of a `tee()` goes on. */
  cancel(): void {
    this.#reader.cancel().catch(() => {});
  }
}
