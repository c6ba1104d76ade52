import { AsyncLocalStorage } from "node:async_hooks";
import { MAX_REASON_BYTES, type SocketOrder, type SocketReport, type WithoutId } from "./messages.ts";

type ServedSocketOptions = {
  readonly url: string;
  readonly protocol: string;
  readonly report: (message: WithoutId<SocketReport>) => void;
};

type Handler = ((event: Event) => unknown) | null;
type SentData = string | Uint8Array;
type Closing = { readonly code: number | null; readonly reason: string };

const CONNECTING = 0;
const OPEN = 1;
const CLOSING = 2;
const CLOSED = 3;
/** The bytes that may wait for the client to read them. A function that sends more has no other bound. */
const MAX_UNSENT_BYTES = 16 * 2 ** 20;
/** The least size that a message counts for. */
const MIN_COUNTED_BYTES = 256;
const ABNORMAL_CLOSURE = 1006;
const TRY_AGAIN_LATER = 1013;

/** The WebSocket that `Deno.upgradeWebSocket` returns. The gateway has the connection. */
export class ServedSocket extends EventTarget {
  static readonly CONNECTING = CONNECTING;
  static readonly OPEN = OPEN;
  static readonly CLOSING = CLOSING;
  static readonly CLOSED = CLOSED;
  readonly CONNECTING = CONNECTING;
  readonly OPEN = OPEN;
  readonly CLOSING = CLOSING;
  readonly CLOSED = CLOSED;
  readonly url: string;
  readonly protocol: string;
  readonly extensions = "";
  binaryType: "blob" | "arraybuffer" = "blob";
  onopen: Handler = null;
  onmessage: Handler = null;
  onerror: Handler = null;
  onclose: Handler = null;
  readonly #report: ServedSocketOptions["report"];
  /** Runs handlers with the context of the request, whose id the log has. */
  readonly #inContext = AsyncLocalStorage.snapshot();
  readonly #left = Promise.withResolvers<void>();
  #readyState = CONNECTING;
  #bufferedAmount = 0;
  #unsentBytes = 0;
  /** Resolves when all Blobs are read that were sent; null if there were none. */
  #blobs: Promise<void> | null = null;
  #closing: Closing | null = null;
  #failure: string | null = null;

  constructor({ url, protocol, report }: ServedSocketOptions) {
    super();
    this.url = url;
    this.protocol = protocol;
    this.#report = report;
    for (const type of ["open", "message", "error", "close"] as const)
      this.addEventListener(type, (event) => void this[`on${type}`]?.(event));
  }

  get readyState(): number {
    return this.#readyState;
  }

  get bufferedAmount(): number {
    return this.#bufferedAmount;
  }

  /** Resolves when the handlers know that the socket is closed. */
  get left(): Promise<void> {
    return this.#left.promise;
  }

  send(data: string | ArrayBuffer | ArrayBufferView | Blob): void {
    if (this.#readyState === CONNECTING) throw new DOMException("The socket is not open yet", "InvalidStateError");
    if (this.#readyState !== OPEN) return;
    if (data instanceof Blob) {
      const reading = data.arrayBuffer();
      this.#blobs = (this.#blobs ?? Promise.resolve()).then(async () => this.#post(new Uint8Array(await reading)));
      return;
    }
    const copy = toSentData(data);
    this.#afterBlobs(() => this.#post(copy));
  }

  /** Converts the arguments like a browser, since functions may be written in JavaScript. */
  close(givenCode?: unknown, givenReason: unknown = ""): void {
    const code = givenCode === undefined ? null : Math.round(Number(givenCode));
    const reason = String(givenReason);
    if (code !== null && !isCloseCode(code))
      throw new DOMException(`A socket cannot be closed with the code ${code}`, "InvalidAccessError");
    if (Buffer.byteLength(reason) > MAX_REASON_BYTES)
      throw new DOMException(`The reason has more than ${MAX_REASON_BYTES} bytes`, "SyntaxError");
    if (this.#readyState >= CLOSING) return;
    const isOpen = this.#readyState === OPEN;
    this.#readyState = CLOSING;
    this.#closing = { code, reason };
    if (isOpen) this.#afterBlobs(() => this.#sendClosing());
  }

  handle(order: WithoutId<SocketOrder>): void {
    this.#inContext(() => {
      switch (order.type) {
        case "opened":
          return this.#open();
        case "message":
          return this.#receive(order);
        case "sent":
          return this.#countUnsent(order.bytes, -1);
        case "closed":
          return this.#end(order);
      }
    });
  }

  #open(): void {
    if (this.#readyState === CONNECTING) {
      this.#readyState = OPEN;
      this.dispatchEvent(new Event("open"));
    } else {
      // The function has closed it before.
      this.#sendClosing();
    }
  }

  #receive({ data, bytes }: { readonly data: SentData; readonly bytes: number }): void {
    if (this.#readyState === OPEN)
      this.dispatchEvent(new MessageEvent("message", { data: toEventData(data, this.binaryType) }));
    this.#report({ type: "taken", bytes });
  }

  #end({ code, reason, failure }: { readonly code: number; readonly reason: string; readonly failure: string | null }) {
    if (this.#readyState === CLOSED) return;
    this.#readyState = CLOSED;
    const isLost = code === ABNORMAL_CLOSURE;
    const message = this.#failure ?? failure ?? (isLost ? "The connection was lost" : null);
    if (message !== null) this.dispatchEvent(Object.assign(new Event("error"), { message }));
    this.dispatchEvent(new CloseEvent("close", { code, reason, wasClean: !isLost }));
    this.#left.resolve();
  }

  #afterBlobs(act: () => void): void {
    if (this.#blobs) this.#blobs = this.#blobs.then(act);
    else act();
  }

  #post(data: SentData): void {
    if (this.#readyState === CLOSED || this.#failure !== null) return;
    const bytes = Buffer.byteLength(data);
    this.#countUnsent(bytes, 1);
    if (this.#unsentBytes > MAX_UNSENT_BYTES) this.#failAsUnread();
    else this.#report({ type: "message", data, bytes });
  }

  #countUnsent(bytes: number, change: 1 | -1): void {
    this.#bufferedAmount += change * bytes;
    this.#unsentBytes += change * Math.max(bytes, MIN_COUNTED_BYTES);
  }

  #failAsUnread(): void {
    this.#failure = `More than ${MAX_UNSENT_BYTES / 2 ** 20} MiB wait for the client to read them`;
    this.#readyState = CLOSING;
    this.#report({ type: "close", code: TRY_AGAIN_LATER, reason: this.#failure });
  }

  #sendClosing(): void {
    this.#report({ type: "close", ...this.#closing! });
  }
}

/** Returns a copy of bytes, because the function may use them again. */
function toSentData(data: string | ArrayBuffer | ArrayBufferView): SentData {
  if (data instanceof ArrayBuffer) return new Uint8Array(data.slice());
  if (!ArrayBuffer.isView(data)) return String(data);
  return new Uint8Array(data.buffer, data.byteOffset, data.byteLength).slice();
}

function toEventData(data: SentData, binaryType: string): string | ArrayBuffer | Blob {
  if (typeof data === "string") return data;
  return binaryType === "arraybuffer" ? (data.buffer as ArrayBuffer) : new Blob([data as Uint8Array<ArrayBuffer>]);
}

/** Returns true for codes that a server may send (RFC 6455, 7.4). */
function isCloseCode(code: number): boolean {
  return (code >= 1000 && code <= 1014 && ![1004, 1005, 1006].includes(code)) || (code >= 3000 && code <= 4999);
}
