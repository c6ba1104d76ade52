import { Agent, type IncomingHttpHeaders, type IncomingMessage, type OutgoingHttpHeaders, request } from "node:http";
import jwt from "jsonwebtoken";
import { SECRET } from "../../secret.ts";

export type Claims = { readonly role: string; readonly [claim: string]: unknown };

export type TestRequest = {
  readonly method?: string;
  readonly headers?: OutgoingHttpHeaders;
  /** An object goes as JSON. */
  readonly body?: string | Buffer | object | null;
  /** The caller of the request; by default that of the client. */
  readonly as?: Claims;
};

export type TestResponse = {
  readonly status: number;
  readonly reason: string;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  /** The body, read as JSON where it says that it is JSON. */
  // biome-ignore lint/suspicious/noExplicitAny: what an answer holds is what its test says.
  readonly body: any;
};

export type Client = {
  ask(path: string, sent?: TestRequest): Promise<TestResponse>;
  close(): void;
};

export const tokenOf = (claims: Claims) => jwt.sign(claims, SECRET, { noTimestamp: true });

/** Asks one service over connections of its own, below `/rest/v1`. Paths and headers go over the wire as they are written. */
export function openClient(
  serviceUrl: string,
  { as = { role: "anon" }, connections = 4 }: { readonly as?: Claims; readonly connections?: number } = {},
): Client {
  const agent = new Agent({ keepAlive: true, maxSockets: connections });
  const { hostname, port } = new URL(serviceUrl);
  const apikey = tokenOf({ role: "anon" });

  const ask = (path: string, { method = "GET", headers = {}, body = null, as: caller = as }: TestRequest = {}) =>
    new Promise<TestResponse>((resolve, reject) => {
      const content = body === null || typeof body === "string" || Buffer.isBuffer(body) ? body : JSON.stringify(body);
      const sent = request(
        {
          agent,
          hostname,
          port,
          method,
          path: `/rest/v1${wirePath(path)}`,
          headers: {
            apikey,
            Authorization: `Bearer ${tokenOf(caller)}`,
            ...(content !== null && {
              "Content-Type": "application/json",
              "Content-Length": Buffer.byteLength(content),
            }),
            ...headers,
          },
        },
        (response) => read(response).then(resolve, reject),
      );
      sent.on("error", reject);
      sent.end(content);
    });

  return { ask, close: () => agent.destroy() };
}

async function read(response: IncomingMessage): Promise<TestResponse> {
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk);
  const text = Buffer.concat(chunks).toString("utf8");
  const isJson = /^application\/([\w.-]+\+)?json/.test(response.headers["content-type"] ?? "") && text !== "";
  const body = isJson ? JSON.parse(text) : text;
  return { status: response.statusCode!, reason: reasonOf(response), headers: response.headers, text, body };
}

/** Node gives its bytes one by one. */
function reasonOf({ statusMessage = "" }: IncomingMessage): string {
  return Buffer.from(statusMessage, "latin1").toString("utf8");
}

/** Escapes the characters that HTTP allows in no request line. */
function wirePath(path: string): string {
  return path.toWellFormed().replace(/[^!-~]/gu, encodeURIComponent);
}
