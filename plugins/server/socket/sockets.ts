import { randomUUID } from "node:crypto";
import { type IncomingHttpHeaders, type IncomingMessage, STATUS_CODES } from "node:http";
import type { Duplex } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { WebSocket, WebSocketServer } from "ws";
import {
  type PausableSource,
  paceReading,
  waitForLargeWorkSlot,
} from "../../../engine/concurrency/event-loop-sharing.ts";
import { SequentialReader } from "../../../engine/concurrency/sequential-reader.ts";
import { runStepwise } from "../../../engine/concurrency/stepwise.ts";
import type { Config } from "../../../engine/config/config.ts";
import { ByteQuota } from "../../../engine/memory/byte-quota.ts";
import { type SocketMemory, UnfinishedMessage } from "../../../engine/memory/socket-memory.ts";
import type { Logger } from "../../../engine/output/log.ts";
import { LARGE_BODY_BYTES, scanBody } from "../parse-request.ts";
import { type GraphqlSocketDependencies, type SocketChannel, SocketConnection } from "./connection.ts";
import { KEEP_ALIVE, SUBSCRIPTIONS_TRANSPORT_WS, SubscriptionsTransportWs } from "./subscriptions-transport-ws.ts";
import { makeTransportWs, TRANSPORT_WS, type TransportWs } from "./transport-ws.ts";

export type GraphqlSocketsOptions = {
  readonly services: GraphqlSocketDependencies;
  readonly corsOrigins: Config["corsOrigins"];
  /** Of the client, as far as the proxies in front are to be believed. */
  readonly clientAddress: (request: IncomingMessage) => string | null;
  readonly log: Pick<Logger, "debug" | "error">;
  /** How often the other end must show that it is still there. */
  readonly pingMs?: number;
  readonly initTimeoutMs?: number;
};

/** A document and its variables; files do not travel here. */
const MAX_MESSAGE_BYTES = 1024 * 1024;
/** Before it is known who asks: credentials, and what a client says of itself. */
const MAX_INIT_MESSAGE_BYTES = 64 * 1024;
/** How often it is asked whether those who are connected may still be. What is known of an account is four seconds old at most. */
const RECHECK_MS = 500;
/** How long a client may take to answer that it is told goodbye. */
const CLOSE_TIMEOUT_MS = 1_000;
const TRY_AGAIN_LATER = 1013;

type GraphqlSocketClient = {
  readonly socket: WebSocket;
  readonly connection: SocketConnection;
  /** Null where the protocol knows no such message. */
  readonly keepAlive: () => string | null;
  hasAnswered: boolean;
};

