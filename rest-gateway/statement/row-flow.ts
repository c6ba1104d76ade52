import type { Chunk } from "../../engine/database/stream.ts";
import type { Frame } from "./query/body.ts";

type Piece = Pick<Chunk, "data" | "release">;
export type Size = { readonly rows: number; readonly bytes: number };

type RowFlowOptions = {
  /** The one that has been awaited: with it, it is known that there are more. */
  readonly first: Chunk;
  readonly chunks: AsyncIterableIterator<Chunk>;
  readonly frame: Frame;
  /** Told when the last row is there. */
  readonly onEnd: (size: Size) => void;
};

/** A body whose rows come as they are read. Whoever has one reads it to its end or calls `return`. */
export class RowFlow implements AsyncIterableIterator<Piece> {
  readonly #ready: Piece[];
  readonly #chunks: AsyncIterableIterator<Chunk>;
  readonly #closing: string;
  readonly #onEnd: (size: Size) => void;
  #rows: number;
  #bytes: number;

  constructor({ first, chunks, frame, onEnd }: RowFlowOptions) {
    this.#ready = [toPiece(frame.opening), first];
    this.#chunks = chunks;
    this.#closing = frame.closing;
    this.#onEnd = onEnd;
    this.#rows = first.rows;
    this.#bytes = first.data.length;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<Piece, undefined>> {
    const ready = this.#ready.shift();
    if (ready) return { done: false, value: ready };
    const { done, value: chunk } = await this.#chunks.next();
    if (done) return { done, value: undefined };
    this.#rows += chunk.rows;
    this.#bytes += chunk.data.length;
    if (chunk.last) {
      this.#ready.push(toPiece(this.#closing));
      this.#onEnd({ rows: this.#rows, bytes: this.#bytes });
    }
    return { done: false, value: chunk };
  }

  async return(): Promise<IteratorResult<Piece, undefined>> {
    await this.#chunks.return?.();
    return { done: true, value: undefined };
  }
}

function toPiece(text: string): Piece {
  return { data: Buffer.from(text), release: () => {} };
}
