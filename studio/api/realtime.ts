import { decodeBroadcastFrame } from "./broadcast-frame.ts";
import { parseWithNumberTexts } from "./exact-json.ts";
import { sessionState, viewedCaller, viewedToken } from "./session.ts";

/** A subscription to row changes: https://supabase.com/docs/guides/realtime/postgres-changes, with our `select`. */
export type PostgresChangesConfig = {
  readonly event: "*" | "INSERT" | "UPDATE" | "DELETE";
  readonly schema: string;
  readonly table: string;
  readonly filter?: string;
  /** The columns to receive besides the key; an empty list selects only the key. */
  readonly select?: readonly string[];
};

/** A row change. Its numbers are texts, so that they keep their digits. */
export type ReceivedChange = {
  readonly type: "INSERT" | "UPDATE" | "DELETE";
  readonly schema: string;
  readonly table: string;
  readonly commit_timestamp: string;
  readonly record?: Readonly<Record<string, unknown>>;
  readonly old_record?: Readonly<Record<string, unknown>>;
  readonly errors: readonly string[] | null;
};

export type ChannelStatus =
  | { readonly state: "joining" }
  | { readonly state: "joined" }
  /** The channel is joined, but these changes are not delivered. */
  | { readonly state: "refused"; readonly reason: string }
  /** The channel is joined again later; changes may have been missed. */
  | { readonly state: "interrupted"; readonly reason: string | null };

type ChannelHandlers = {
  readonly onChange?: (change: ReceivedChange) => void;
  readonly onStatus?: (status: ChannelStatus) => void;
  /** Called for each message of the channel, as it was received. */
  readonly onMessage?: (event: string, payload: unknown) => void;
};

type RealtimeOptions = {
  /** The address of the server with `ws:` or `wss:`, without a path. */
  readonly address: string;
  /** Returns the token of the caller. Null if nobody is signed in; then no socket is opened. */
  readonly token: () => string | null;
  /** Returns the time until the next attempt to connect or to join, after this number of failures. */
  readonly retryDelay?: (failures: number) => number;
};

type Payload = Readonly<Record<string, unknown>>;
type Timer = ReturnType<typeof setTimeout>;

const HEARTBEAT_MS = 25_000;
const defaultRetryDelay = (failures: number) => Math.min(1000 * 2 ** failures, 30_000);

/** The options of a channel that clients choose: https://supabase.com/docs/guides/realtime/protocol. */
type ChannelConfig = {
  readonly private?: boolean;
  readonly broadcast?: { readonly self: boolean };
  readonly presence?: { readonly enabled: boolean; readonly key?: string };
  readonly postgres_changes?: readonly PostgresChangesConfig[];
};

export type JoinedChannel = {
  /** Sends an event, only while the channel is joined. */
  readonly send: (event: string, payload: object) => void;
  readonly leave: () => void;
};

/** One socket of `/realtime/v1`, opened for the first channel and closed after the last one. */
export class RealtimeClient {
  readonly #options: Required<RealtimeOptions>;
  readonly #channels = new Map<string, Channel>();
  #socket: WebSocket | null = null;
  #ref = 0;
  #topics = 0;
  #failures = 0;
  #heartbeat: ReturnType<typeof setInterval> | undefined;
  #unansweredHeartbeat: string | null = null;
  #retry: Timer | undefined;

  constructor(options: RealtimeOptions) {
    this.#options = { retryDelay: defaultRetryDelay, ...options };
  }

  /** Joins a channel, now and after each interruption. Returns the function that leaves it. */
  subscribe(subscriptions: readonly PostgresChangesConfig[], handlers: ChannelHandlers): () => void {
    const name = `studio-${++this.#topics}`;
    return this.joinChannel(name, { postgres_changes: subscriptions }, handlers).leave;
  }

