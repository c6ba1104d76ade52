import { type Agent, request } from "node:http";

export type Question = {
  readonly method?: "GET" | "POST";
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
  readonly agent?: Agent | false;
  readonly timeoutMs?: number;
  /** Of this machine: the one that the service sees. */
  readonly localAddress?: string;
};

export type Answer = { readonly status: number; readonly text: string };

/** No more of an answer is kept. */
const KEPT_LENGTH = 4_000;

/** Reads the whole answer; rejects where there is none, or only a part of one. */
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
    // Whoever is refused early may not be able to send the rest: then the answer counts.
    sent.on("error", (error) => setImmediate(() => end(() => reject(error))));
    sent.end(body);
  });
}
