/** The length of the header of each message after the startup: the type and the length. */
const HEADER_BYTES = 5;

/** Splits a stream of Postgres's protocol into whole messages with their headers. */
export class MessageSplitter {
  #chunks: Buffer[] = [];
  #bytes = 0;
  #headerBytes: number;

  /** The first message of a connection has no type, only a length. */
  constructor({ startsWithType }: { readonly startsWithType: boolean }) {
    this.#headerBytes = startsWithType ? HEADER_BYTES : HEADER_BYTES - 1;
  }

  split(chunk: Buffer): Buffer[] {
    this.#chunks.push(chunk);
    this.#bytes += chunk.length;
    const messages: Buffer[] = [];
    for (let length = this.#nextLength(); length !== null && length <= this.#bytes; length = this.#nextLength()) {
      const whole = this.#join();
      messages.push(whole.subarray(0, length));
      this.#chunks = length < whole.length ? [whole.subarray(length)] : [];
      this.#bytes -= length;
    }
    return messages;
  }

  /** From now on each message has a type. */
  expectTypes(): void {
    this.#headerBytes = HEADER_BYTES;
  }

  #nextLength(): number | null {
    if (this.#bytes < this.#headerBytes) return null;
    const first = this.#chunks[0]!.length >= this.#headerBytes ? this.#chunks[0]! : this.#join();
    return this.#headerBytes - 4 + first.readInt32BE(this.#headerBytes - 4);
  }

  #join(): Buffer {
    if (this.#chunks.length > 1) this.#chunks = [Buffer.concat(this.#chunks)];
    return this.#chunks[0]!;
  }
}

export function makeMessage(type: string, ...parts: readonly (Buffer | string)[]): Buffer {
  const body = Buffer.concat(parts.map((part) => (typeof part === "string" ? Buffer.from(`${part}\0`) : part)));
  const header = Buffer.alloc(HEADER_BYTES);
  header.write(type);
  header.writeInt32BE(body.length + 4, 1);
  return Buffer.concat([header, body]);
}

export const SYNC = makeMessage("S");

export function makeQuery(text: string): Buffer {
  return makeMessage("Q", text);
}

export function makeReadyForQuery(status: string): Buffer {
  return makeMessage("Z", Buffer.from(status));
}

export function makeError({
  severity = "ERROR",
  code,
  text,
}: {
  severity?: string;
  code: string;
  text: string;
}): Buffer {
  return makeMessage("E", `S${severity}`, `V${severity}`, `C${code}`, `M${text}`, Buffer.from([0]));
}

export function makeInt32(...values: readonly number[]): Buffer {
  const bytes = Buffer.alloc(4 * values.length);
  for (const [index, value] of values.entries()) bytes.writeInt32BE(value, 4 * index);
  return bytes;
}

/** A message without a type: the first one of a connection. */
export function makeStartup(code: number, ...parts: readonly (Buffer | string)[]): Buffer {
  return makeMessage("?", makeInt32(code), ...parts).subarray(1);
}

export function typeOf(message: Buffer): string {
  return String.fromCharCode(message[0]!);
}

/** Zero-terminated strings of a body, from this offset of the message. */
export function readStrings(message: Buffer, offset: number): string[] {
  return message.toString("utf8", offset).split("\0");
}
