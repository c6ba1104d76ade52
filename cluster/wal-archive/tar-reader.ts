import { StringDecoder } from "node:string_decoder";

const BLOCK = 512;

export type TarEntry = {
  readonly path: string;
  readonly kind: "file" | "folder" | "link";
  readonly mode: number;
  readonly size: number;
  /** The content must be read, or skipped, before the next entry. */
  content(): AsyncGenerator<Buffer>;
};

/**
 * Reads the tar files that Postgres writes: the ustar format without extensions, with names of at most 100 bytes
 * (`tarCreateHeader` of src/port/tar.c).
 */
export async function* readTar(source: AsyncIterable<Buffer>): AsyncGenerator<TarEntry> {
  const blocks = new ByteReader(source);
  for (;;) {
    const header = await blocks.take(BLOCK);
    if (header === null) throw new Error("The tar file is truncated.");
    // The end of the file is two empty blocks, or one with manifests of old versions.
    if (header.every((byte) => byte === 0)) return;
    const entry = parseHeader(header);
    let left = entry.size;
    const content = async function* () {
      while (left > 0) {
        const part = await blocks.takeSome(left);
        if (part === null) throw new Error("The tar file is truncated.");
        left -= part.length;
        yield part;
      }
    };
    yield { ...entry, content };
    for await (const _ of content());
    const padding = (BLOCK - (entry.size % BLOCK)) % BLOCK;
    if (padding > 0) await blocks.take(padding);
  }
}

function parseHeader(header: Buffer): Omit<TarEntry, "content"> {
  if (parseNumber(header.subarray(148, 156)) !== checksum(header)) throw new Error("The tar file is damaged.");
  const path = parseText(header.subarray(0, 100));
  const kind = ({ "0": "file", "5": "folder", "2": "link" } as const)[String.fromCharCode(header[156]!)];
  if (!kind) throw new Error(`The tar file has an entry of another kind than Postgres writes: ${path}`);
  const size = kind === "file" ? parseNumber(header.subarray(124, 136)) : 0;
  return { path, kind, mode: parseNumber(header.subarray(100, 108)) & 0o777, size };
}

/** Returns the sum of all bytes, with spaces in the place of the checksum. */
function checksum(header: Buffer): number {
  return header.reduce((sum, byte, index) => sum + (index >= 148 && index < 156 ? 32 : byte), 0);
}

function parseText(field: Buffer): string {
  const end = field.indexOf(0);
  return new StringDecoder("utf8").end(end < 0 ? field : field.subarray(0, end));
}

/** Parses an octal number, or a binary one with the highest bit set if it does not fit. */
function parseNumber(field: Buffer): number {
  if ((field[0]! & 0x80) !== 0) return Number(field.readBigUInt64BE(field.length - 8));
  return Number.parseInt(parseText(field).trim() || "0", 8);
}

/** Takes parts of chosen sizes from a stream. */
class ByteReader {
  readonly #source: AsyncIterator<Buffer>;
  #rest: Buffer = Buffer.alloc(0);

  constructor(source: AsyncIterable<Buffer>) {
    this.#source = source[Symbol.asyncIterator]();
  }

  /** Returns null at the end. */
  async take(bytes: number): Promise<Buffer | null> {
    const parts: Buffer[] = [];
    for (let left = bytes; left > 0; ) {
      const part = await this.takeSome(left);
      if (part === null) return null;
      parts.push(part);
      left -= part.length;
    }
    return Buffer.concat(parts);
  }

  /** Returns at least one byte and at most `max`; null at the end. */
  async takeSome(max: number): Promise<Buffer | null> {
    while (this.#rest.length === 0) {
      const { value, done } = await this.#source.next();
      if (done) return null;
      this.#rest = value;
    }
    const part = this.#rest.subarray(0, max);
    this.#rest = this.#rest.subarray(part.length);
    return part;
  }
}
