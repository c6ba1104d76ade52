import { availableParallelism } from "node:os";
import type { ApiError } from "../errors.ts";
import { type Condition, ConditionKeeper, type Log } from "./condition.ts";
import { Connector } from "./connector.ts";
import { databaseAway, waitedTooLong } from "./faults.ts";
import { Lane } from "./lane.ts";
import { Link, type LinkEvents } from "./link.ts";
import { askRoom, divideRoom, idealSizes, type LaneName } from "./room.ts";
import { type ShareLimits, sharesForReads, sharesForWrites } from "./shares.ts";
import { makeTally, type Tally } from "./tally.ts";
import type { UnderWay } from "./under-way.ts";
import { openSocket, type WireSocket } from "./wire/socket.ts";

const SWEEP_MILLISECONDS = 250;
const ROOM_MILLISECONDS = 5_000;
const CONNECT_MILLISECONDS = 5_000;
/** How many connections will do until the server has said how many it can spare. */
const FIRST_CONNECTIONS = 8;
const MOST_PREPARED = 250;

/** How often it is looked whether something keeps others waiting. */
const TICK_MILLISECONDS = 25;

type Terms = {
  /** For how many milliseconds a read may keep others waiting on a link, or for one. */
  readonly slice?: number;
  readonly limitsFor?: (connections: number) => ShareLimits;
};

/** Reads that are known to be fast may have several in flight on one link; for all others a link is theirs alone. */
const TERMS: Readonly<Record<LaneName, Terms>> = {
  read: { slice: 50 },
  write: { limitsFor: sharesForWrites },
  slow: { slice: 200, limitsFor: sharesForReads },
  stream: {},
};

export type PoolOptions = {
  readonly url: string;
  readonly applicationName: string;
  readonly log: Log;
  readonly onState: (condition: Condition) => void;
  readonly size: number;
  readonly preparedStatements: boolean;
  /** Most reads that are in flight on one link. */
  readonly pipelineDepth: number;
};

export type LaneState = {
  readonly links: number;
  readonly most: number;
  readonly inFlight: number;
  readonly waiting: number;
  readonly preparedStatements: number;
  readonly tally: Readonly<Tally>;
};

export type PoolState = Condition & { readonly lanes: Readonly<Record<LaneName, LaneState>> };

/** The requests' connections: as many as the server can spare, kept alive, and brought back when they are lost. */
export class LinkPool {
  readonly lanes: Readonly<Record<LaneName, Lane>>;
  readonly #options: PoolOptions;
  readonly #condition: ConditionKeeper;
  readonly #connector: Connector<WireSocket>;
  readonly #sweeper: NodeJS.Timeout;
  #ticker: NodeJS.Timeout | null = null;
  #roomAsked = Number.NEGATIVE_INFINITY;
  #roomKnown = false;

