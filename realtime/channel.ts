import type { Caller } from "../engine/caller/caller.ts";
import { isJsonObject } from "../engine/json-object.ts";
import { type ByteQuota, Reservation } from "../engine/memory/byte-quota.ts";
import type { Extension, Hearing } from "./authorization.ts";
import type { Broadcast } from "./broadcast-frame.ts";
import { bindingIds } from "./changes/binding.ts";
import { type JoinRequest, readToken } from "./join-request.ts";
import type { Outbox } from "./outbox.ts";
import { spellMessage, spellWord, type Version } from "./protocol.ts";
import { Refusal, reasonOf } from "./refusal.ts";
import { retain, sizeOfJoin, sizeOfPresence } from "./retained.ts";
import type { Occupant, Room } from "./rooms.ts";
import type { ChannelServices } from "./services.ts";
import { socketFrame } from "./socket-frame.ts";
import { Subscription } from "./subscription.ts";

/** The socket that a channel is on. */
export type Line = {
  readonly version: Version;
  readonly outbox: Outbox;
  /** How much its channels may keep, of joins and of presences. */
  readonly retained: ByteQuota;
  readonly presences: ByteQuota;
  /** Who the key is that the socket was opened with. */
  identify(token: string | null): Promise<Caller>;
};

export type Joining = {
  readonly line: Line;
  readonly topic: string;
  readonly joinRef: string | null;
  readonly request: JoinRequest;
  /** Called when it is over, whoever ended it. */
  readonly onEnd: () => void;
};

const PREFIX = "realtime:";
const LONGEST_NAME = 1_000;
/** Each of a room's members is sent the keys of all. */
const LONGEST_PRESENCE_KEY = 1_000;
const EVERYTHING: Hearing = { broadcast: true, presence: true };

/** One join of one topic. */
export class Channel implements Occupant {
  readonly topic: string;
  readonly room: Room;
  readonly #services: ChannelServices;
  readonly #joining: Joining;
  readonly #presenceKey: string;
  /** What it takes of its socket's quotas. */
  readonly #retained: Reservation;
  readonly #keptPresence: Reservation;
  #caller: Caller;
  #token: string | null;
  #hearing: Hearing;
  #knowsWhoIsThere = false;
  /** What was found out about what it may say, until it shows another token. */
  #saying = new Map<Extension, Promise<boolean>>();
  readonly #subscription: Subscription;
  #leaveFeeds: () => void;
  #isOver = false;

  /** Refuses by throwing. */
  static async open(services: ChannelServices, joining: Joining): Promise<Channel> {
    const { line, topic, request } = joining;
    const name = topic.slice(PREFIX.length);
    if (!topic.startsWith(PREFIX) || name === "")
      throw new Refusal("TopicNameRequired", "You must provide a topic name");
    if (name.length > LONGEST_NAME)
      throw new Refusal("InvalidTopicName", `A topic has at most ${LONGEST_NAME} characters`);
    if ((request.presence.key?.length ?? 0) > LONGEST_PRESENCE_KEY)
      throw new Refusal("InvalidPresenceKey", `A presence key has at most ${LONGEST_PRESENCE_KEY} characters`);
    const room = { name, isPrivate: request.isPrivate };
    const retained = new Reservation(line.retained);
    retain(retained, sizeOfJoin(joining, request.token), line.retained);
    try {
      const caller = await line.identify(request.token);
      const hearing = await hearingOf(services, caller, room);
      const channel = new Channel(services, joining, { room, caller, hearing, retained });
      await channel.#begin();
      return channel;
    } catch (error) {
      retained.release();
      throw error;
    }
  }

  private constructor(
    services: ChannelServices,
    joining: Joining,
    { room, caller, hearing, retained }: { room: Room; caller: Caller; hearing: Hearing; retained: Reservation },
  ) {
    this.topic = joining.topic;
    this.room = room;
    this.#services = services;
    this.#joining = joining;
    this.#caller = caller;
    this.#token = joining.request.token;
    this.#hearing = hearing;
    this.#presenceKey = joining.request.presence.key ?? crypto.randomUUID();
    this.#retained = retained;
    this.#keptPresence = new Reservation(joining.line.presences);
    this.#leaveFeeds = services.feeds.enter();
    const { topic, request, line } = joining;
    this.#subscription = new Subscription(services, { ...line, topic, request, lose: (reason) => this.lose(reason) });
  }

