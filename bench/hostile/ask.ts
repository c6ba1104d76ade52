import { type Agent, request } from "node:http";

export type Question = {
  readonly method?: "GET" | "POST";
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
  readonly agent?: Agent | false;
  readonly timeoutMs?: number;
  /** The local address of the connection, which the service sees as the caller's. */
  readonly localAddress?: string;
};

export type Answer = { readonly status: number; readonly text: string };

/** The maximum length of a response that is kept. */
const KEPT_LENGTH = 4_000;

/** Reads the whole response; rejects if there is none, or only a part of one. */
export function ask(
  url: string,
  { method = "GET", headers = {}, body, agent = false, timeoutMs = 30_000, localAddress }: Question = {},
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const length = body === undefined ? {} : { "Content-Length": Buffer.byteLength(body) };
    const sent = request(url, { method, agent, localAddress, headers: { ...headers, ...length } }, (response) => {
      let text = "";
      response.setEncoding("utf8");
      response.on("data", (chunk) => {
        if (text.length < KEPT_LENGTH) text += chunk;
      });
      response.on("end", () => end(() => resolve({ status: response.statusCode!, text })));
      response.on("error", (error) => end(() => reject(error)));
    });
    const impatience = setTimeout(() => sent.destroy(new Error("no answer in time")), timeoutMs);
    const end = (settle: () => void) => {
      clearTimeout(impatience);
      settle();
    };
    // A client that is refused early may fail to send the rest of its request: then the response counts.
    sent.on("error", (error) => setImmediate(() => end(() => reject(error))));
    sent.end(body);
  });
}
