import { get, type IncomingMessage } from "node:http";
import { signClaims } from "../comparison/sign-claims.ts";

/** So many of them connect at once. */
const TOGETHER = 50;
const NUMBER = /"n(\d+)"/g;

/** Clients of live queries, each of a caller of its own, that note when numbers arrive in their results. */
export class LiveClients {
  readonly #streams: IncomingMessage[] = [];
  /** Called with each number that has arrived, by the client's. */
  onNumber: (number: number, client: number) => void = () => {};

  async join(base: URL, count: number, pathOf: (client: number) => string): Promise<void> {
    while (this.#streams.length < count) {
      const first = this.#streams.length;
      const opening = Array.from({ length: TOGETHER }, (_, at) => this.#open(base, first + at, pathOf(first + at)));
      this.#streams.push(...(await Promise.all(opening)));
    }
  }

  close(): void {
    for (const stream of this.#streams) stream.destroy();
  }

  /** Resolves with the first event. */
  #open(base: URL, client: number, path: string): Promise<IncomingMessage> {
    const token = signClaims({ role: "authenticated", sub: String(client) });
    const headers = { accept: "text/event-stream", apikey: token, authorization: `Bearer ${token}` };
    return new Promise((resolve, reject) => {
      const request = get(new URL(path, base), { headers, agent: false }, (stream) => {
        stream.setEncoding("utf8");
        stream.on("data", (text: string) => {
          if (stream.statusCode !== 200) reject(new Error(`A live query was refused: ${text}`));
          resolve(stream);
          for (const [, number] of text.matchAll(NUMBER)) this.onNumber(Number(number), client);
        });
        stream.on("error", () => {});
      });
      request.on("error", reject);
    });
  }
}
