import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { API_RESOURCE, type Caller, callerKey } from "#accounts/identity";
import type { Config } from "#config";
import { type CsrfProtection, toHttpError } from "#http";
import { type AcceptedSocket, rejectUpgrade, SocketHost, type SocketSession } from "#http/sockets";
import type { ByteQuota } from "#runtime";
import type { PausableSource } from "#runtime/concurrency";
import type { ChannelDependencies } from "./channel.ts";
import { ChannelConnection } from "./connection.ts";
import { RateLimiter } from "./protocol/client-limits.ts";
import type { RealtimeStatistics } from "./protocol/counters.ts";
import { type ProtocolVersion, parseProtocolVersion, readChannelApiKey } from "./protocol/messages.ts";
import { SocketOutbox } from "./protocol/outbox.ts";

type RealtimeSocketOptions = {
  readonly dependencies: ChannelDependencies;
  readonly config: Pick<Config, "corsOrigins" | "requireApiKey">;
  readonly csrf: Pick<CsrfProtection, "isAllowedOrigin">;
  /** The client's address, as far as the proxies in front of the service are trusted. */
  readonly clientAddress: (request: IncomingMessage) => string | null;
  /** The time in which a client may send nothing; clients send a heartbeat every 25 seconds. */
  readonly idleTimeoutMs?: number;
};

const IDLE_TIMEOUT_MS = 60_000;
const MAX_MESSAGE_BYTES = 5 * 2 ** 20;
/** The limits of messages of one socket that are being handled, and of their bytes: more are read later. */
const MAX_PENDING_MESSAGES = 200;
const MAX_PENDING_BYTES = 8 * 2 ** 20;
/** The least size that a message counts for, because reading it has a cost. */
const MIN_COUNTED_BYTES = 512;
/** The memory that a message takes while it is handled, per byte: the frame, its text, and the parsed values. */
const HANDLING_MEMORY_FACTOR = 8;
/** The time limit for a client to read up to the closing frame. */
const CLOSE_TIMEOUT_MS = 25_000;
const DRAIN_TIMEOUT_MS = 1_000;

/** The WebSockets of channels. */
export class RealtimeSocketServer {
  readonly #options: RealtimeSocketOptions;
  readonly #host: SocketHost<ChannelSession>;

  constructor(options: RealtimeSocketOptions) {
    const { dependencies, config, csrf, idleTimeoutMs = IDLE_TIMEOUT_MS } = options;
    this.#options = options;
    this.#host = new SocketHost({
      server: { maxPayload: MAX_MESSAGE_BYTES, perMessageDeflate: false },
      corsOrigins: config.corsOrigins,
      csrf,
      incoming: dependencies.memory.incoming,
      idleTimeoutMs,
      log: dependencies.log,
    });
  }

  /** Rejects an invalid API key before the socket is opened. */
  async upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    const { dependencies, config, clientAddress } = this.#options;
    const query = new URLSearchParams(request.url?.split("?")[1] ?? "");
    const version = parseProtocolVersion(query.get("vsn"));
    const apiKey = readChannelApiKey(request.headers, query);
    const rejection = this.#host.rejectionOf(request.headers);
    if (rejection) return rejectUpgrade(socket, rejection.status, rejection.message);
    if (!version) return rejectUpgrade(socket, 400, "This protocol version is not supported: use vsn=2.0.0");
    if (!apiKey && config.requireApiKey) return rejectUpgrade(socket, 401, "No API key: add apikey to the query");
    let caller: Caller;
    try {
      caller = await dependencies.authenticator().authenticate({ authorization: null, apiKey, resource: API_RESOURCE });
    } catch (error) {
      const { status, message } = toHttpError(error);
      return rejectUpgrade(socket, status, message);
    }
    if (socket.destroyed) return;
    const largeWorkOwner = callerKey(caller.claims, () => clientAddress(request));
    this.#host.accept(
      request,
      socket,
      head,
      (accepted) => new ChannelSession(dependencies, accepted, { version, apiKey, largeWorkOwner }),
    );
  }

  statistics(): RealtimeStatistics {
    let channels = 0;
    let subscriptions = 0;
    for (const { connection } of this.#host.sessions()) {
      channels += connection.channels;
      subscriptions += connection.subscriptions;
    }
    return { ...this.#options.dependencies.counters, sockets: this.#host.size, channels, subscriptions };
  }

  /** Accepts no socket any more, and closes the open ones. */
  close(milliseconds: number): Promise<void> {
    return this.#host.close(Math.min(milliseconds, DRAIN_TIMEOUT_MS));
  }
}

