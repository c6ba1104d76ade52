import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { Caller } from "../../accounts/identity/caller.ts";
import { CredentialError } from "../../accounts/identity/credential-error.ts";
import { SocketMemory } from "../../http/socket-memory.ts";
import { Broadcaster, TopicMembers } from "../../realtime/broadcast.ts";
import type { Binding } from "../../realtime/changes/binding.ts";
import { endOfTransaction } from "../../realtime/changes/subscriber.ts";
import type { ChannelDependencies } from "../../realtime/channel.ts";
import { ChannelConnection } from "../../realtime/connection.ts";
import { Presence } from "../../realtime/presence.ts";
import { makeRealtimeCounters } from "../../realtime/protocol/counters.ts";
import { ByteQuota, SharedBytes } from "../../runtime/memory/byte-quota.ts";

/** Channels without a socket, a clock, a database and other gateways: frames go in, frames come out. */

type Message = readonly [
  joinRef: string | null,
  ref: string | null,
  topic: string,
  event: string,
  // biome-ignore lint/suspicious/noExplicitAny: the server's messages have many forms.
  payload: any,
];

const LIMITS = {
  channels: 2,
  bindings: 2,
  joinsPerSecond: 0,
  messagesPerSecond: 0,
  bytesPerSecond: 0,
  presencesPerSecond: 0,
};

const TOKEN_ERRORS = {
  forged: "signatureInvalid",
  unreadable: "tokenMalformed",
  revoked: "sessionEnded",
} as const;

function callerOf(role: string): Caller {
  const expiresAt = role.startsWith("expires-") ? Number(role.slice("expires-".length)) : null;
  return { kind: "known", role, claims: { role }, claimsText: JSON.stringify({ role }), expiresAt };
}

/** A token is the name of its role, or of its fault. */
class TestChannels {
  readonly sent: Message[] = [];
  readonly closes: (readonly [code: number, reason: string])[] = [];
  readonly revoked = new Set<string>();
  readonly readers = new Set(["member"]);
  readonly members = new TopicMembers();
  readonly counters = makeRealtimeCounters();
  readonly connection: ChannelConnection;
  listeners = 0;
  subscribers = 0;
  subscribe: () => Promise<void> = async () => {};
  #ref = 0;

  constructor(limits: Partial<typeof LIMITS> = {}) {
    const outbox = {
      isFull: false,
      needsPacing: false,
      resetPacing: () => {},
      send: (frame: Buffer) => this.#collect(frame),
    };
    const close = (code: number, reason: string) => void this.closes.push([code, reason]);
    const dependencies = this.#dependencies({ ...LIMITS, ...limits });
    const socket = { version: "2.0.0", largeWorkOwner: "test", outbox, close } as const;
    this.connection = new ChannelConnection(dependencies, socket, "anon");
  }

  /** Returns the messages that it was sent meanwhile. */
  async receive(...message: Message): Promise<readonly Message[]> {
    const before = this.sent.length;
    await this.connection.receive(Buffer.from(JSON.stringify(message)), false);
    return this.sent.slice(before);
  }

  join(topic: string, config: object = {}, token?: string): Promise<readonly Message[]> {
    const ref = this.nextRef();
    return this.receive(ref, ref, topic, "phx_join", { config, ...(token !== undefined && { access_token: token }) });
  }

  nextRef(): string {
    return String(++this.#ref);
  }

  #collect(frame: Buffer): void {
    const headerLength = frame[1]! < 126 ? 2 : 4;
    this.sent.push(JSON.parse(frame.subarray(headerLength).toString()) as Message);
  }

  #authenticate(token: string): Caller {
    const reason = this.revoked.has(token) ? "sessionEnded" : TOKEN_ERRORS[token as keyof typeof TOKEN_ERRORS];
    if (reason) throw new CredentialError(reason, "This token is not valid.", "Not valid");
    return callerOf(token);
  }

  #dependencies(limits: typeof LIMITS): ChannelDependencies {
    const relay = { send: async () => {}, flushed: async () => {}, isCongested: false };
    const mayUse = ({ role }: Caller) => this.readers.has(role);
    return {
      authenticator: () =>
        ({
          authenticate: ({ apiKey }: { readonly apiKey: string }) => this.#authenticate(apiKey),
        }) as unknown as ReturnType<ChannelDependencies["authenticator"]>,
      authorization: {
        readAccess: async (caller) => ({ broadcast: mayUse(caller), presence: mayUse(caller) }),
        mayWrite: async (caller) => mayUse(caller),
      },
      members: this.members,
      broadcaster: new Broadcaster(this.members, relay),
      presence: new Presence(this.members, relay),
      readKeptMessages: async () => [],
      feeds: {
        addListener: () => {
          this.listeners++;
          return () => void this.listeners--;
        },
        opened: async () => {},
        subscribe: async () => {
          this.subscribers++;
          await this.subscribe();
        },
        remove: () => void this.subscribers--,
        replace: async () => {},
        resume: () => {},
        resumePointOf: () => ({ position: endOfTransaction(16n), history: "one" }),
      },
      bindingReaderFor: () => async (_request, id) => ({ id }) as Binding,
      isSuspended: () => false,
      limits,
      memory: new SocketMemory({ webSocketBytes: 2 ** 20, webSocketTotalBytes: 2 ** 24 }),
      unsentFrames: new SharedBytes(new ByteQuota(2 ** 20)),
      counters: this.counters,
      log: { debug: () => {}, warn: () => {}, error: () => {} },
    };
  }
}

