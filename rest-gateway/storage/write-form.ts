import { setImmediate } from "node:timers/promises";
import type { Busboy } from "@fastify/busboy";

/**
 * Writes the body to the parser of a form, and ends it. The parser throws at some headers of parts. It is given a chunk only when it has parsed
 * the one before: it would parse a chunk that waits within an event of its own, where the error would end the process.
 */
export async function writeForm(body: AsyncIterable<Buffer>, form: Busboy, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  const failed = Promise.withResolvers<never>();
  failed.promise.catch(() => {});
  form.on("error", failed.reject);
  signal.addEventListener("abort", () => failed.reject(signal.reason));
  const finished = new Promise<void>((resolve) => void form.once("finish", resolve));
  const unlessFailed = <T>(step: Promise<T>) => Promise.race([step, failed.promise]);
  const chunks = body[Symbol.asyncIterator]();
  try {
    for (;;) {
      const { done, value } = await unlessFailed(chunks.next());
      if (done) break;
      await unlessFailed(writeChunk(value, form));
      // The streams of the parts begin to flow.
      await setImmediate();
    }
    form.end();
    await unlessFailed(finished);
  } catch (error) {
    form.destroy();
    throw error;
  } finally {
    chunks.return?.().catch(() => {});
  }
}

function writeChunk(chunk: Buffer, form: Busboy): Promise<void> {
  return new Promise((resolve, reject) => {
    form.write(chunk, (error) => (error ? reject(error) : resolve()));
  });
}
