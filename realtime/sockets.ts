import { randomUUID } from "node:crypto";
import { type IncomingHttpHeaders, type IncomingMessage, STATUS_CODES } from "node:http";
import type { Duplex } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { type WebSocket, WebSocketServer } from "ws";
import type { CrossSite } from "../engine/caller/cross-site.ts";
import type { Config } from "../engine/config/config.ts";
import { toApiError } from "../engine/errors.ts";
import { UnfinishedMessage } from "../engine/memory/unfinished-message.ts";
import { paceReading } from "../engine/paced-reading.ts";
import { readApiKey } from "./api-key.ts";
import { Connection } from "./connection.ts";
import { Outbox } from "./outbox.ts";
import { readVersion, type Version } from "./protocol.ts";
import { Rate } from "./rate.ts";
import type { ChannelServices } from "./services.ts";
import type { RealtimeStatistics } from "./statistics.ts";

export type SocketsOptions = {
  readonly services: ChannelServices;
  readonly config: Pick<Config, "corsOrigins" | "requireApiKey">;
  readonly crossSite: Pick<CrossSite, "isOwnPage">;
  /** For how long a client may say nothing; it beats its heart every 25 seconds. */
  readonly silenceMs?: number;
};

const MOST_MESSAGE_BYTES = 5 * 2 ** 20;
/** Of messages that are not done with yet, and their bytes: whoever says more is heard later. */
const MOST_UNDERWAY = 200;
const MOST_UNDERWAY_BYTES = 8 * 2 ** 20;
/** What a message counts for, however short: reading it has its cost. */
const LEAST_BYTES = 512;
/** What a message takes while it is handled, for each of its bytes: the frame, its text, and what is parsed of it. */
const HANDLED_TIMES = 8;
/** How often it is looked whether those who are connected may still be. What is known of an account is four seconds old at most. */
const LOOK_MS = 500;
/** How long a client may take to read on to the word that it is told goodbye, and when the service stops. */
const PARTING_MS = 25_000;
const FAREWELL_MS = 1_000;
const FAILURE = 4500;
const TRY_AGAIN_LATER = 1013;

type Member = { readonly socket: WebSocket; readonly connection: Connection; heardAt: number };