  /** Joins a channel of this name; works like `subscribe`. */
  joinChannel(name: string, config: ChannelConfig, handlers: ChannelHandlers): JoinedChannel {
    const topic = `realtime:${name}`;
    const channel = new Channel(config, handlers, {
      send: (event, payload, joinRef) => this.#send(topic, event, payload, joinRef),
      token: this.#options.token,
      retryDelay: this.#options.retryDelay,
    });
    this.#channels.set(topic, channel);
    if (this.#socket?.readyState === WebSocket.OPEN) channel.join();
    else this.#connect();
    return {
      send: (event, payload) => channel.send(event, payload),
      leave: () => {
        channel.leave();
        this.#channels.delete(topic);
        if (this.#channels.size === 0) this.close();
      },
    };
  }

  /** Reopens the socket after a renewal of the caller's token, since a socket ends with its token. No change is missed. */
  renewToken(): void {
    this.#closeSocket();
    this.#failures = 0;
    if (this.#channels.size > 0) this.#connect();
  }

  /** Reopens the socket for another caller. */
  changeCaller(): void {
    for (const channel of this.#channels.values()) channel.forgetPosition();
    this.renewToken();
  }

  close(): void {
    this.#closeSocket();
    this.#channels.clear();
  }

  #connect(): void {
    clearTimeout(this.#retry);
    if (this.#socket !== null) return;
    const token = this.#options.token();
    if (token === null) {
      this.#connectLater();
      return;
    }
    const query = new URLSearchParams({ apikey: token, vsn: "2.0.0" });
    const socket = new WebSocket(`${this.#options.address}/realtime/v1/websocket?${query}`);
    this.#socket = socket;
    socket.binaryType = "arraybuffer";
    const whileCurrent =
      <Event>(handle: (event: Event) => void) =>
      (event: Event) => {
        if (this.#socket === socket) handle(event);
      };
    socket.addEventListener(
      "open",
      whileCurrent(() => this.#start()),
    );
    socket.addEventListener(
      "message",
      whileCurrent(({ data }: MessageEvent) => this.#receive(data)),
    );
    socket.addEventListener(
      "close",
      whileCurrent(({ reason }: CloseEvent) => this.#interrupt(reason)),
    );
  }

  #start(): void {
    this.#failures = 0;
    this.#unansweredHeartbeat = null;
    this.#heartbeat = setInterval(() => this.#beat(), HEARTBEAT_MS);
    for (const channel of this.#channels.values()) channel.join();
  }

  /** Sends a heartbeat; a connection that has not answered the last one is lost. */
  #beat(): void {
    if (this.#unansweredHeartbeat !== null) this.#interrupt("");
    else this.#unansweredHeartbeat = this.#send("phoenix", "heartbeat", {}, null);
  }

  #interrupt(reason: string): void {
    this.#closeSocket();
    for (const channel of this.#channels.values()) channel.interrupt(reason === "" ? null : reason);
    this.#connectLater();
  }

  #connectLater(): void {
    clearTimeout(this.#retry);
    this.#retry = setTimeout(() => this.#connect(), this.#options.retryDelay(this.#failures++));
  }

  #closeSocket(): void {
    clearTimeout(this.#retry);
    clearInterval(this.#heartbeat);
    const socket = this.#socket;
    this.#socket = null;
    socket?.close();
  }

  #send(topic: string, event: string, payload: object, joinRef: string | null): string {
    const ref = String(++this.#ref);
    if (this.#socket?.readyState === WebSocket.OPEN) {
      this.#socket.send(JSON.stringify([event === "phx_join" ? ref : joinRef, ref, topic, event, payload]));
    }
    return ref;
  }

  #receiveBroadcast(data: ArrayBuffer): void {
    const frame = decodeBroadcastFrame(data);
    if (frame === null) return;
    const payload = { type: "broadcast", event: frame.event, payload: frame.payload };
    this.#channels.get(frame.topic)?.receive({ joinRef: null, ref: null, event: "broadcast", payload });
  }

  #receive(data: unknown): void {
    if (data instanceof ArrayBuffer) this.#receiveBroadcast(data);
    if (typeof data !== "string") return;
    const [joinRef, ref, topic, event, payload] = parseWithNumberTexts(data) as [
      string | null,
      string | null,
      string,
      string,
      Payload,
    ];
    if (topic === "phoenix" && ref === this.#unansweredHeartbeat) {
      this.#unansweredHeartbeat = null;
      for (const channel of this.#channels.values()) channel.notePosition(payload.response);
    } else this.#channels.get(topic)?.receive({ joinRef, ref, event, payload });
  }
}

type ReceivedMessage = {
  readonly joinRef: string | null;
  readonly ref: string | null;
  readonly event: string;
  readonly payload: Payload;
};

type ChannelLink = Required<Pick<RealtimeOptions, "token" | "retryDelay">> & {
  readonly send: (event: string, payload: object, joinRef: string | null) => string;
};

class Channel {
  readonly #config: ChannelConfig;
  readonly #handlers: ChannelHandlers;
  readonly #link: ChannelLink;
  #joinRef: string | null = null;
  #isJoined = false;
  /** The position of the last change, so that no change is missed when the channel is joined again: docs/realtime.md. */
  #position: string | null = null;
  #failures = 0;
  #retry: Timer | undefined;

  constructor(config: ChannelConfig, handlers: ChannelHandlers, link: ChannelLink) {
    this.#config = config;
    this.#handlers = handlers;
    this.#link = link;
  }

  join(): void {
    clearTimeout(this.#retry);
    this.#handlers.onStatus?.({ state: "joining" });
    const resume = this.#position === null ? {} : { resume: this.#position };
    const config = { ...this.#config, ...resume };
    this.#isJoined = false;
    this.#joinRef = this.#link.send("phx_join", { config, access_token: this.#link.token() }, null);
  }

  send(event: string, payload: object): void {
    if (this.#isJoined) this.#link.send(event, payload, this.#joinRef);
  }

  leave(): void {
    clearTimeout(this.#retry);
    this.#link.send("phx_leave", {}, this.#joinRef);
    this.#joinRef = null;
  }

  forgetPosition(): void {
    this.#position = null;
  }

  notePosition(from: unknown): void {
    const position = (from as Payload | undefined)?.position;
    if (this.#isJoined && typeof position === "string") this.#position = position;
  }

  interrupt(reason: string | null): void {
    clearTimeout(this.#retry);
    this.#joinRef = null;
    this.#isJoined = false;
    this.#handlers.onStatus?.({ state: "interrupted", reason });
  }

  receive({ joinRef, ref, event, payload }: ReceivedMessage): void {
    // The message belongs to an earlier join.
    if (this.#joinRef === null || (joinRef !== null && joinRef !== this.#joinRef)) return;
    this.#handlers.onMessage?.(event, payload);
    if (event === "postgres_changes") this.#readChange(payload.data as ReceivedChange);
    else if (event === "phx_reply" && ref === this.#joinRef) this.#readReply(payload);
    else if (event === "system") this.#readSystemMessage(payload);
    else if (event === "phx_close" || event === "phx_error") this.#joinLater(null);
  }

  #readChange(change: ReceivedChange): void {
    this.notePosition(change);
    this.#handlers.onChange?.(change);
  }

  #readReply({ status, response }: Payload): void {
    if (status === "ok") {
      this.#failures = 0;
      this.#isJoined = true;
      this.notePosition(response);
      this.#handlers.onStatus?.({ state: "joined" });
    } else {
      this.#position = null;
      this.#joinLater(String((response as Payload | undefined)?.reason ?? ""));
    }
  }

  #readSystemMessage({ status, extension, message }: Payload): void {
    if (status !== "error") return;
    // Keeps the position if the token has ended: after that nothing is missed.
    if (extension === "postgres_changes") this.#position = null;
    this.#handlers.onStatus?.({ state: "refused", reason: String(message) });
  }

  #joinLater(reason: string | null): void {
    this.interrupt(reason);
    this.#retry = setTimeout(() => this.join(), this.#link.retryDelay(this.#failures++));
  }
}

let client: RealtimeClient | null = null;

/** Returns the client for the caller whose rows are shown; it follows renewed tokens and other callers. */
export function liveChanges(): RealtimeClient {
  client ??= openClient();
  return client;
}

function openClient(): RealtimeClient {
  const opened = new RealtimeClient({ address: location.origin.replace(/^http/, "ws"), token: viewedToken });
  let [caller, token] = [viewedCaller(sessionState.get()), viewedToken()];
  sessionState.subscribe(() => {
    const [nextCaller, nextToken] = [viewedCaller(sessionState.get()), viewedToken()];
    if (nextCaller !== caller) opened.changeCaller();
    else if (nextToken !== token) opened.renewToken();
    [caller, token] = [nextCaller, nextToken];
  });
  return opened;
}
