import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";

/** A statement as it was sent: its text, and its values as text. */
export type Sent = { readonly text: string; readonly values: readonly (string | null)[] };

type Tap = AsyncDisposable & {
  /** The connection string of Postgres through the tap. */
  readonly url: string;
  /** Returns all statements since the last call, in order. */
  take(): Sent[];
};

/** Opens a proxy between a program and Postgres that records the statements of the program. */
export async function openTap(url: string): Promise<Tap> {
  const { username, pathname, searchParams } = new URL(url.replace("@/", "@localhost/"));
  const path = `${searchParams.get("host")}/.s.PGSQL.${searchParams.get("port")}`;
  let heard: Sent[] = [];
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    const postgres = connect(path);
    const listener = new TapListener((sent) => heard.push(sent));
    client.on("data", (bytes) => listener.hear(bytes));
    client.pipe(postgres).pipe(client);
    for (const socket of [client, postgres]) {
      sockets.add(socket);
      socket.on("error", () => {});
      socket.on("close", () => {
        client.destroy();
        postgres.destroy();
      });
    }
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  return {
    url: `postgresql://${username}@127.0.0.1:${port}${pathname}`,
    take() {
      const taken = heard;
      heard = [];
      return taken;
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}

const PARSE = 0x50;
const BIND = 0x42;

/** Parses the part of the protocol that shows which statements are executed with which values. */
class TapListener {
  readonly #onStatement: (sent: Sent) => void;
  readonly #texts = new Map<string, string>();
  #rest = Buffer.alloc(0);
  #hasBegun = false;

  constructor(onStatement: (sent: Sent) => void) {
    this.#onStatement = onStatement;
  }

  hear(bytes: Buffer): void {
    let at = 0;
    const all = Buffer.concat([this.#rest, bytes]);
    for (;;) {
      // The first message of a session has no type.
      const head = this.#hasBegun ? 1 : 0;
      const end = all.length >= at + head + 4 ? at + head + all.readInt32BE(at + head) : Number.POSITIVE_INFINITY;
      if (end > all.length) break;
      if (this.#hasBegun) this.#take(all[at]!, all.subarray(at + 5, end));
      this.#hasBegun = true;
      at = end;
    }
    this.#rest = all.subarray(at);
  }

  #take(type: number, body: Buffer): void {
    const [first, second, more] = readTexts(body);
    if (type === PARSE) this.#texts.set(first, second);
    if (type === BIND) this.#onStatement({ text: this.#texts.get(second)!, values: readValues(more) });
  }
}

/** Reads two zero-terminated texts, and returns them with the bytes after them. */
function readTexts(body: Buffer): [string, string, Buffer] {
  const middle = body.indexOf(0);
  const end = body.indexOf(0, middle + 1);
  return [body.toString("utf8", 0, middle), body.toString("utf8", middle + 1, end), body.subarray(end + 1)];
}

/** Reads the values: their number, then each with its length. They follow the formats, of which there are none because all are text. */
function readValues(bytes: Buffer): (string | null)[] {
  let at = 2 + 2 * bytes.readInt16BE(0);
  const count = bytes.readInt16BE(at);
  at += 2;
  return Array.from({ length: count }, () => {
    const length = bytes.readInt32BE(at);
    const start = at + 4;
    at = start + Math.max(0, length);
    return length < 0 ? null : bytes.toString("utf8", start, at);
  });
}
