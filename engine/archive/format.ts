import { createReadStream } from "node:fs";
import { createGunzip } from "node:zlib";

export const FORMAT = 1;

/** The first line. */
export type Header = {
  readonly contentService: typeof FORMAT;
  readonly postgres: string;
  readonly madeAt: string;
  /** What the tables were made by. Without a history: an earlier version, which had a single one. */
  readonly migrations: readonly { readonly history?: string; readonly name: string; readonly hash: string }[];
};

export type Table = { readonly table: string; readonly columns: readonly string[] };
export type Sequence = { readonly sequence: string; readonly last: string | null; readonly isCalled: boolean };
/** The last line: without it the file is not whole. */
export type End = { readonly rows: number };

/** A string is a row of the table before it, as Postgres writes the whole row as one value. */
export type Line = Header | Table | string | Sequence | End;

/** Line by line, whatever its size. */
export async function* readArchive(file: string): AsyncGenerator<Line> {
  const source = createReadStream(file);
  const text = createGunzip().setEncoding("utf8");
  source.on("error", (error) => text.destroy(error));
  try {
    for await (const line of linesOf(source.pipe(text))) yield JSON.parse(line) as Line;
  } finally {
    source.destroy();
  }
}

/** readline would also end them at U+2028 and U+2029, which JSON leaves within its strings. */
async function* linesOf(text: AsyncIterable<string>): AsyncGenerator<string> {
  let begun = "";
  for await (const chunk of text) {
    const [end, ...others] = chunk.split("\n");
    const last = others.pop();
    if (last === undefined) begun += chunk;
    else {
      yield begun + end;
      yield* others;
      begun = last;
    }
  }
  if (begun) yield begun;
}
