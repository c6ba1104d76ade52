import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { WebSocket } from "ws";
import type { Config } from "#config";
import {
  type AcceptedSocket,
  rejectUpgrade,
  SequentialReader,
  SocketHost,
  type SocketMemory,
  type SocketSession,
} from "#http/sockets";
import { ByteQuota } from "#runtime";
import { type PausableSource, runStepwise, waitForLargeWorkSlot } from "#runtime/concurrency";
import type { Logger } from "#runtime/log";
import { LARGE_BODY_BYTES, scanBody } from "../request/parse.ts";
import { type GraphqlSocketDependencies, type SocketChannel, SocketConnection } from "./connection.ts";
import {
  makeTransportWs,
  SUBSCRIPTIONS_TRANSPORT_WS,
  SubscriptionsTransportWs,
  TRANSPORT_WS,
  type TransportWs,
} from "./protocols.ts";

export type GraphqlSocketsOptions = {
  readonly services: GraphqlSocketDependencies;
  readonly corsOrigins: Config["corsOrigins"];
  /** The client's address, as far as the proxies in front of the service are trusted. */
  readonly clientAddress: (request: IncomingMessage) => string | null;
  readonly log: Pick<Logger, "debug" | "error">;
  readonly pingMs?: number;
  readonly initTimeoutMs?: number;
};

/** A document and its variables; files are not sent by WebSocket. */
const MAX_MESSAGE_BYTES = 1024 * 1024;
/** The limit before the client is authenticated: such a message has credentials and information about the client. */
const MAX_INIT_MESSAGE_BYTES = 64 * 1024;
/** How long to wait for the client's close frame. */
const CLOSE_TIMEOUT_MS = 1_000;
const TRY_AGAIN_LATER = 1013;

/** The GraphQL WebSockets, in both protocols. */
export class GraphqlSockets {
  readonly #options: Required<GraphqlSocketsOptions>;
  readonly #host: SocketHost<GraphqlSession>;
  readonly #transport: TransportWs;

