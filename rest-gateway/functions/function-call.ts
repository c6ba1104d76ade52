import { setTimeout as sleep } from "node:timers/promises";
import { type GatewayResponse, HttpError, type ResponseBody } from "#http";
import { FunctionSocket, type OpenSocket } from "./function-socket.ts";
import { workerFailed } from "./functions-error.ts";
import type { CallHead, HeaderList, ResponseHead, ThreadOrder, ThreadReport, WithoutId } from "./thread/messages.ts";
import { toBuffer, toOwnBytes } from "./thread/transferred-bytes.ts";

/** The caller's key and kind: one caller may have requests in only a part of all threads at once. */
export type ThreadShare = { readonly key: string; readonly caller: "stranger" | "account" };

export type FunctionRequest = {
  readonly head: CallHead;
  readonly share: ThreadShare;
  /** The body; null if there is none. */
  readonly body: AsyncIterator<Buffer> | null;
  /** Opens the WebSocket that the client asks for; null if it asks for none. */
  readonly openSocket: OpenSocket | null;
  /** Registers a callback that is called when the client disconnects before the response. */
  readonly onDisconnect: (callback: () => void) => void;
};

type CallReport = Extract<ThreadReport, { readonly id: number }>;

type CallOptions = {
  readonly send: (order: WithoutId<ThreadOrder>) => void;
  /** The time limit for the first byte, and then for each piece, or each message of a WebSocket. */
  readonly timeoutMs: number;
  /** Returns the error for the client. */
  readonly onTimeout: () => HttpError;
  readonly onDone: () => void;
};

/** The gateway's side of a request in a thread. */
export type PendingCall = {
  readonly response: Promise<GatewayResponse<ResponseBody>>;
  /** True if the function may know of the request. */
  readonly hasBegun: boolean;
  /** Must be called when the thread is ready. */
  begin(): void;
  receive(message: CallReport): void;
  /** Ends the request because the client reads no more. */
  abandon(): void;
  /** Closes the WebSocket, if the request has become one, because its thread is replaced. */
  leave(): void;
  /** Fails the request because the thread has ended. */
  fail(error: Error): void;
};

/** The thread ended before it called the handler for a request, which another thread can serve. */
export class CallNotBegun extends Error {
  readonly reason: HttpError;

  constructor(reason: HttpError) {
    super(reason.message);
    this.reason = reason;
  }
}

export function functionCall(request: FunctionRequest, options: CallOptions): PendingCall {
  return new Call(request, options);
}

/** The response in place of which the connection was handed over. */
const SWITCHED_PROTOCOLS: GatewayResponse = { status: 101, headers: {}, body: null };
/** The status of a client that has disconnected. */
const CLIENT_LEFT = 499;

class Call implements PendingCall {
  readonly #request: FunctionRequest;
  readonly #options: CallOptions;
  readonly #response = Promise.withResolvers<GatewayResponse<ResponseBody>>();
  #piece: PromiseWithResolvers<Buffer | null> | null = null;
  /** An end or error that came before the client asked for it. */
  #early: { readonly error: Error | null } | null = null;
  #timer: NodeJS.Timeout | null = null;
  #socket: FunctionSocket | null = null;
  #isLeaving = false;
  #hasBegun = false;
  #hasResponded = false;
  #isDone = false;

  constructor(request: FunctionRequest, options: CallOptions) {
    this.#request = request;
    this.#options = options;
    this.#startTimer();
  }

  get response(): Promise<GatewayResponse<ResponseBody>> {
    return this.#response.promise;
  }

  get hasBegun(): boolean {
    return this.#hasBegun;
  }

