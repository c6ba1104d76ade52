import { once } from "node:events";
import http from "node:http";
import { duplexPair, pipeline, Readable } from "node:stream";
import type { Served } from "./deno-namespace.ts";

type Address = { readonly hostname: string; readonly port: number };

/**
 * Makes servers of `node:http` serve the function, as on Supabase: those of express and fastify, for example. They listen on
 * no port, but get each request by a connection in memory.
 */
export function serveNodeServers(served: Served): void {
  const listen = function (this: http.Server, ...options: readonly unknown[]): http.Server {
    const onListening = options.findLast((each) => typeof each === "function");
    if (onListening) this.once("listening", onListening as () => void);
    this.address = () => ({ address: "0.0.0.0", family: "IPv4", port: portOf(options) });
    served.handler = (request, { remoteAddr }) => passRequest(this, request, remoteAddr);
    served.onError = null;
    process.nextTick(() => {
      this.emit("listening");
      served.onRegistered();
    });
    return this;
  };
  http.Server.prototype.listen = listen as typeof http.Server.prototype.listen;
}

function portOf([first]: readonly unknown[]): number {
  const port = typeof first === "object" ? (first as { readonly port?: unknown } | null)?.port : first;
  return Number(port) || 0;
}

async function passRequest(server: http.Server, request: Request, { hostname, port }: Address): Promise<Response> {
  const [clientSide, serverSide] = duplexPair();
  server.emit("connection", Object.assign(serverSide, { remoteAddress: hostname, remotePort: port }));
  const { pathname, search } = new URL(request.url);
  const outgoing = http.request({
    createConnection: () => clientSide,
    method: request.method,
    path: pathname + search,
    headers: toNodeHeaders(request.headers),
  });
  request.signal.addEventListener("abort", () => outgoing.destroy());
  const responded = once(outgoing, "response");
  // A client that goes away while it sends or receives must not end the thread.
  outgoing.on("error", () => {});
  if (request.body)
    pipeline(Readable.fromWeb(request.body as Parameters<typeof Readable.fromWeb>[0]), outgoing, () => {});
  else outgoing.end();
  const [incoming] = (await responded) as [http.IncomingMessage];
  return toResponse(incoming, request.method);
}

function toNodeHeaders(headers: Headers): http.OutgoingHttpHeaders {
  // Each request has a connection of its own.
  return { ...Object.fromEntries(headers), connection: "close" };
}

function toResponse(incoming: http.IncomingMessage, method: string): Response {
  const { statusCode: status = 500, rawHeaders } = incoming;
  const headers = new Headers();
  for (let index = 0; index < rawHeaders.length; index += 2) headers.append(rawHeaders[index]!, rawHeaders[index + 1]!);
  const hasBody = method !== "HEAD" && ![204, 205, 304].includes(status);
  if (!hasBody) incoming.resume();
  return new Response(hasBody ? (Readable.toWeb(incoming) as ReadableStream) : null, { status, headers });
}