/** All that is connected by WebSocket. */
export class GraphqlSockets {
  readonly #options: Required<GraphqlSocketsOptions>;
  readonly #server = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    maxPayload: MAX_MESSAGE_BYTES,
    handleProtocols: (offered) => [TRANSPORT_WS, SUBSCRIPTIONS_TRANSPORT_WS].find((name) => offered.has(name)) ?? false,
  });
  readonly #transport: TransportWs;
  readonly #members = new Set<GraphqlSocketClient>();
  readonly #pings: NodeJS.Timeout;
  readonly #looks: NodeJS.Timeout;
  #isClosing = false;

  constructor(options: GraphqlSocketsOptions) {
    this.#options = { pingMs: 20_000, initTimeoutMs: 10_000, ...options };
    this.#transport = makeTransportWs(this.#options);
    this.#pings = setInterval(() => this.#ping(), this.#options.pingMs).unref();
    this.#looks = setInterval(() => this.#look(), RECHECK_MS).unref();
  }

  /** A request for a socket, at the address that is ours. */
  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    if (this.#isClosing) refuse(socket, 503);
    else if (!this.#isWelcome(request.headers)) refuse(socket, 403);
    else this.#server.handleUpgrade(request, socket, head, (accepted) => this.#accept(accepted, request, socket));
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
    const end = performance.now() + milliseconds + CLOSE_TIMEOUT_MS;
    while (this.#members.size > 0 && performance.now() < end) await sleep(10);
    for (const { socket } of this.#members) socket.terminate();
    clearInterval(this.#pings);
    clearInterval(this.#looks);
  }

  /** Browsers open sockets for any page and ask nobody: the rule of CORS has to be applied here. Other clients send no origin. */
  #isWelcome(headers: IncomingHttpHeaders): boolean {
    const { corsOrigins, services } = this.#options;
    return headers.origin === undefined || corsOrigins === "*" || services.csrf.isAllowedOrigin(headers);
  }

  #accept(socket: WebSocket, request: IncomingMessage, connected: Duplex): void {
    const { services, clientAddress, log } = this.#options;
    const { memory } = services;
    const { headers, url = "" } = request;
    const address = clientAddress(request);
    const reading = countPauses(socket);
    const channel = toChannel(socket, reading, memory);
    const unfinished = new UnfinishedMessage(connected, memory.incoming, () => {
      cutOff(socket, "Too many messages arrive at once: try again later");
    });
    const id = String(headers["x-request-id"] ?? randomUUID());
    const connection = new SocketConnection(services, channel, {
      id,
      rawQuery: url.split("?")[1] ?? "",
      headers,
      address,
    });
    const { take, gone, keepAlive } = this.#speak(socket, connection, channel);
    const member: GraphqlSocketClient = { socket, connection, keepAlive, hasAnswered: true };
    this.#members.add(member);

    connected.prependListener("data", ({ length }: Buffer) => paceReading(reading, length));
    const order = new SequentialReader();
    const read = async (data: Buffer): Promise<void> => {
      if (data.length <= LARGE_BODY_BYTES && order.isIdle) return take(String(data));
      reading.pause();
      const fits = await order.read(() => isFit(data, connection)).finally(() => reading.resume());
      return fits ? take(String(data)) : socket.close(4400, "A message has too many values or levels");
    };
    socket.on("message", (data: Buffer) => {
      unfinished.completed();
      if (!connection.isIdentified && data.length > MAX_INIT_MESSAGE_BYTES) {
        return socket.close(4400, `Until it is acknowledged, a message has ${MAX_INIT_MESSAGE_BYTES} bytes at most`);
      }
      read(data).catch((error: unknown) => {
        log.error({ request: id, err: error }, "a socket's message could not be handled");
        socket.close(4500, "Internal error");
      });
    });
    socket.on("ping", (payload) => unfinished.controlFrame(payload));
    socket.on("pong", (payload) => {
      unfinished.controlFrame(payload);
      member.hasAnswered = true;
    });
    socket.on("error", (error) => log.debug({ request: id, err: error }, "a socket failed"));
    socket.once("close", (code, reason) => {
      this.#members.delete(member);
      connection.disconnected();
      gone(code, String(reason));
      log.debug({ request: id, code }, "a socket was closed");
    });
  }

  #speak(socket: WebSocket, connection: SocketConnection, channel: SocketChannel) {
    if (socket.protocol === SUBSCRIPTIONS_TRANSPORT_WS) {
      const speaker = new SubscriptionsTransportWs(connection, channel, this.#options);
      return {
        take: (text: string) => speaker.handleMessage(text),
        gone: () => speaker.disconnected(),
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
      take: (text: string) => {
        // It is read as far as `onSubscribe` before this returns.
        connection.message = text;
        const handled = take(text);
        connection.message = "";
        return handled;
      },
      gone: (code: number, reason: string) => void closed(code, reason).catch(() => {}),
      keepAlive: () => null,
    };
  }

  #look(): void {
    const { log } = this.#options;
    for (const { connection } of this.#members) {
      // While the database is away nothing is told on a socket either.
      connection
        .recheckAccount()
        .catch((error: unknown) => log.debug({ err: error }, "an account could not be looked at"));
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

/** False: it has too much in it to be parsed. What is no JSON at all is refused by who speaks the protocol. */
async function isFit(data: Buffer, owner: SocketConnection): Promise<boolean> {
  if (data.length <= LARGE_BODY_BYTES) return true;
  if (data.length > MAX_INIT_MESSAGE_BYTES) {
    const scan = await runStepwise(scanBody(data));
    if (scan === "too deep" || scan === "too many values") return false;
  }
  await waitForLargeWorkSlot(owner);
  return true;
}

/** Is paused until each that has paused it resumes it. */
function countPauses(socket: WebSocket): PausableSource {
  let pauses = 0;
  return {
    pause: () => {
      pauses++;
      socket.pause();
    },
    resume: () => {
      if (--pauses === 0) socket.resume();
    },
  };
}

function toChannel(socket: WebSocket, reading: PausableSource, { unsent: unsentOfAll }: SocketMemory): SocketChannel {
  const unsent = new ByteQuota(Number.POSITIVE_INFINITY, unsentOfAll);
  return {
    send: (text) =>
      new Promise((resolve) => {
        if (socket.readyState !== WebSocket.OPEN) return resolve();
        if (unsent.shortageOf(text.length)) {
          cutOff(socket, "Too much waits to be read by clients: try again later");
          return resolve();
        }
        unsent.hold(text.length);
        // What fails here is a client that has left, which the socket's end tells.
        socket.send(text, () => {
          unsent.release(text.length);
          resolve();
        });
      }),
    close: (code, reason) => socket.close(code, reason),
    ...reading,
  };
}

/** At once: neither what waits to be read nor what is arriving may take more memory. */
function cutOff(socket: WebSocket, reason: string): void {
  socket.close(TRY_AGAIN_LATER, reason);
  socket.terminate();
}

function refuse(socket: Duplex, status: 403 | 503): void {
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`);
}