/** The adapter between WebSockets and connections. */
export class Sockets {
  readonly #options: SocketsOptions;
  readonly #silenceMs: number;
  readonly #server = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    maxPayload: MOST_MESSAGE_BYTES,
    perMessageDeflate: false,
  });
  readonly #members = new Set<Member>();
  readonly #looks: NodeJS.Timeout;
  #isClosing = false;

  constructor(options: SocketsOptions) {
    this.#options = options;
    this.#silenceMs = options.silenceMs ?? 60_000;
    this.#looks = setInterval(() => this.#look(), LOOK_MS).unref();
  }

  /** A request for a socket, at the address that is ours. A key that is no good is refused before it is one. */
  async upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    const { services, config } = this.#options;
    const query = new URLSearchParams(request.url?.split("?")[1] ?? "");
    const version = readVersion(query.get("vsn"));
    const apiKey = readApiKey(request.headers, query);
    if (this.#isClosing) return refuse(socket, 503, "The service is shutting down");
    if (!this.#isWelcome(request.headers)) return refuse(socket, 403, "This origin is not welcome");
    if (!version) return refuse(socket, 400, "This version of the protocol is not spoken here: ask for vsn=2.0.0");
    try {
      if (!apiKey && config.requireApiKey) return refuse(socket, 401, "No API key: add apikey to the query");
      await services.callers().identify({ authorization: null, apiKey });
    } catch (error) {
      const { status, message } = toApiError(error);
      return refuse(socket, status, message);
    }
    if (socket.destroyed) return;
    this.#server.handleUpgrade(request, socket, head, (accepted) =>
      this.#accept(accepted, { socket, version, apiKey, id: String(request.headers["x-request-id"] ?? randomUUID()) }),
    );
  }

  statistics(): RealtimeStatistics {
    let channels = 0;
    let subscriptions = 0;
    for (const { connection } of this.#members) {
      channels += connection.channels;
      subscriptions += connection.subscriptions;
    }
    return { ...this.#options.services.tally, sockets: this.#members.size, channels, subscriptions };
  }

  /** Takes nobody in, says goodbye; whoever is left after that time is cut off. */
  async close(milliseconds: number): Promise<void> {
    this.#isClosing = true;
    clearInterval(this.#looks);
    for (const { socket } of this.#members) socket.close(1001, "Going away");
    const end = performance.now() + Math.min(milliseconds, FAREWELL_MS);
    while (this.#members.size > 0 && performance.now() < end) await sleep(10);
    for (const { socket } of this.#members) socket.terminate();
    while (this.#members.size > 0) await sleep(1);
  }

  /** Browsers open sockets for any page and ask nobody: the rule of CORS has to be applied here. Other clients send no origin. */
  #isWelcome(headers: IncomingHttpHeaders): boolean {
    const { config, crossSite } = this.#options;
    return headers.origin === undefined || config.corsOrigins === "*" || crossSite.isOwnPage(headers);
  }

  #accept(webSocket: WebSocket, { socket, version, apiKey, id }: Accepted): void {
    const { services } = this.#options;
    const { tally, memory, unsentFrames } = services;
    const outbox = new Outbox({
      socket,
      tally,
      unsentFrames,
      overflow: () => connection.overwhelmed(),
      shortage: () => {
        tally.overwhelmed++;
        webSocket.terminate();
      },
    });
    const close = (code: number, reason: string) => {
      outbox.end();
      webSocket.close(code, reason);
      // Who does not read does not answer either.
      setTimeout(() => webSocket.terminate(), PARTING_MS).unref();
    };
    const connection = new Connection(services, { version, outbox, close }, apiKey);
    const member: Member = { socket: webSocket, connection, heardAt: performance.now() };
    this.#members.add(member);
    let underway = 0;
    let bytes = 0;
    let isResting = false;
    let isPaced = false;
    const rate = new Rate(services.limits.bytesPerSecond);
    const unfinished = new UnfinishedMessage(socket, memory.incoming, () => {
      tally.limited++;
      close(TRY_AGAIN_LATER, "Too many messages arrive at once: try again later");
      socket.destroy();
    });
    /** Of those that are read already one is handled in any case. */
    const isCrowded = () => underway > 0 && memory.incoming.shortageOf(LEAST_BYTES) !== null;
    const isBusy = () =>
      isResting || isPaced || underway >= MOST_UNDERWAY || bytes >= MOST_UNDERWAY_BYTES || isCrowded();
    const goOn = () => webSocket.isPaused && !isBusy() && webSocket.resume();
    const rest = (milliseconds: number) => {
      if (isResting || milliseconds === 0) return;
      isResting = true;
      setTimeout(() => {
        isResting = false;
        goOn();
      }, milliseconds).unref();
    };

    const source = {
      pause: () => {
        isPaced = true;
        webSocket.pause();
      },
      resume: () => {
        isPaced = false;
        goOn();
      },
    };

    socket.prependListener("data", ({ length }: Buffer) => paceReading(source, length));
    webSocket.on("message", async (data: Buffer, isBinary) => {
      member.heardAt = performance.now();
      unfinished.completed();
      underway++;
      bytes += data.length;
      memory.incoming.hold(HANDLED_TIMES * data.length);
      tally.messagesIn++;
      tally.bytesIn += data.length;
      rest(rate.take(Math.max(data.length, LEAST_BYTES)));
      if (isBusy()) webSocket.pause();
      try {
        await connection.take(data, isBinary);
      } catch (error) {
        services.log.error({ request: id, err: error }, "a channel's message could not be handled");
        close(FAILURE, "Internal error");
      }
      underway--;
      bytes -= data.length;
      memory.incoming.release(HANDLED_TIMES * data.length);
      goOn();
    });
    for (const event of ["ping", "pong"] as const) webSocket.on(event, (data: Buffer) => unfinished.controlFrame(data));
    webSocket.on("error", (error) => services.log.debug({ request: id, err: error }, "a socket failed"));
    webSocket.once("close", (code) => {
      this.#members.delete(member);
      connection.gone();
      services.log.debug({ request: id, code }, "a socket was closed");
    });
  }

  #look(): void {
    const now = performance.now();
    for (const { socket, connection, heardAt } of this.#members) {
      if (now - heardAt > this.#silenceMs) socket.terminate();
      else connection.look();
    }
  }
}

type Accepted = {
  readonly socket: Duplex;
  readonly version: Version;
  readonly apiKey: string | null;
  readonly id: string;
};

function refuse(socket: Duplex, status: number, reason: string): void {
  const body = JSON.stringify({ error: reason });
  const head = `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nContent-Type: application/json; charset=utf-8`;
  socket.end(`${head}\r\nConnection: close\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
}
