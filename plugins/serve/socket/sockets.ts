import { randomUUID } from "node:crypto";
import { type IncomingHttpHeaders, type IncomingMessage, STATUS_CODES } from "node:http";
import type { Duplex } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { WebSocket, WebSocketServer } from "ws";
import type { Config } from "../../../engine/config/config.ts";
import type { Logger } from "../../../engine/log.ts";
import { type Channel, Connection, type ConnectionServices } from "./connection.ts";
import { KEEP_ALIVE, SUBSCRIPTIONS_TRANSPORT_WS, SubscriptionsTransportWs } from "./subscriptions-transport-ws.ts";
import { makeTransportWs, TRANSPORT_WS, type TransportWs } from "./transport-ws.ts";

export type SocketsOptions = {
  readonly services: ConnectionServices;
  readonly corsOrigins: Config["corsOrigins"];
  readonly log: Pick<Logger, "debug" | "error">;
  /** How often the other end must show that it is still there. */
  readonly pingMs?: number;
  readonly initTimeoutMs?: number;
};

/** A document and its variables; files do not travel here. */
const MOST_MESSAGE_BYTES = 1024 * 1024;
/** How often it is asked whether those who are connected may still be. What is known of an account is four seconds old at most. */
const LOOK_MS = 500;
/** How long a client may take to answer that it is told goodbye. */
const FAREWELL_MS = 1_000;

type Member = {
  readonly socket: WebSocket;
  readonly connection: Connection;
  /** Null where the protocol knows no such message. */
  readonly keepAlive: () => string | null;
  hasAnswered: boolean;
};

/** All that is connected by WebSocket. */
export class Sockets {
  readonly #options: Required<SocketsOptions>;
  readonly #server = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    maxPayload: MOST_MESSAGE_BYTES,
    handleProtocols: (offered) => [TRANSPORT_WS, SUBSCRIPTIONS_TRANSPORT_WS].find((name) => offered.has(name)) ?? false,
  });
  readonly #transport: TransportWs;
  readonly #members = new Set<Member>();
  readonly #pings: NodeJS.Timeout;
  readonly #looks: NodeJS.Timeout;
  #isClosing = false;

  constructor(options: SocketsOptions) {
    this.#options = { pingMs: 20_000, initTimeoutMs: 10_000, ...options };
    this.#transport = makeTransportWs(this.#options);
    this.#pings = setInterval(() => this.#ping(), this.#options.pingMs).unref();
    this.#looks = setInterval(() => this.#look(), LOOK_MS).unref();
  }

  /** A request for a socket, at the address that is ours. */
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    if (this.#isClosing) refuse(socket, 503);
    else if (!this.#isWelcome(request.headers)) refuse(socket, 403);
    else this.#server.handleUpgrade(request, socket, head, (accepted) => this.#accept(accepted, request));
  }

  state(): { sockets: number; operations: number } {
    let operations = 0;
    for (const { connection } of this.#members) operations += connection.openOperations;
    return { sockets: this.#members.size, operations };
  }

  /** Takes nobody in, lets what is under way end, says goodbye; whoever is left after that time is cut off. */
  async close(milliseconds: number): Promise<void> {
    this.#isClosing = true;
    for (const { connection } of this.#members) connection.leave();
    const end = performance.now() + milliseconds + FAREWELL_MS;
    while (this.#members.size > 0 && performance.now() < end) await sleep(10);
    for (const { socket } of this.#members) socket.terminate();
    clearInterval(this.#pings);
    clearInterval(this.#looks);
  }

  /** Browsers open sockets for any page and ask nobody: the rule of CORS has to be applied here. Other clients send no origin. */
  #isWelcome(headers: IncomingHttpHeaders): boolean {
    const { corsOrigins, services } = this.#options;
    return headers.origin === undefined || corsOrigins === "*" || services.crossSite.isOwnPage(headers);
  }

  #accept(socket: WebSocket, { headers, url = "" }: IncomingMessage): void {
    const { services, log } = this.#options;
    const channel = toChannel(socket);
    const id = String(headers["x-request-id"] ?? randomUUID());
    const connection = new Connection(services, channel, { id, rawQuery: url.split("?")[1] ?? "", headers });
    const { take, gone, keepAlive } = this.#speak(socket, connection, channel);
    const member: Member = { socket, connection, keepAlive, hasAnswered: true };
    this.#members.add(member);

    socket.on("message", (data) => {
      take(String(data)).catch((error: unknown) => {
        log.error({ request: id, err: error }, "a socket's message could not be handled");
        socket.close(4500, "Internal error");
      });
    });
    socket.on("pong", () => {
      member.hasAnswered = true;
    });
    socket.on("error", (error) => log.debug({ request: id, err: error }, "a socket failed"));
    socket.once("close", (code, reason) => {
      this.#members.delete(member);
      connection.gone();
      gone(code, String(reason));
      log.debug({ request: id, code }, "a socket was closed");
    });
  }

  #speak(socket: WebSocket, connection: Connection, channel: Channel) {
    if (socket.protocol === SUBSCRIPTIONS_TRANSPORT_WS) {
      const speaker = new SubscriptionsTransportWs(connection, channel, this.#options);
      return {
        take: (text: string) => speaker.take(text),
        gone: () => speaker.gone(),
        keepAlive: () => (speaker.isAcknowledged ? KEEP_ALIVE : null),
      };
    }
    let take = async (_text: string) => {};
    const closed = this.#transport.opened(
      {
        protocol: socket.protocol,
        send: channel.send,
        close: channel.close,
        onMessage: (handle) => {
          take = handle;
        },
      },
      connection,
    );
    return {
      take: (text: string) => take(text),
      gone: (code: number, reason: string) => void closed(code, reason).catch(() => {}),
      keepAlive: () => null,
    };
  }

  #look(): void {
    const { log } = this.#options;
    for (const { connection } of this.#members) {
      // While the database is away nothing is told on a socket either.
      connection.look().catch((error: unknown) => log.debug({ err: error }, "an account could not be looked at"));
    }
  }

  #ping(): void {
    for (const member of this.#members) {
      const { socket, keepAlive } = member;
      if (!member.hasAnswered) {
        socket.terminate();
        continue;
      }
      member.hasAnswered = false;
      socket.ping();
      const message = keepAlive();
      if (message) socket.send(message);
    }
  }
}

function toChannel(socket: WebSocket): Channel {
  return {
    send: (text) =>
      new Promise((resolve) => {
        if (socket.readyState !== WebSocket.OPEN) resolve();
        // What fails here is a client that has left, which the socket's end tells.
        else socket.send(text, () => resolve());
      }),
    close: (code, reason) => socket.close(code, reason),
  };
}

function refuse(socket: Duplex, status: 403 | 503): void {
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
}
