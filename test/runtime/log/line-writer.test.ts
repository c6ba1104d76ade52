import { setImmediate as turn } from "node:timers/promises";
import { expect, test } from "vitest";
import { LineWriter } from "../../../runtime/log/standard-streams.ts";

/** Takes so many more bytes, as a disk does. */
class Disk {
  text = "";
  room = Number.POSITIVE_INFINITY;

  async write(bytes: Buffer): Promise<number> {
    const taken = bytes.subarray(0, Math.max(0, this.room));
    this.text += taken.toString();
    this.room -= taken.length;
    return taken.length;
  }

  writeNow(): void {}
}

async function writeLines(writer: LineWriter, ...lines: string[]): Promise<void> {
  for (const line of lines) writer.write(`${line}\n`);
  await turn();
  await turn();
}

test("a partially written line is ended before the next one and counted as dropped", async () => {
  const disk = new Disk();
  const writer = new LineWriter(disk);
  const recoveries: number[] = [];
  writer.onRecovery = (dropped) => recoveries.push(dropped);
  disk.room = 10;
  await writeLines(writer, "first", "second", "third");
  await writeLines(writer, "fourth");
  expect(writer.dropped).toBe(3);
  disk.room = Number.POSITIVE_INFINITY;
  await writeLines(writer, "fifth", "sixth");
  await writeLines(writer, "seventh");
  expect(disk.text).toBe("first\nseco\nfifth\nsixth\nseventh\n");
  expect(writer.dropped).toBe(3);
  expect(recoveries).toEqual([3]);
});

test("lines beyond one waiting mebibyte are dropped, and waiting lines are written when there is a reader", async () => {
  const { promise: reader, resolve } = Promise.withResolvers<void>();
  const disk = new Disk();
  const writer = new LineWriter({
    write: async (bytes) => {
      await reader;
      return disk.write(bytes);
    },
    writeNow() {},
  });
  const line = "x".repeat(1_023);
  for (let count = 0; count < 1_100; count++) writer.write(`${line}\n`);
  expect(writer.dropped).toBe(1_100 - 1_024);
  resolve();
  while (disk.text.length < 2 ** 20) await turn();
  await writeLines(writer, line);
  expect(disk.text.length).toBe(2 ** 20 + 1_024);
  expect(writer.dropped).toBe(1_100 - 1_024);
});
