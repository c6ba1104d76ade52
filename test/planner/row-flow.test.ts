import { expect, test } from "vitest";
import { RowBodyStream, type StreamedSize } from "../../planner/run.ts";
import type { RowChunk } from "../../postgres/database/result-collectors.ts";

const frame = { opening: "[", separator: ",", closing: "]" };

/** Makes chunks of two rows each, which record whether they are released. */
function source(...texts: readonly string[]) {
  const result: string[] = [];
  const sizes: StreamedSize[] = [];
  async function* read(): AsyncGenerator<RowChunk, undefined> {
    for (const [index, text] of texts.entries()) {
      const release = () => void result.push(`${text} is released`);
      yield { data: Buffer.from(text), rows: 2, last: index === texts.length - 1, head: null, release };
    }
  }
  const chunks = read();
  const begin = async () => {
    const first = (await chunks.next()).value!;
    return new RowBodyStream({ first, chunks, frame, onEnd: (size) => sizes.push(size) });
  };
  return { begin, told: result, sizes, chunks };
}

test("rows are between the opening and the closing text, and the last chunk has their size", async () => {
  const { begin, told: result, sizes } = source("1,2", ",3,4", ",5,6");
  let text = "";
  for await (const { data, release } of await begin()) {
    expect(sizes).toHaveLength(text.endsWith("4") || text.endsWith("6") ? 1 : 0);
    text += data;
    release();
  }
  expect(text).toBe("[1,2,3,4,5,6]");
  expect(result).toEqual(["1,2 is released", ",3,4 is released", ",5,6 is released"]);
  expect(sizes).toEqual([{ rows: 6, bytes: 11 }]);
});

test("a reader that stops ends the source, also before the first row", async () => {
  for (const steps of [0, 1, 3]) {
    const { begin, sizes, chunks } = source("1,2", ",3,4", ",5,6");
    const flow = await begin();
    for (let step = 0; step < steps; step++) await flow.next();
    await flow.return();
    expect(await chunks.next()).toEqual({ done: true, value: undefined });
    expect(sizes).toEqual([]);
  }
});