  get version(): Version {
    return this.#joining.line.version;
  }

  get outbox(): Outbox {
    return this.#joining.line.outbox;
  }

  get joinRef(): string | null {
    return this.#joining.joinRef;
  }

  /** What it has shown last; null: nothing but the socket's key. */
  get token(): string | null {
    return this.#token;
  }

  get hearsBroadcast(): boolean {
    return this.#hearing.broadcast;
  }

  get hearsPresence(): boolean {
    return this.#hearing.presence;
  }

  get hearsChanges(): boolean {
    return this.#joining.request.bindings.length > 0;
  }

  get hearsItself(): boolean {
    return this.#joining.request.broadcast.self;
  }

  /** How far it has been told of changes; null where it asked for none. */
  get bookmark(): string | null {
    return this.#subscription.bookmark;
  }

  /** Answers the join, and from then on takes part. */
  begin(reply: (response: object) => void): void {
    const { request } = this.#joining;
    const { rooms } = this.#services;
    const ids = bindingIds(request.bindings);
    const { bookmark } = this;
    reply({
      postgres_changes: request.bindings.map((binding, at) => ({ ...binding, id: ids[at] })),
      ...(bookmark && { position: bookmark }),
    });
    this.#tellSubscription();
    if (request.broadcast.replicationReady) {
      this.#system({ extension: "system", status: "ok", message: "Replication connection established" });
    }
    // What was said may have been more than the client has read.
    if (this.#isOver) return;
    rooms.enter(this);
    if (request.presence.enabled) this.#tellWhoIsThere();
    this.#subscription.resume();
  }

  /** Whether what it says is answered. */
  get acknowledges(): boolean {
    return this.#joining.request.broadcast.ack;
  }

  /** Refuses by throwing. */
  async broadcast(broadcast: Broadcast): Promise<void> {
    const { speech } = this.#services;
    if (!(await this.#maySay("broadcast"))) throw unauthorized("write to", this.room);
    const passedOn = speech.say(this.room, broadcast, this);
    if (this.acknowledges || speech.isCrowded) await passedOn();
  }

  /** `{"type":"presence","event":"track","payload":{"name":"Alice"}}`; refuses by throwing. */
  async present(message: unknown): Promise<void> {
    const { event, payload = {} } = isJsonObject(message) ? message : {};
    switch (spellWord(event ?? null).toLowerCase()) {
      case "track":
        if (!isJsonObject(payload))
          throw new Refusal("InvalidPresencePayload", "The payload of track must be an object");
        if (!(await this.#maySay("presence"))) throw unauthorized("write to", this.room);
        if (this.#isOver) break;
        // Of what comes from now on it is told in any case: that is of no use to who does not know what was before.
        this.#tellWhoIsThere();
        await this.#track(payload);
        break;
      case "untrack":
        this.#untrack();
        break;
      default:
        throw new Refusal("UnknownPresenceEvent", "Presence knows track and untrack");
    }
  }

  async #begin(): Promise<void> {
    try {
      await this.#subscription.begin(this.#caller);
    } catch (error) {
      this.#clear();
      throw error;
    }
    if (this.#isOver) throw new Refusal("ChannelError", "Changes may have been missed: join again");
  }

  /** From now on all is judged by the claims of this token. */
  async renew(message: unknown): Promise<void> {
    const token = readToken(isJsonObject(message) ? message.access_token : null);
    if (token === null || token === this.#token) return;
    try {
      const caller = await this.#joining.line.identify(token);
      const hearing = await hearingOf(this.#services, caller, this.room);
      if (hearsLess(hearing, this.#hearing)) throw noLongerAuthorized(this.room);
      if (this.#isOver) return;
      retain(this.#retained, sizeOfJoin(this.#joining, token), this.#joining.line.retained);
      this.#hearing = hearing;
      this.#token = token;
      this.#caller = caller;
      this.#saying = new Map();
      await this.#subscription.renew(caller);
      if (this.#isOver) return;
      this.#tellSubscription();
      if (this.#joining.request.presence.enabled) this.#tellWhoIsThere();
    } catch (error) {
      if (error instanceof Refusal) this.end(error);
      else this.lose(`the new token could not be looked at (${reasonOf(error)})`);
    }
  }

  /** Over, and the client, which is told why, does not come back by itself. */
  end({ text }: Refusal): void {
    if (this.#isOver) return;
    this.#system({ extension: "system", status: "error", message: text });
    this.close();
  }

  /** Over. A join of the same topic takes its place, or the client has left. */
  close(): void {
    if (this.#isOver) return;
    this.#pushOfJoin("phx_close");
    this.#clear();
  }

  /** Over, and the client comes back: what it has missed it then reads again. */
  lose(reason: string): void {
    if (this.#isOver) return;
    this.#services.tally.gaps++;
    const message = `Changes may have been missed: ${reason}. Read again what you show.`;
    this.#system({ extension: "postgres_changes", status: "error", message });
    this.#pushOfJoin("phx_error");
    this.#clear();
  }

  /** The socket is gone, and nobody is to be told. */
  gone(): void {
    this.#clear();
  }

  #clear(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#services.rooms.leave(this);
    this.#untrack();
    this.#retained.release();
    this.#subscription.end();
    this.#leaveFeeds();
    this.#joining.onEnd();
  }

  async #track(payload: Readonly<Record<string, unknown>>): Promise<void> {
    const { presence, speech } = this.#services;
    presence.assertRoomFor(this, this.#presenceKey, payload);
    retain(this.#keptPresence, sizeOfPresence(this.#presenceKey, payload), this.#joining.line.presences);
    const relayed = presence.track(this, this.#presenceKey, payload);
    if (speech.isCrowded) await relayed;
  }

  #untrack(): void {
    this.#services.presence.untrack(this);
    this.#keptPresence.release();
  }

  #tellWhoIsThere(): void {
    if (this.#knowsWhoIsThere || !this.hearsPresence) return;
    this.#knowsWhoIsThere = true;
    this.outbox.send(this.#services.presence.stateFrame(this));
  }

  #tellSubscription(): void {
    const { state } = this.#subscription;
    if (state) this.#system({ extension: "postgres_changes", ...state });
  }

  #maySay(extension: Extension): Promise<boolean> {
    if (!this.room.isPrivate) return Promise.resolve(true);
    const { authorization } = this.#services;
    const known = this.#saying.get(extension) ?? authorization.maySay(this.#caller, this.room.name, extension);
    this.#saying.set(extension, known);
    known.catch(() => this.#saying.delete(extension));
    return known;
  }

  #system(payload: { extension: string; status: "ok" | "error"; message: string }): void {
    this.#push("system", JSON.stringify({ ...payload, channel: this.room.name }));
  }

  #push(event: string, payload: string): void {
    this.#send({ joinRef: null, ref: null, topic: this.topic, event }, payload);
  }

  /** Bears the join's ref: the client tells by it whether its present join is meant. */
  #pushOfJoin(event: "phx_close" | "phx_error"): void {
    const { joinRef } = this;
    this.#send({ joinRef, ref: joinRef, topic: this.topic, event }, "{}");
  }

  #send(envelope: Parameters<typeof spellMessage>[1], payload: string): void {
    this.outbox.send(socketFrame("text", spellMessage(this.version, envelope, payload)));
  }
}

async function hearingOf({ authorization }: ChannelServices, caller: Caller, room: Room): Promise<Hearing> {
  if (!room.isPrivate) return EVERYTHING;
  const hearing = await authorization.mayHear(caller, room.name);
  if (!hearing.broadcast && !hearing.presence) throw unauthorized("read from", room);
  return hearing;
}

/** A client that was told of something would take it that nothing happens there. */
function hearsLess(now: Hearing, before: Hearing): boolean {
  return (before.broadcast && !now.broadcast) || (before.presence && !now.presence);
}

function noLongerAuthorized({ name }: Room): Refusal {
  return new Refusal("Unauthorized", `You no longer have permission to read from this Channel topic: ${name}`);
}

function unauthorized(act: string, { name }: Room): Refusal {
  return new Refusal("Unauthorized", `You do not have permissions to ${act} this Channel topic: ${name}`);
}
