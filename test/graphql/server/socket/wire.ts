import { once } from "node:events";
import { WebSocket } from "ws";

// biome-ignore lint/suspicious/noExplicitAny: what a message holds is what its test says.
type Message = any;

/** A client that sends the given messages, and keeps those that it receives. */
export class Wire {
  readonly socket: WebSocket;
  readonly #heard: Message[] = [];
  #closed: { code: number; reason: string } | null = null;
  #wake: () => void = () => {};

  constructor(url: string, protocol: string | string[], headers: Readonly<Record<string, string>> = {}) {
    this.socket = new WebSocket(url, protocol, { headers });
    this.socket.on("message", (data) => {
      this.#heard.push(JSON.parse(String(data)));
      this.#wake();
    });
    this.socket.on("close", (code, reason) => {
      this.#closed = { code, reason: String(reason) };
      this.#wake();
    });
    this.socket.on("error", () => {});
  }

  static async open(...given: ConstructorParameters<typeof Wire>): Promise<Wire> {
    const wire = new Wire(...given);
    await once(wire.socket, "open");
    return wire;
  }

  say(message: object | string): void {
    this.socket.send(typeof message === "string" ? message : JSON.stringify(message));
  }

  /** Returns the next message of any kind. */
  async hear(): Promise<Message> {
    while (this.#heard.length === 0) {
      if (this.#closed) throw new Error(`closed: ${this.#closed.code} ${this.#closed.reason}`);
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
    return this.#heard.shift();
  }

  /** The messages that came and were not asked for. */
  get unheard(): readonly Message[] {
    return this.#heard;
  }

  async closed(): Promise<{ code: number; reason: string }> {
    while (!this.#closed) await new Promise<void>((resolve) => (this.#wake = resolve));
    return this.#closed;
  }

  close(): void {
    this.socket.close();
  }
}
