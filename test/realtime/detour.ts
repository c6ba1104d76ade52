import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";

/** A TCP proxy to a local service that can reset its connections. */
export class Detour {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #port: number;

  static async to(url: string): Promise<Detour> {
    const detour = new Detour(url);
    await once(detour.#server.listen(0, "127.0.0.1"), "listening");
    return detour;
  }

  private constructor(url: string) {
    this.#port = portOf(url);
    this.#server = createServer((near) => {
      const far = connect(this.#port, "127.0.0.1");
      for (const [socket, other] of [
        [near, far],
        [far, near],
      ] as const) {
        this.#sockets.add(socket);
        socket.pipe(other);
        socket.on("error", () => {});
        socket.on("close", () => {
          this.#sockets.delete(socket);
          other.destroy();
        });
      }
    });
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  leadTo(url: string): void {
    this.#port = portOf(url);
  }

  cut(): void {
    for (const socket of this.#sockets) socket.resetAndDestroy();
  }

  async close(): Promise<void> {
    this.#server.close();
    this.cut();
    await once(this.#server, "close");
  }
}

function portOf(url: string): number {
  return Number(new URL(url).port);
}
