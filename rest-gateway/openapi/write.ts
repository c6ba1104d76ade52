import { createHash } from "node:crypto";
import { once } from "node:events";
import { buffer } from "node:stream/consumers";
import { setImmediate as nextTurn } from "node:timers/promises";
import { createGzip } from "node:zlib";
import { isJsonObject } from "../../engine/json-object.ts";

/** The entries of an object that is too large to be held whole: each is made when it is written. */
export type Section = () => Iterable<readonly [key: string, value: object]>;
export type Document = { readonly [key: string]: unknown };

/** Compressed it is kept: it repeats itself so much that it takes a sixtieth. */
export type WrittenDocument = {
  readonly gzip: Buffer;
  /** Of the text. */
  readonly bytes: number;
  /** SHA-256 of the text, in hexadecimal digits. */
  readonly digest: string;
};

const CHUNK_CHARACTERS = 65_536;
const SLICE_MS = 8;

/** JSON of a document whose large objects are sections. Other requests are served in between. */
export async function writeDocument(document: Document): Promise<WrittenDocument> {
  const gzip = createGzip();
  const compressed = buffer(gzip);
  const digest = createHash("sha256");
  let bytes = 0;
  const write = async (text: string): Promise<void> => {
    const chunk = Buffer.from(text);
    bytes += chunk.length;
    digest.update(chunk);
    if (!gzip.write(chunk)) await once(gzip, "drain");
  };
  try {
    let text = "";
    let pauseAt = performance.now() + SLICE_MS;
    for (const piece of pieces(document)) {
      text += piece;
      if (text.length > CHUNK_CHARACTERS) {
        await write(text);
        text = "";
      }
      if (performance.now() > pauseAt) {
        await nextTurn();
        pauseAt = performance.now() + SLICE_MS;
      }
    }
    await write(text);
  } catch (fault) {
    compressed.catch(() => {});
    gzip.destroy();
    throw fault;
  }
  gzip.end();
  return { gzip: await compressed, bytes, digest: digest.digest("hex") };
}

/** Objects are taken apart down to their sections; the entry of a section is one piece. */
function* pieces(document: Document): Generator<string> {
  let before = "{";
  for (const [key, value] of Object.entries(document)) {
    if (value === undefined) continue;
    yield `${before}${JSON.stringify(key)}:`;
    before = ",";
    if (typeof value === "function") yield* sectionPieces(value as Section);
    else if (isJsonObject(value)) yield* pieces(value);
    else yield JSON.stringify(value);
  }
  yield before === "{" ? "{}" : "}";
}

function* sectionPieces(section: Section): Generator<string> {
  let before = "{";
  for (const [key, value] of section()) {
    yield `${before}${JSON.stringify(key)}:${JSON.stringify(value)}`;
    before = ",";
  }
  yield before === "{" ? "{}" : "}";
}
