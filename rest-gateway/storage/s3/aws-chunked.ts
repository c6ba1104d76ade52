import { createHash } from "node:crypto";
import { s3Error } from "./s3-error.ts";
import { type ChunkSignature, ChunkVerifier } from "./signed-payload.ts";

const MAX_LINE = 1024;
const MAX_TRAILERS = 10;
const CHUNK_LINE = /^([0-9a-f]{1,12})(?:;chunk-signature=([0-9a-f]{64}))?$/i;
const TRAILER_SIGNATURE = "x-amz-trailer-signature";

type AwsChunkedOptions = {
  /** Verifies chunks; null if they are not signed. */
  readonly signature: ChunkSignature | null;
  /** Receives the trailers after the last chunk, with names in lower case. */
  readonly onTrailer: (name: string, value: string) => void;
};

/** Decodes a body in `aws-chunked`. Throws at the end of a chunk whose signature does not match its bytes. */
export async function* decodeAwsChunked(
  body: AsyncIterable<Buffer>,
  { signature, onTrailer }: AwsChunkedOptions,
): AsyncGenerator<Buffer> {
  const reader = new BodyReader(body);
  const verifier = signature && new ChunkVerifier(signature);
  for (;;) {
    const [, size = "", signed = ""] = CHUNK_LINE.exec((await reader.readLine()) ?? "") ?? [];
    if (size === "") throw s3Error("IncompleteBody");
    const digest = verifier && createHash("sha256");
    for await (const piece of reader.readBytes(Number.parseInt(size, 16))) {
      digest?.update(piece);
      yield piece;
    }
    if (digest) verifier?.checkChunk(digest.digest("hex"), signed);
    if (Number.parseInt(size, 16) === 0) break;
    if ((await reader.readLine()) !== "") throw s3Error("IncompleteBody");
  }
  await readTrailers(reader, verifier, onTrailer);
}

async function readTrailers(
  reader: BodyReader,
  verifier: ChunkVerifier | null,
  onTrailer: AwsChunkedOptions["onTrailer"],
): Promise<void> {
  const trailers: string[] = [];
  let signature: string | null = null;
  for (let line = await reader.readLine(); line; line = await reader.readLine()) {
    const at = line.indexOf(":");
    const name = line.slice(0, at).trim().toLowerCase();
    const value = line.slice(at + 1).trim();
    if (at < 1 || trailers.length === MAX_TRAILERS) throw s3Error("MalformedTrailerError");
    if (name === TRAILER_SIGNATURE) signature = value;
    else trailers.push(`${name}:${value}\n`);
  }
  if (!(await reader.isAtEnd())) throw s3Error("MalformedTrailerError");
  if (verifier && trailers.length > 0) {
    const digest = createHash("sha256").update(trailers.join("")).digest("hex");
    verifier.checkTrailer(digest, signature ?? "");
  }
  for (const trailer of trailers) {
    const at = trailer.indexOf(":");
    onTrailer(trailer.slice(0, at), trailer.slice(at + 1, -1));
  }
}

/** Reads lines and counted bytes of a body. */
class BodyReader {
  readonly #chunks: AsyncIterator<Buffer>;
  #rest: Buffer = Buffer.alloc(0);

  constructor(body: AsyncIterable<Buffer>) {
    this.#chunks = body[Symbol.asyncIterator]();
  }

  /** Reads a line; null at the end of the body. */
  async readLine(): Promise<string | null> {
    for (;;) {
      const end = this.#rest.indexOf("\r\n");
      if (end >= 0) {
        const line = this.#rest.toString("latin1", 0, end);
        this.#rest = this.#rest.subarray(end + 2);
        return line;
      }
      if (this.#rest.length > MAX_LINE) throw s3Error("IncompleteBody", "The chunks of the body could not be read.");
      const more = await this.#more();
      if (!more) return null;
      this.#rest = this.#rest.length === 0 ? more : Buffer.concat([this.#rest, more]);
    }
  }

  async isAtEnd(): Promise<boolean> {
    return this.#rest.length === 0 && (await this.#more()) === null;
  }

  async *readBytes(count: number): AsyncGenerator<Buffer> {
    for (let left = count; left > 0; ) {
      if (this.#rest.length === 0) {
        const more = await this.#more();
        if (!more) throw s3Error("IncompleteBody");
        this.#rest = more;
      }
      const piece = this.#rest.subarray(0, left);
      this.#rest = this.#rest.subarray(piece.length);
      left -= piece.length;
      yield piece;
    }
  }

  async #more(): Promise<Buffer | null> {
    const { done, value } = await this.#chunks.next();
    return done ? null : value;
  }
}