type ChannelClient = {
  readonly version: ProtocolVersion;
  readonly apiKey: string | null;
  readonly largeWorkOwner: string;
};

/** One socket. It limits the messages sent and received, and its connection handles them. */
class ChannelSession implements SocketSession {
  readonly connection: ChannelConnection;
  readonly #accepted: AcceptedSocket;
  readonly #dependencies: ChannelDependencies;
  readonly #outbox: SocketOutbox;
  readonly #intake: MessageIntake;

  constructor(
    dependencies: ChannelDependencies,
    accepted: AcceptedSocket,
    { version, apiKey, largeWorkOwner }: ChannelClient,
  ) {
    const { counters, unsentFrames, limits, memory } = dependencies;
    const { webSocket, connection, reading } = accepted;
    this.#accepted = accepted;
    this.#dependencies = dependencies;
    this.#intake = new MessageIntake(reading, limits.bytesPerSecond, memory.incoming);
    this.#outbox = new SocketOutbox({
      socket: connection,
      counters,
      unsentFrames,
      onOverflow: () => this.connection.closeOverwhelmed(),
      onMemoryShortage: () => {
        counters.overwhelmed++;
        webSocket.terminate();
      },
    });
    const close = (code: number, reason: string) => this.close(code, reason);
    const socket = { version, largeWorkOwner, outbox: this.#outbox, close };
    this.connection = new ChannelConnection(dependencies, socket, apiKey);
  }

  async receive(data: Buffer, isBinary: boolean): Promise<void> {
    const { counters } = this.#dependencies;
    counters.messagesIn++;
    counters.bytesIn += data.length;
    this.#intake.add(data.length);
    try {
      await this.connection.receive(data, isBinary);
    } finally {
      this.#intake.remove(data.length);
    }
  }

  close(code: number, reason: string): void {
    const { webSocket } = this.#accepted;
    this.#outbox.end();
    webSocket.close(code, reason);
    // A client that does not read does not answer either.
    setTimeout(() => webSocket.terminate(), CLOSE_TIMEOUT_MS).unref();
  }

  drain(): void {
    this.#accepted.webSocket.close(1001, "Going away");
  }

  checkCredentials(): void {
    this.connection.checkCredentials();
  }

  onClosed(): void {
    this.connection.handleSocketClosed();
  }

  onOverload(): void {
    this.#dependencies.counters.limited++;
  }
}

/** Pauses reading from a client that sends more than is handled, or more than it may. */
class MessageIntake {
  readonly #reading: PausableSource;
  readonly #rate: RateLimiter;
  readonly #incoming: ByteQuota;
  #messages = 0;
  #bytes = 0;
  #isOverRate = false;
  #isPaused = false;

  constructor(reading: PausableSource, bytesPerSecond: number, incoming: ByteQuota) {
    this.#reading = reading;
    this.#rate = new RateLimiter(bytesPerSecond);
    this.#incoming = incoming;
  }

  add(bytes: number): void {
    this.#messages++;
    this.#bytes += bytes;
    this.#incoming.hold(HANDLING_MEMORY_FACTOR * bytes);
    this.#waitForRate(this.#rate.take(Math.max(bytes, MIN_COUNTED_BYTES)));
    this.#update();
  }

  remove(bytes: number): void {
    this.#messages--;
    this.#bytes -= bytes;
    this.#incoming.release(HANDLING_MEMORY_FACTOR * bytes);
    this.#update();
  }

  #waitForRate(milliseconds: number): void {
    if (this.#isOverRate || milliseconds === 0) return;
    this.#isOverRate = true;
    setTimeout(() => {
      this.#isOverRate = false;
      this.#update();
    }, milliseconds).unref();
  }

  #update(): void {
    const isBusy = this.#isBusy();
    if (isBusy === this.#isPaused) return;
    this.#isPaused = isBusy;
    if (isBusy) this.#reading.pause();
    else this.#reading.resume();
  }

  #isBusy(): boolean {
    // At least one of the messages that were read already is handled.
    const isMemoryShort = this.#messages > 0 && this.#incoming.shortageOf(MIN_COUNTED_BYTES) !== null;
    const isFull = this.#messages >= MAX_PENDING_MESSAGES || this.#bytes >= MAX_PENDING_BYTES;
    return this.#isOverRate || isFull || isMemoryShort;
  }
}
