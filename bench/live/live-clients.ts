import { type IncomingMessage, request as send } from "node:http";
import { signClaims } from "../comparison/sign-claims.ts";

/** The number of clients that connect at once. */
const TOGETHER = 50;
const NUMBER = /"n(\d+)"/g;

/** A request for a stream; with a body, a POST of JSON. */
type StreamRequest = { readonly path: string; readonly body?: string };

/** Returns the request for a client's stream; `request` sends further requests of the client. */
export type StreamOf = (
  client: number,
  request: (path: string) => Promise<Response>,
) => StreamRequest | Promise<StreamRequest>;

/** Reads the rows of a shape; its changes arrive as events. */
export async function openLiveShape(
  path: string,
  request: (path: string) => Promise<Response>,
): Promise<StreamRequest> {
  const response = await request(`${path}&offset=-1`);
  await response.arrayBuffer();
  const [handle, offset] = ["handle", "offset"].map((name) => response.headers.get(`electric-${name}`));
  return { path: `${path}&handle=${handle}&offset=${offset}&live=true&live_sse=true` };
}

/** Clients of live queries or shapes, each with its own caller; they report when numbers arrive in their rows. */
export class LiveClients {
  readonly #streams: IncomingMessage[] = [];
  /** Called with each number that has arrived, and the number of the client. */
  onNumber: (number: number, client: number) => void = () => {};

  async join(base: URL, count: number, streamOf: StreamOf): Promise<void> {
    while (this.#streams.length < count) {
      const first = this.#streams.length;
      const opening = Array.from({ length: TOGETHER }, (_, at) => this.#open(base, first + at, streamOf));
      this.#streams.push(...(await Promise.all(opening)));
    }
  }

  close(): void {
    for (const stream of this.#streams) stream.destroy();
  }

  /** Resolves with the first event. */
  async #open(base: URL, client: number, streamOf: StreamOf): Promise<IncomingMessage> {
    const token = signClaims({ role: "authenticated", sub: String(client) });
    const credentials = { apikey: token, authorization: `Bearer ${token}` };
    const { path, body } = await streamOf(client, (first) => fetch(new URL(first, base), { headers: credentials }));
    const isPost = body !== undefined;
    const headers = {
      accept: "text/event-stream",
      ...(isPost && { "content-type": "application/json" }),
      ...credentials,
    };
    return new Promise((resolve, reject) => {
      const options = { method: isPost ? "POST" : "GET", headers, agent: false };
      const request = send(new URL(path, base), options, (stream) => {
        stream.setEncoding("utf8");
        stream.on("data", (text: string) => {
          if (stream.statusCode !== 200) reject(new Error(`${path} was refused: ${text}`));
          resolve(stream);
          for (const [, number] of text.matchAll(NUMBER)) this.onNumber(Number(number), client);
        });
        stream.on("error", () => {});
      });
      request.on("error", reject);
      request.end(body);
    });
  }
}