const eventsOf = (messages: readonly Message[]) => messages.map(([, , , event]) => event);
const replied = (ref: string, topic: string, status: "ok" | "error", response: object = {}, joinRef = ref) => [
  joinRef,
  ref,
  topic,
  "phx_reply",
  { status, response },
];
const CHANGES = { postgres_changes: [{ event: "*", schema: "public", table: "news" }] };

let channels: TestChannels;
beforeEach(() => {
  vi.useFakeTimers();
  channels = new TestChannels();
});
afterEach(() => void vi.useRealTimers());

describe("a join", () => {
  test("is replied to first, and counts as a channel", async () => {
    const messages = await channels.join("realtime:news", CHANGES);
    expect(eventsOf(messages)).toEqual(["phx_reply", "system"]);
    expect(messages[0]![4]).toMatchObject({ status: "ok", response: { position: "0/10@one" } });
    expect([channels.connection.channels, channels.connection.subscriptions]).toEqual([1, 1]);
    expect([channels.listeners, channels.subscribers]).toEqual([1, 1]);
  });

  test("of a joined topic closes the earlier channel before it is replied to", async () => {
    await channels.join("realtime:a");
    const messages = await channels.join("realtime:a");
    expect(messages.map(([joinRef, , , event]) => [joinRef, event])).toEqual([
      ["1", "phx_close"],
      ["2", "phx_reply"],
    ]);
    expect([channels.connection.channels, channels.listeners]).toEqual([1, 1]);
  });

  test.each([
    ["forged", "JwtSignatureError: Failed to validate JWT signature"],
    ["unreadable", "MalformedJWT: The token provided is not a valid JWT"],
    ["revoked", "InvalidJWTToken: This token is not valid."],
    ["", "MalformedJWT: The token provided is not a valid JWT"],
    ["expires-100", "InvalidJWTToken: Token has expired 900 seconds ago"],
  ])("with the token %j is refused with its reason, and leaves nothing", async (token, reason) => {
    vi.setSystemTime(1_000_000);
    const [reply] = await channels.join("realtime:a", CHANGES, token);
    expect(reply).toEqual(replied("1", "realtime:a", "error", { reason }));
    expect([channels.connection.channels, channels.listeners, channels.subscribers]).toEqual([0, 0, 0]);
    expect(channels.closes).toEqual([]);
  });

  test("of a private topic is refused to callers without permission", async () => {
    const [reply] = await channels.join("realtime:a", { private: true });
    expect(reply![4].response.reason).toMatch(/^Unauthorized: /);
    const [accepted] = await channels.join("realtime:a", { private: true }, "member");
    expect(accepted![4].status).toBe("ok");
  });

  test.each([
    ["other:a", {}, "TopicNameRequired"],
    ["realtime:", {}, "TopicNameRequired"],
    [`realtime:${"x".repeat(1_001)}`, {}, "InvalidTopicName"],
    ["realtime:a", { presence: { key: "x".repeat(1_001) } }, "InvalidPresenceKey"],
    ["realtime:a", { postgres_changes: [{}, {}, {}] }, "InvalidJoinPayload"],
  ])("of %.20s with %.40j is refused", async (topic, config, code) => {
    const [reply] = await channels.join(topic, config);
    expect(reply![4].response.reason).toMatch(new RegExp(`^${code}: `));
    expect(channels.counters.refusals).toBe(1);
  });

  test("above the limit is refused, also while others are in progress; a place is free again after a leave", async () => {
    const subscribed = Promise.withResolvers<void>();
    channels.subscribe = () => subscribed.promise;
    const pending = [channels.join("realtime:a", CHANGES), channels.join("realtime:b", CHANGES)];
    const [refused] = await channels.join("realtime:c");
    expect(refused).toEqual(
      replied("3", "realtime:c", "error", { reason: "ChannelRateLimitReached: Too many channels" }),
    );
    subscribed.resolve();
    await Promise.all(pending);
    await channels.receive("1", "9", "realtime:a", "phx_leave", {});
    const [accepted] = await channels.join("realtime:c");
    expect(accepted![4].status).toBe("ok");
  });

  test("that the change stream does not answer in time is refused", async () => {
    channels.subscribe = () => new Promise(() => {});
    const joined = channels.join("realtime:a", CHANGES);
    await vi.advanceTimersByTimeAsync(8_000);
    expect((await joined)[0]![4].response.reason).toMatch(/^PostgresChangesSubscribeTimeout: /);
    expect([channels.listeners, channels.subscribers]).toEqual([0, 0]);
  });

  test("whose socket is closed meanwhile leaves nothing, and sends nothing", async () => {
    const subscribed = Promise.withResolvers<void>();
    channels.subscribe = () => subscribed.promise;
    const joined = channels.join("realtime:a", CHANGES);
    await vi.advanceTimersByTimeAsync(0);
    channels.connection.handleSocketClosed();
    subscribed.resolve();
    expect(await joined).toEqual([]);
    expect([channels.listeners, channels.subscribers, channels.connection.channels]).toEqual([0, 0, 0]);
  });

  test("is refused beyond the joins of a second, which closes the channel; later joins are accepted", async () => {
    channels = new TestChannels({ joinsPerSecond: 1 });
    for (let count = 0; count < 5; count++) await channels.join("realtime:a");
    const messages = await channels.join("realtime:a");
    expect(messages.at(-1)![4].response.reason).toBe("ClientJoinRateLimitReached: Too many joins per second");
    expect(channels.connection.channels).toBe(0);
    await vi.advanceTimersByTimeAsync(10_000);
    expect((await channels.join("realtime:a"))[0]![4].status).toBe("ok");
  });
});