  begin(): void {
    if (!this.#isDone) this.#options.send({ type: "call", head: this.#request.head });
  }

  receive(message: CallReport): void {
    if (this.#isDone) return;
    switch (message.type) {
      case "begun":
        this.#hasBegun = true;
        break;
      case "pull":
        void this.#sendPiece();
        break;
      case "head":
        this.#respond(message);
        break;
      case "piece":
        this.#receivePiece(message.piece);
        break;
      case "bodyFailed":
        this.fail(workerFailed());
        break;
      case "upgrade":
        this.#upgrade(message.protocol);
        break;
      default:
        this.#socket?.handle(message);
    }
  }

  fail(error: Error): void {
    if (this.#isDone) return;
    this.#socket?.fail(error);
    this.#response.reject(error);
    if (this.#piece) this.#piece.reject(error);
    else this.#early = { error };
    this.#finish(error);
  }

  async #sendPiece(): Promise<void> {
    // A long upload is not a delay of the function, and has limits of its own.
    clearTimeout(this.#timer ?? undefined);
    try {
      const next = await this.#request.body?.next();
      if (this.#isDone) return;
      this.#options.send({ type: "piece", piece: !next || next.done ? null : toOwnBytes(next.value) });
      if (!this.#hasResponded || this.#piece) this.#startTimer();
    } catch (error) {
      if (this.#isDone) return;
      const isRefused = error instanceof HttpError && error.status !== CLIENT_LEFT;
      this.#options.send({ type: isRefused ? "abort" : "bodyFailed" });
      if (isRefused) this.fail(error);
    }
  }

  #respond({ head, body, isComplete }: Extract<CallReport, { readonly type: "head" }>): void {
    this.#hasResponded = true;
    const plain = { status: head.status, headers: toResponseHeaders(head) };
    if (isComplete) {
      this.#response.resolve({ ...plain, body: body && toBuffer(body) });
      this.#finish();
    } else {
      clearTimeout(this.#timer ?? undefined);
      this.#response.resolve({ ...plain, body: this.#stream() });
    }
  }

  #stream(): ResponseBody {
    const done = { value: undefined, done: true } as const;
    const next = async () => {
      const data = await this.#nextPiece();
      return data === null ? done : { value: { data, release: () => {} }, done: false as const };
    };
    const stop = async () => {
      this.abandon();
      return done;
    };
    const stream = { next, return: stop, [Symbol.asyncIterator]: () => stream };
    return stream;
  }

  async #nextPiece(): Promise<Buffer | null> {
    if (this.#early) {
      if (this.#early.error) throw this.#early.error;
      return null;
    }
    this.#piece = Promise.withResolvers();
    this.#options.send({ type: "pull" });
    this.#startTimer();
    try {
      return await this.#piece.promise;
    } finally {
      this.#piece = null;
      clearTimeout(this.#timer ?? undefined);
    }
  }

  #receivePiece(piece: Uint8Array | null): void {
    if (this.#piece) this.#piece.resolve(piece && toBuffer(piece));
    else this.#early = { error: null };
    if (piece === null) this.#finish();
  }

  #startTimer(): void {
    clearTimeout(this.#timer ?? undefined);
    this.#timer = setTimeout(() => this.#timeOut(), this.#options.timeoutMs).unref();
  }

  #timeOut(): void {
    const error = this.#options.onTimeout();
    if (this.#isDone) return;
    this.#options.send({ type: "abort" });
    this.fail(error);
  }

  abandon(): void {
    // A socket notices by itself that it is closed.
    if (this.#isDone || this.#socket) return;
    this.#options.send({ type: "abort" });
    this.fail(workerFailed());
  }

  leave(): void {
    this.#isLeaving = true;
    this.#socket?.leave();
  }

  #upgrade(protocol: string): void {
    clearTimeout(this.#timer ?? undefined);
    this.#hasResponded = true;
    const { send, timeoutMs } = this.#options;
    // The next call may end the request, which then has its response.
    this.#response.resolve(SWITCHED_PROTOCOLS);
    this.#request.openSocket?.(protocol, (accepted, memory) => {
      const [onTimeout, onLeft] = [() => this.#timeOut(), () => this.#finish()];
      this.#socket = new FunctionSocket(accepted, { send, memory, timeoutMs, onTimeout, onLeft });
      return this.#socket;
    });
    // The client may have left before its socket was opened.
    if (!this.#socket) this.abandon();
    else if (this.#isLeaving) this.#socket.leave();
  }

  #finish(error?: Error): void {
    if (this.#isDone) return;
    this.#isDone = true;
    clearTimeout(this.#timer ?? undefined);
    this.#response.promise.catch(() => {});
    // The next thread gets the body of a request that was not begun.
    if (!(error instanceof CallNotBegun)) endBody(this.#request);
    this.#options.onDone();
  }
}

/** Lets the client send no more of the body. */
export function endBody({ body }: FunctionRequest): void {
  // A piece that is awaited comes first, and may never come.
  void Promise.race([body?.return?.(), sleep(0)]).catch(() => {});
}

/** Headers of the connection, which are not passed between client and function. */
const CONNECTION_HEADERS: ReadonlySet<string> = new Set([
  ...["connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade"],
  "content-length",
]);

/** Converts headers to the spelling of the service's own headers, so that the function's headers replace those. */
function toResponseHeaders({ headers }: ResponseHead): Record<string, string | string[]> {
  const all: Record<string, string | string[]> = {};
  for (const [name, value] of headers) {
    if (CONNECTION_HEADERS.has(name)) continue;
    const spelt = name.replaceAll(/(^|-)[a-z]/g, (letter) => letter.toUpperCase());
    const before = all[spelt];
    all[spelt] = before === undefined ? value : [before, value].flat();
  }
  return all;
}

/** Returns the headers for the function, without those of the connection. */
export function toCallHeaders(headers: NodeJS.Dict<string | string[]>): HeaderList {
  return Object.entries(headers).flatMap(([name, value]) =>
    value === undefined || (CONNECTION_HEADERS.has(name) && name !== "content-length") || name === "expect"
      ? []
      : [value].flat().map((each) => [name, each] as const),
  );
}
