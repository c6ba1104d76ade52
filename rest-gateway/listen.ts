import { once } from "node:events";
import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import type { Config } from "../engine/config/config.ts";

type Place = Pick<Config, "host" | "port" | "maxHeaderBytes" | "requestTimeout">;

/** Longer than the 60 seconds of common proxies, which would otherwise meet a connection that is just being closed. */
const KEEP_ALIVE_MS = 65_000;
const SWEEP_MS = 50;

export async function listen(
  handler: RequestListener,
  { host, port, maxHeaderBytes, requestTimeout }: Place,
): Promise<Server> {
  const server = createServer({ maxHeaderSize: maxHeaderBytes, keepAliveTimeout: KEEP_ALIVE_MS }, handler);
  server.requestTimeout = requestTimeout * 1000;
  server.headersTimeout = Math.min(server.requestTimeout, 60_000);
  server.on("clientError", refuseUnreadable);
  await bind(server, host, port);
  return server;
}

/** Fails before anything is started when the address cannot be had. */
export async function checkAddress({ host, port }: Pick<Config, "host" | "port">): Promise<void> {
  const server = createServer();
  await bind(server, host, port);
  await closed(server);
}

export function addressOf(server: Server, host: string): string {
  const { port } = server.address() as AddressInfo;
  const name = host === "0.0.0.0" || host === "::" ? "localhost" : host;
  return `http://${name.includes(":") ? `[${name}]` : name}:${port}`;
}

/** Takes no new connections, lets requests in flight end, and cuts off what is left after the given time. */
export async function drain(server: Server, milliseconds: number): Promise<void> {
  const cut = setTimeout(() => server.closeAllConnections(), milliseconds);
  // A connection whose request has just been answered waits for another one that must not come.
  const sweep = setInterval(() => server.closeIdleConnections(), SWEEP_MS);
  await closed(server);
  clearInterval(sweep);
  clearTimeout(cut);
}

async function bind(server: Server, host: string, port: number): Promise<void> {
  server.listen(port, host);
  try {
    await once(server, "listening");
  } catch (error) {
    throw inWords(error as NodeJS.ErrnoException, host, port);
  }
}

async function closed(server: Server): Promise<void> {
  await new Promise<void>((done, fail) => server.close((error) => (error ? fail(error) : done())));
}

function inWords(error: NodeJS.ErrnoException, host: string, port: number): Error {
  switch (error.code) {
    case "EADDRINUSE":
      return new Error(
        `Port ${port} of ${host} is in use. Stop what listens there, or set PORT to another port (0 takes a free one).`,
      );
    case "EACCES":
      return new Error(`This user may not listen on port ${port}. Set PORT to one above 1023.`);
    case "EADDRNOTAVAIL":
    case "ENOTFOUND":
      return new Error(`${host} is no address of this machine. Set HOST to one that is, or to 0.0.0.0 for all.`);
    default:
      return error;
  }
}

const UNREADABLE: Readonly<Record<string, readonly [status: string, code: string, message: string]>> = {
  HPE_HEADER_OVERFLOW: [
    "431 Request Header Fields Too Large",
    "VALIDATION_ERROR",
    "The request's headers are too large.",
  ],
  ERR_HTTP_REQUEST_TIMEOUT: ["408 Request Timeout", "TIMEOUT", "The request did not arrive in time."],
};

/** What is no HTTP at all never reaches a handler, but is refused in the same words. */
function refuseUnreadable(error: NodeJS.ErrnoException, socket: Socket): void {
  if (error.code === "ECONNRESET" || !socket.writable) {
    socket.destroy();
    return;
  }
  const [status, code, message] = UNREADABLE[error.code ?? ""] ?? [
    "400 Bad Request",
    "VALIDATION_ERROR",
    "This is no HTTP request.",
  ];
  const body = JSON.stringify({ error: { code, message } });
  socket.end(
    `HTTP/1.1 ${status}\r\nContent-Type: application/json; charset=utf-8\r\nContent-Length: ${body.length}\r\nConnection: close\r\n\r\n${body}`,
  );
}