describe("a leave", () => {
  test("is acknowledged before the channel closes, and is acknowledged without a channel", async () => {
    await channels.join("realtime:a");
    const messages = await channels.receive("1", "2", "realtime:a", "phx_leave", {});
    expect(eventsOf(messages)).toEqual(["phx_reply", "phx_close"]);
    expect(await channels.receive("1", "3", "realtime:a", "phx_leave", {})).toEqual([
      replied("3", "realtime:a", "ok", {}, "1"),
    ]);
    expect(channels.listeners).toBe(0);
  });

  test("of an earlier join changes nothing", async () => {
    await channels.join("realtime:a");
    await channels.join("realtime:a");
    expect(await channels.receive("1", "3", "realtime:a", "phx_leave", {})).toEqual([]);
    expect(channels.connection.channels).toBe(1);
  });
});

describe("a heartbeat", () => {
  test("is answered without channels, and with the position of channels that receive changes", async () => {
    const heartbeat = () => channels.receive(null, "7", "phoenix", "heartbeat", {});
    expect(await heartbeat()).toEqual([[null, "7", "phoenix", "phx_reply", { status: "ok", response: {} }]]);
    await channels.join("realtime:a", CHANGES);
    expect((await heartbeat())[0]![4]).toEqual({ status: "ok", response: { position: "0/10@one" } });
  });

  test("is answered while a join waits", async () => {
    channels.subscribe = () => new Promise(() => {});
    void channels.join("realtime:a", CHANGES);
    expect(await channels.receive(null, "7", "phoenix", "heartbeat", {})).toHaveLength(1);
  });
});

describe("a new token", () => {
  const update = (token: unknown) => channels.receive("1", "2", "realtime:a", "access_token", { access_token: token });

  test("that is valid changes nothing that the client sees", async () => {
    await channels.join("realtime:a", { private: true }, "member");
    channels.readers.add("editor");
    expect(await update("editor")).toEqual([]);
    expect(await update("editor")).toEqual([]);
    expect(await update(null)).toEqual([]);
    expect(channels.connection.channels).toBe(1);
  });

  test.each([
    ["forged", "Failed to validate JWT signature"],
    ["unreadable", "The token provided is not a valid JWT"],
    ["", "The token provided is not a valid JWT"],
    ["stranger", "You do not have permissions to read from this Channel topic: a"],
  ])("%j closes the channel with the reason, and no other", async (token, message) => {
    await channels.join("realtime:a", { private: true }, "member");
    await channels.join("realtime:b");
    const messages = await update(token);
    expect(eventsOf(messages)).toEqual(["system", "phx_close"]);
    expect(messages[0]![4]).toMatchObject({ status: "error", message });
    expect(channels.connection.channels).toBe(1);
    expect(channels.closes).toEqual([]);
  });
});

