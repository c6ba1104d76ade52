import type { AcceptedSocket, SocketMemory, SocketSession } from "#http/sockets";
import { ByteQuota } from "#runtime";
import { MAX_REASON_BYTES, type SocketOrder, type SocketReport, type WithoutId } from "./thread/messages.ts";
import { toBuffer, toOwnBytes } from "./thread/transferred-bytes.ts";

/** Accepts the WebSocket that a client asks for, with a subprotocol, or none if it is "". */
export type OpenSocket = (
  protocol: string,
  open: (accepted: AcceptedSocket, memory: SocketMemory) => FunctionSocket,
) => void;

type FunctionSocketOptions = {
  readonly send: (order: WithoutId<SocketOrder>) => void;
  readonly memory: SocketMemory;
  /** The time limit for the function to take a message. A socket without a message for this time is closed. */
  readonly timeoutMs: number;
  /** Called when the function has not taken a message in time. */
  readonly onTimeout: () => void;
  /** Called when the function knows that the socket is closed. */
  readonly onLeft: () => void;
};

/** The bytes of messages that the function has not received yet. More are read later. */
const MAX_UNTAKEN_BYTES = 2 ** 20;
/** The least size that a message counts for. */
const MIN_COUNTED_BYTES = 512;
const GOING_AWAY = 1001;
const INTERNAL_ERROR = 1011;
const SERVICE_RESTART = 1012;
const TRY_AGAIN_LATER = 1013;

/** The gateway's side of a WebSocket that a function serves. */
export class FunctionSocket implements SocketSession {
  readonly #accepted: AcceptedSocket;
  readonly #options: FunctionSocketOptions;
  readonly #unsent: ByteQuota;
  readonly #timer: NodeJS.Timeout;
  #untakenBytes = 0;
  #isPaused = false;
  #failure: string | null = null;
  #hasFailed = false;

  constructor(accepted: AcceptedSocket, options: FunctionSocketOptions) {
    this.#accepted = accepted;
    this.#options = options;
    this.#unsent = new ByteQuota(Number.POSITIVE_INFINITY, options.memory.unsent);
    this.#timer = setTimeout(() => this.#timeOut(), options.timeoutMs).unref();
    accepted.webSocket.on("error", ({ message }) => {
      this.#failure = message;
    });
    options.send({ type: "opened" });
  }

  async receive(data: Buffer, isBinary: boolean): Promise<void> {
    if (!this.#isOpen) return;
    if (this.#untakenBytes === 0) this.#timer.refresh();
    const bytes = Math.max(data.length, MIN_COUNTED_BYTES);
    this.#countUntaken(bytes);
    this.#options.send({ type: "message", data: isBinary ? toOwnBytes(data) : String(data), bytes });
  }

  handle(report: WithoutId<SocketReport>): void {
    switch (report.type) {
      case "message":
        this.#sendToClient(report);
        break;
      case "taken":
        if (this.#isOpen) this.#timer.refresh();
        this.#countUntaken(-Math.min(report.bytes, this.#untakenBytes));
        break;
      case "close":
        this.close(report.code, report.reason);
        break;
      case "left":
        this.#options.onLeft();
        break;
    }
  }

  close(code: number | null, reason: string): void {
    // The client's closing frame comes after what it has sent before, which is not passed on.
    this.#pauseReading(false);
    this.#accepted.webSocket.close(code ?? undefined, reason);
  }

  drain(): void {
    this.close(GOING_AWAY, "The service is shutting down: connect again");
  }

  /** Closes the socket because its thread is replaced. */
  leave(): void {
    this.close(SERVICE_RESTART, "The function was replaced: connect again");
  }

  /** Closes the socket because the function has failed. Its thread has ended or will end, and is told nothing more. */
  fail({ message }: Error): void {
    this.#hasFailed = true;
    this.close(INTERNAL_ERROR, message.slice(0, MAX_REASON_BYTES));
  }

  /** The function verifies tokens itself, as for requests, and decides how long they last. */
  checkCredentials(): void {}

  onClosed(code: number, reason: string): void {
    clearTimeout(this.#timer);
    this.#countUntaken(-this.#untakenBytes);
    if (!this.#hasFailed) this.#options.send({ type: "closed", code, reason, failure: this.#failure });
  }

  #timeOut(): void {
    const { timeoutMs, onTimeout } = this.#options;
    if (this.#untakenBytes > 0) onTimeout();
    else this.close(GOING_AWAY, `There was no message for ${timeoutMs / 1000} s`);
  }

  get #isOpen(): boolean {
    const { webSocket } = this.#accepted;
    return webSocket.readyState === webSocket.OPEN;
  }

  #sendToClient({ data, bytes }: Pick<Extract<SocketReport, { readonly type: "message" }>, "data" | "bytes">): void {
    const { webSocket } = this.#accepted;
    if (!this.#isOpen) return;
    this.#timer.refresh();
    const counted = Math.max(bytes, MIN_COUNTED_BYTES);
    if (this.#unsent.shortageOf(counted)) {
      this.#failure = "Too much waits to be read by clients";
      this.close(TRY_AGAIN_LATER, `${this.#failure}: try again later`);
      webSocket.terminate();
      return;
    }
    this.#unsent.hold(counted);
    webSocket.send(typeof data === "string" ? data : toBuffer(data), () => {
      this.#unsent.release(counted);
      this.#options.send({ type: "sent", bytes });
    });
  }

  /** Reads no more than the function takes. */
  #countUntaken(change: number): void {
    this.#untakenBytes += change;
    this.#options.memory.incoming.hold(change);
    this.#pauseReading(this.#untakenBytes >= MAX_UNTAKEN_BYTES && this.#isOpen);
  }

  #pauseReading(isPaused: boolean): void {
    if (isPaused === this.#isPaused) return;
    this.#isPaused = isPaused;
    if (isPaused) this.#accepted.reading.pause();
    else this.#accepted.reading.resume();
  }
}
