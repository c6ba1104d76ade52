import { setImmediate as nextTurn } from "node:timers/promises";
import type { CallHead, ResponseHead, ThreadOrder, ThreadReport } from "./messages.ts";
import { ServedSocket } from "./served-socket.ts";

type Call = { readonly id: number; readonly head: CallHead };
type Respond = (request: Request, address: string | null) => Promise<Response>;

/** A large piece is sent in parts of this size, as the client takes them. */
const PIECE_BYTES = 256 * 1024;
const NOT_YET = Symbol("not yet");

/** A request in the thread. Its body and its response are passed piece by piece, no faster than they are read. */
export class ServedCall {
  readonly #id: number;
  readonly #head: CallHead;
  readonly #report: (message: ThreadReport) => void;
  readonly #abort = new AbortController();
  #body: ReadableStreamDefaultController<Uint8Array> | null = null;
  #pulled: PromiseWithResolvers<void> | null = null;
  #pulls = 0;
  #reader: ReadableStreamDefaultReader<Uint8Array> | null = null;
  #socket: ServedSocket | null = null;

  constructor({ id, head }: Call, report: (message: ThreadReport) => void) {
    this.#id = id;
    this.#head = head;
    this.#report = report;
  }

  get requestId(): string {
    return this.#head.requestId;
  }

  /** Makes the WebSocket that opens if the response has the status 101. */
  upgrade(protocol: string): ServedSocket {
    const { url, headers } = this.#head;
    const headerOf = (name: string) => headers.find(([each]) => each === name)?.[1] ?? "";
    if (headerOf("upgrade") !== "websocket")
      throw new TypeError("The client asks for no WebSocket: the request has no header `Upgrade: websocket`");
    if (this.#socket) throw new TypeError("The request has a WebSocket already");
    const offered = headerOf("sec-websocket-protocol")
      .split(",")
      .map((each) => each.trim());
    if (protocol !== "" && !offered.includes(protocol))
      throw new TypeError(`The client does not offer the protocol ${protocol}`);
    this.#socket = new ServedSocket({
      url: url.replace(/^http/, "ws"),
      protocol,
      report: (message) => this.#report({ ...message, id: this.#id } as ThreadReport),
    });
    return this.#socket;
  }

  handle(order: Exclude<ThreadOrder, { readonly type: "call" | "ping" }>): void {
    switch (order.type) {
      case "piece":
        if (order.piece) this.#body?.enqueue(order.piece);
        else this.#body?.close();
        if (!order.piece) this.#body = null;
        break;
      case "bodyFailed":
        this.#body?.error(new Error("The client sent only a part of the body"));
        this.#body = null;
        break;
      case "pull":
        this.#pulls += 1;
        this.#pulled?.resolve();
        break;
      case "abort":
        this.#abort.abort(new DOMException("The client has disconnected", "AbortError"));
        this.#pulled?.resolve();
        void this.#reader?.cancel().catch(() => {});
        this.#socket?.handle({ type: "closed", code: 1006, reason: "", failure: null });
        break;
      default:
        this.#socket?.handle(order);
    }
  }

  async run(respond: Respond): Promise<void> {
    const id = this.#id;
    try {
      const response = await respond(this.#makeRequest(), this.#head.address);
      if (this.#abort.signal.aborted) return void response.body?.cancel().catch(() => {});
      if (this.#socket && response.status === 101) await this.#serveSocket(this.#socket);
      else await this.#send(response);
    } catch (error) {
      if (this.#abort.signal.aborted) return;
      console.error(error);
      this.#report({ type: "bodyFailed", id });
    } finally {
      this.#body = null;
    }
  }

  async #serveSocket(socket: ServedSocket): Promise<void> {
    this.#report({ type: "upgrade", id: this.#id, protocol: socket.protocol });
    await socket.left;
    this.#report({ type: "left", id: this.#id });
  }

  #makeRequest(): Request {
    const { method, url, headers, hasBody } = this.#head;
    const init = { method, headers: headers.map(([name, value]): [string, string] => [name, value]) };
    const { signal } = this.#abort;
    return new Request(
      url,
      hasBody ? { ...init, signal, body: this.#openBody(), duplex: "half" } : { ...init, signal },
    );
  }

  #openBody(): ReadableStream<Uint8Array> {
    const pull = () => this.#report({ type: "pull", id: this.#id });
    return new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          this.#body = controller;
        },
        pull,
        cancel: () => {
          this.#body = null;
        },
      },
      { highWaterMark: 0 },
    );
  }

  async #send(response: Response): Promise<void> {
    const id = this.#id;
    const head = toHead(response);
    if (!response.body) return this.#report({ type: "head", id, head, body: null, isComplete: true });
    const reader = (response.body as ReadableStream<Uint8Array>).getReader();
    this.#reader = reader;
    const reading = reader.read();
    const first = await readNow(reading);
    if (first === NOT_YET) {
      this.#report({ type: "head", id, head, body: null, isComplete: false });
      return this.#sendPieces(reader, reading);
    }
    if (first.done) return this.#report({ type: "head", id, head, body: null, isComplete: true });
    const rest = reader.read();
    // It may fail while the parts before it wait for the client; it is awaited after them.
    rest.catch(() => {});
    const second = first.value.length > PIECE_BYTES ? NOT_YET : await readNow(rest);
    if (second !== NOT_YET && second.done)
      return this.#report({ type: "head", id, head, body: toBytes(first.value).slice(), isComplete: true });
    this.#report({ type: "head", id, head, body: null, isComplete: false });
    await this.#sendParts(toBytes(first.value));
    await this.#sendPieces(reader, rest);
  }

  async #sendPieces(
    reader: ReadableStreamDefaultReader<Uint8Array>,
    reading: ReturnType<typeof reader.read>,
  ): Promise<void> {
    for (let next = await reading; !next.done; next = await reader.read()) {
      await this.#sendParts(toBytes(next.value));
      if (this.#abort.signal.aborted) return;
    }
    this.#report({ type: "piece", id: this.#id, piece: null });
  }

  /** Sends copies, because the function may use its bytes again. */
  async #sendParts(bytes: Uint8Array): Promise<void> {
    for (let at = 0; at < bytes.length; at += PIECE_BYTES) {
      await this.#awaitPull();
      if (this.#abort.signal.aborted) return;
      this.#report({ type: "piece", id: this.#id, piece: bytes.slice(at, at + PIECE_BYTES) });
    }
  }

  async #awaitPull(): Promise<void> {
    if (this.#pulls === 0 && !this.#abort.signal.aborted) {
      this.#pulled = Promise.withResolvers();
      await this.#pulled.promise;
    }
    this.#pulls -= 1;
  }
}

/** Returns the value that is read in this turn of the event loop: most responses are complete then, and need one message. */
function readNow<T>(reading: Promise<T>): Promise<T | typeof NOT_YET> {
  return Promise.race([reading, nextTurn(NOT_YET)]);
}

function toBytes(value: unknown): Uint8Array {
  if (value instanceof Uint8Array) return value;
  if (typeof value === "string") return Buffer.from(value);
  throw new TypeError("The body of the response must consist of Uint8Arrays");
}

function toHead({ status, headers }: Response): ResponseHead {
  return { status: status >= 200 && status <= 599 ? status : 500, headers: [...headers] };
}