describe("credentials that end", () => {
  test("close the channels that use them; those of the socket's key close the socket", async () => {
    await channels.join("realtime:a", {}, "user");
    await channels.join("realtime:b");
    channels.revoked.add("user");
    channels.connection.checkCredentials();
    expect([channels.connection.channels, channels.closes]).toEqual([1, []]);
    channels.revoked.add("anon");
    channels.connection.checkCredentials();
    expect([channels.connection.channels, channels.closes]).toEqual([0, [[4401, "Unauthorized"]]]);
  });

  test("close the channel 30 seconds after the token expires, and not before", async () => {
    vi.setSystemTime(1_000_000);
    await channels.join("realtime:a", {}, "expires-975");
    channels.connection.checkCredentials();
    expect(channels.connection.channels).toBe(1);
    vi.setSystemTime(1_006_000);
    channels.connection.checkCredentials();
    expect(channels.connection.channels).toBe(0);
  });
});

describe("a message", () => {
  test.each(["broadcast", "presence", "access_token", "something"])(
    "%s to a topic that is not joined is refused",
    async (event) => {
      expect(await channels.receive("1", "2", "realtime:a", event, {})).toEqual([
        replied("2", "realtime:a", "error", { reason: "unmatched topic" }, "1"),
      ]);
    },
  );

  test("waits for the join of its topic, and not for that of another", async () => {
    const subscribed = Promise.withResolvers<void>();
    channels.subscribe = () => subscribed.promise;
    const joined = channels.join("realtime:a", CHANGES);
    const left = channels.receive("1", "2", "realtime:a", "phx_leave", {});
    expect(await channels.receive("1", "3", "realtime:b", "phx_leave", {})).toHaveLength(1);
    subscribed.resolve();
    await Promise.all([joined, left]);
    expect(channels.sent.map(([, ref, , event]) => [ref, event])).toEqual([
      ["3", "phx_reply"],
      ["1", "phx_reply"],
      [null, "system"],
      ["2", "phx_reply"],
      ["1", "phx_close"],
    ]);
  });

  test("beyond the limit of a second closes its channel", async () => {
    channels = new TestChannels({ messagesPerSecond: 1 });
    await channels.join("realtime:a");
    for (let count = 0; count < 4; count++) await channels.receive(null, null, "phoenix", "heartbeat", {});
    const messages = await channels.receive("1", "2", "realtime:a", "broadcast", { event: "x", payload: {} });
    expect(eventsOf(messages)).toEqual(["system", "phx_close", "phx_reply"]);
    expect(channels.counters.limited).toBe(1);
  });
});

test("a client that reads too slowly is asked to come back later, and its channels end", async () => {
  await channels.join("realtime:a", CHANGES);
  channels.connection.closeOverwhelmed();
  expect(channels.closes.map(([code]) => code)).toEqual([1013]);
  expect([channels.connection.channels, channels.listeners, channels.subscribers]).toEqual([0, 0, 0]);
});

test("any sequence of messages is answered once each, and leaves as many channels as it has joined and not left", async () => {
  let seed = 38;
  const pick = <Value>(values: readonly Value[]): Value => {
    seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31;
    return values[Math.floor((seed / 2 ** 31) * values.length)]!;
  };
  for (let run = 0; run < 50; run++) {
    channels = new TestChannels();
    const refs: string[] = [];
    const joined = new Map<string, string>();
    for (let step = 0; step < 40; step++) {
      const topic = pick(["realtime:a", "realtime:b", "realtime:c"]);
      const ref = channels.nextRef();
      const joinRef = joined.get(topic) ?? null;
      const event = pick(["phx_join", "phx_join", "phx_leave", "broadcast", "presence", "heartbeat"]);
      const token = pick([undefined, undefined, "user", "forged", "unreadable"]);
      const config = { ...pick([{}, CHANGES]), broadcast: { ack: true } };
      if (event === "heartbeat") await channels.receive(null, ref, "phoenix", event, {});
      else if (event === "phx_join") {
        const messages = await channels.receive(ref, ref, topic, event, { config, access_token: token });
        joined.delete(topic);
        if (messages.some(([, id, , , payload]) => id === ref && payload.status === "ok")) joined.set(topic, ref);
      } else await channels.receive(joinRef, ref, topic, event, { type: event, event: "track", payload: {} });
      if (event === "phx_leave") joined.delete(topic);
      refs.push(ref);
      expect(channels.connection.channels).toBe(joined.size);
      expect(channels.listeners).toBe(joined.size);
      expect(channels.subscribers).toBe(channels.connection.subscriptions);
    }
    const answered = channels.sent.filter(([, , , event]) => event === "phx_reply").map(([, ref]) => ref);
    expect(answered).toEqual(refs);
    channels.connection.handleSocketClosed();
    expect([channels.connection.channels, channels.listeners, channels.subscribers]).toEqual([0, 0, 0]);
  }
});