  constructor(options: PoolOptions) {
    const { url, applicationName, log, onState } = options;
    this.#options = options;
    this.#condition = new ConditionKeeper(log, onState);
    this.#connector = new Connector({
      connect: () => openSocket({ url, applicationName, connectTimeout: CONNECT_MILLISECONDS }),
      onFailure: (error) => this.#onConnectFailure(error),
      isAwaited: () => this.#all.some((lane) => lane.waiting > 0),
    });
    this.lanes = {
      read: this.#makeLane("read"),
      write: this.#makeLane("write"),
      slow: this.#makeLane("slow"),
      stream: this.#makeLane("stream"),
    };
    this.#resize(FIRST_CONNECTIONS);
    this.#sweeper = setInterval(() => this.#sweep(), SWEEP_MILLISECONDS);
  }

  get state(): PoolState {
    const { read, write, slow, stream } = this.lanes;
    const lanes = { read: stateOf(read), write: stateOf(write), slow: stateOf(slow), stream: stateOf(stream) };
    return { ...this.#condition.current, lanes };
  }

  async close(): Promise<void> {
    await Promise.all(this.#all.map((lane) => lane.drain()));
    clearInterval(this.#sweeper);
    clearTimeout(this.#ticker ?? undefined);
    this.#connector.close();
  }

  /** Whoever waits for a connection is not served here. */
  turnAway(): void {
    for (const lane of this.#all) lane.turnAway();
  }

  underWay(): UnderWay[] {
    const now = performance.now();
    return this.#all.flatMap(({ links }) => links.flatMap((link) => link.underWay(now)));
  }

  forgetStatements(): void {
    for (const lane of this.#all) lane.forgetStatements();
  }

  get #all(): readonly Lane[] {
    return Object.values(this.lanes);
  }

  get #linkCount(): number {
    return this.#all.reduce((sum, lane) => sum + lane.links.length, 0);
  }

  #makeLane(name: LaneName): Lane {
    const depth = name === "read" ? this.#options.pipelineDepth : 1;
    const tally = makeTally();
    return new Lane({
      ...TERMS[name],
      depth,
      tally,
      // One link is always there, so that we know whether the database is.
      least: name === "read" ? 1 : 0,
      open: (events, isWanted) => this.#openLink({ depth, tally }, events, isWanted),
      refusal: () => this.#refusal(),
      onStart: this.#keepTicking,
    });
  }

  readonly #keepTicking = (): void => {
    // What has been answered meanwhile is read first: what we have not read is no fault of the server's.
    this.#ticker ??= setTimeout(() => setImmediate(this.#tick), TICK_MILLISECONDS);
  };

  readonly #tick = (): void => {
    this.#ticker = null;
    const now = performance.now();
    for (const lane of this.#all) lane.look(now);
    if (this.#all.some(({ inFlight }) => inFlight > 0)) this.#keepTicking();
  };

  #refusal(): ApiError {
    const { status, reason } = this.#condition.current;
    return status === "up" ? waitedTooLong() : databaseAway(reason);
  }

  async #openLink(
    { depth, tally }: { readonly depth: number; readonly tally: Tally },
    events: LinkEvents,
    isWanted: () => boolean,
  ): Promise<Link | null> {
    const socket = await this.#connector.open(isWanted);
    if (!socket) return null;
    this.#condition.up();
    void this.#fitRoom();
    const mostPrepared = this.#options.preparedStatements ? MOST_PREPARED : 0;
    return new Link(socket, events, { depth, tally, mostPrepared });
  }

  #onConnectFailure(error: Error): void {
    if (this.#linkCount > 0) this.#condition.short(error);
    else {
      this.#roomKnown = false;
      this.#roomAsked = Number.NEGATIVE_INFINITY;
      this.#condition.down(error);
    }
  }

  #sweep(): void {
    const now = performance.now();
    for (const lane of this.#all) lane.sweep(now);
    if (this.#condition.current.status === "up") void this.#fitRoom();
  }

  /** Fits the lanes into what the server can spare, once each time that it comes up. */
  async #fitRoom(): Promise<void> {
    const now = performance.now();
    if (this.#roomKnown || now - this.#roomAsked < ROOM_MILLISECONDS) return;
    this.#roomAsked = now;
    try {
      const available = (await askRoom(this.#options.url)) + this.#linkCount;
      this.#resize(available / 2);
      this.#roomKnown = true;
    } catch (error) {
      this.#options.log.warn({ err: error }, "could not ask the database how many connections it has to spare");
    }
  }

  #resize(connections: number): void {
    const sizes = divideRoom(Math.min(this.#options.size, connections), idealSizes(availableParallelism()));
    for (const name of Object.keys(sizes) as LaneName[]) this.lanes[name].resize(sizes[name]);
  }
}

function stateOf(lane: Lane): LaneState {
  const { links, most, inFlight, waiting, tally } = lane;
  const preparedStatements = links.reduce((sum, link) => sum + link.preparedStatements, 0);
  return { links: links.length, most, inFlight, waiting, preparedStatements, tally };
}