  constructor(options: GraphqlSocketsOptions) {
    this.#options = { pingMs: 20_000, initTimeoutMs: 10_000, ...options };
    this.#transport = makeTransportWs(this.#options);
    const { services, corsOrigins, log, pingMs } = this.#options;
    this.#host = new SocketHost({
      server: {
        maxPayload: MAX_MESSAGE_BYTES,
        handleProtocols: (offered) =>
          [TRANSPORT_WS, SUBSCRIPTIONS_TRANSPORT_WS].find((name) => offered.has(name)) ?? false,
      },
      corsOrigins,
      csrf: services.csrf,
      incoming: services.memory.incoming,
      pingMs,
      log,
    });
  }

  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    const rejection = this.#host.rejectionOf(request.headers);
    if (rejection) rejectUpgrade(socket, rejection.status);
    else this.#host.accept(request, socket, head, (accepted) => this.#open(accepted));
  }

  #open(accepted: AcceptedSocket): GraphqlSession {
    return new GraphqlSession(accepted, this.#options, this.#transport);
  }

  state(): { sockets: number; operations: number } {
    let operations = 0;
    for (const { connection } of this.#host.sessions()) operations += connection.openOperations;
    return { sockets: this.#host.size, operations };
  }

  /** Accepts no more sockets; open operations may finish within the given time. */
  close(milliseconds: number): Promise<void> {
    return this.#host.close(milliseconds + CLOSE_TIMEOUT_MS);
  }
}

/** The handler of one of the two protocols, on one socket. */
type SocketProtocol = {
  handleMessage(text: string): Promise<void>;
  disconnected(code: number, reason: string): void;
  /** Null if the protocol has no such message, or not yet. */
  keepAliveMessage(): string | null;
};

class GraphqlSession implements SocketSession {
  readonly connection: SocketConnection;
  readonly #accepted: AcceptedSocket;
  readonly #log: GraphqlSocketsOptions["log"];
  readonly #protocol: SocketProtocol;
  readonly #order = new SequentialReader();

  constructor(accepted: AcceptedSocket, options: Required<GraphqlSocketsOptions>, transport: TransportWs) {
    const { services, clientAddress, log, initTimeoutMs } = options;
    const { webSocket, request, id, reading } = accepted;
    const { headers, url = "" } = request;
    const channel = makeSocketChannel(webSocket, reading, services.memory);
    const socketRequest = { id, rawQuery: url.split("?")[1] ?? "", headers, address: clientAddress(request) };
    this.#accepted = accepted;
    this.#log = log;
    this.connection = new SocketConnection(services, channel, socketRequest);
    this.#protocol =
      webSocket.protocol === SUBSCRIPTIONS_TRANSPORT_WS
        ? new SubscriptionsTransportWs(this.connection, channel, { initTimeoutMs })
        : handleTransport(this.connection, channel, webSocket.protocol, transport);
  }

  async receive(data: Buffer): Promise<void> {
    const { reading } = this.#accepted;
    if (!this.connection.isIdentified && data.length > MAX_INIT_MESSAGE_BYTES) {
      return this.close(4400, `Until it is acknowledged, a message has ${MAX_INIT_MESSAGE_BYTES} bytes at most`);
    }
    if (data.length <= LARGE_BODY_BYTES && this.#order.isIdle) return this.#protocol.handleMessage(String(data));
    reading.pause();
    const isAccepted = await this.#order.read(() => checkSize(data, this.connection)).finally(() => reading.resume());
    if (this.#accepted.webSocket.readyState !== WebSocket.OPEN) return;
    if (isAccepted) return this.#protocol.handleMessage(String(data));
    this.close(4400, "A message has too many values or levels");
  }

  close(code: number, reason: string): void {
    this.#accepted.webSocket.close(code, reason);
  }

  drain(): void {
    this.connection.leave();
  }

  checkCredentials(): void {
    // While the database cannot be reached, the socket stays open.
    this.connection
      .recheckAccount()
      .catch((error: unknown) => this.#log.debug({ err: error }, "an account could not be checked"));
  }

  onClosed(code: number, reason: string): void {
    this.connection.disconnected();
    this.#protocol.disconnected(code, reason);
  }

  keepAlive(): void {
    const message = this.#protocol.keepAliveMessage();
    if (message) this.#accepted.webSocket.send(message);
  }
}

/**
 * graphql-ws' adapter for `ws` is not used: it hands over each message at once, and writes errors to the console, so that there would be no
 * limit on what is parsed and no back-pressure.
 */
function handleTransport(
  connection: SocketConnection,
  channel: SocketChannel,
  protocol: string,
  transport: TransportWs,
): SocketProtocol {
  let handleMessage = async (_text: string) => {};
  const closed = transport.opened(
    {
      protocol,
      send: (text) => channel.send(connection.withData(text)),
      close: channel.close,
      onMessage: (handle) => {
        handleMessage = handle;
      },
    },
    connection,
  );
  return {
    handleMessage: (text) => {
      // `onSubscribe` has read it when this returns.
      connection.message = text;
      const handled = handleMessage(text);
      connection.message = "";
      return handled;
    },
    disconnected: (code, reason) => void closed(code, reason).catch(() => {}),
    keepAliveMessage: () => null,
  };
}

/** False if the message is too large to parse. Invalid JSON is rejected by the protocol. */
async function checkSize(data: Buffer, connection: SocketConnection): Promise<boolean> {
  if (data.length <= LARGE_BODY_BYTES) return true;
  if (data.length > MAX_INIT_MESSAGE_BYTES) {
    const scan = await runStepwise(scanBody(data));
    if (scan === "too deep" || scan === "too many values") return false;
  }
  await waitForLargeWorkSlot(connection.callerKey);
  return true;
}

function makeSocketChannel(
  socket: WebSocket,
  reading: PausableSource,
  { unsent: unsentOfAll }: SocketMemory,
): SocketChannel {
  const unsent = new ByteQuota(Number.POSITIVE_INFINITY, unsentOfAll);
  return {
    send: (text) =>
      new Promise((resolve) => {
        if (socket.readyState !== WebSocket.OPEN) return resolve();
        if (unsent.shortageOf(text.length)) {
          socket.close(TRY_AGAIN_LATER, "Too much waits to be read by clients: try again later");
          socket.terminate();
          return resolve();
        }
        unsent.hold(text.length);
        // Fails only if the client has disconnected, which the socket's `close` reports.
        socket.send(text, () => {
          unsent.release(text.length);
          resolve();
        });
      }),
    close: (code, reason) => socket.close(code, reason),
    ...reading,
  };
}
