import { readFile, writeFile } from "node:fs/promises";
import { promisify } from "node:util";
import { gunzip, gzip } from "node:zlib";

const file = (area: string) => new URL(`recorded/${area}.jsonl.gz`, import.meta.url);

/** One value on each line. */
export async function readRecording<Entry>(area: string): Promise<Entry[]> {
  const text = (await promisify(gunzip)(await readFile(file(area)))).toString("utf8");
  return text
    .split("\n")
    .filter(Boolean)
    .map((line) => JSON.parse(line));
}

export async function writeRecording(area: string, entries: readonly unknown[]): Promise<void> {
  const text = entries.map((entry) => JSON.stringify(entry)).join("\n");
  await writeFile(file(area), await promisify(gzip)(text, { level: 9 }));
}
