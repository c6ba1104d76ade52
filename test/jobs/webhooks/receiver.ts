import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Webhook } from "standardwebhooks";

export type ReceivedRequest = {
  readonly id: string;
  /** The path with the query. */
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
};

type Respond = (response: ServerResponse, request: ReceivedRequest) => void;

/** Starts a receiver of webhooks that keeps their requests. `respond` may be replaced; at first it is 200 to everything. */
export async function startReceiver() {
  const requests: ReceivedRequest[] = [];
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const received = {
      id: String(request.headers["webhook-id"]),
      path: request.url ?? "",
      headers: request.headers,
      body: Buffer.concat(chunks).toString("utf8"),
    };
    requests.push(received);
    receiver.respond(response, received);
  });
  const listen = async (port: number) => {
    server.listen(port, "127.0.0.1");
    await once(server, "listening");
    return (server.address() as AddressInfo).port;
  };
  const port = await listen(0);
  const receiver = {
    respond: ((response) => void response.end()) as Respond,
    requests,
    url: `http://127.0.0.1:${port}/hook`,
    async close() {
      if (!server.listening) return;
      const closed = once(server, "close");
      server.close();
      server.closeAllConnections();
      await closed;
    },
    /** Listens again after `close`. */
    reopen: () => listen(port),
  };
  return receiver;
}

export type Receiver = Awaited<ReturnType<typeof startReceiver>>;

/** Verifies the signature as receivers do, with the library of the specification; throws if it is wrong. */
export function verify({ body, headers }: ReceivedRequest, secret: string): unknown {
  return new Webhook(secret).verify(body, headers as Record<string, string>);
}
