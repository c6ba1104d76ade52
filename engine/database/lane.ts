import type { ApiError } from "../errors.ts";
import { FairQueue, type Waiting } from "./fair-queue.ts";
import { shuttingDown } from "./faults.ts";
import type { Link, LinkEvents } from "./link.ts";
import { LONG } from "./shape.ts";
import { type Claimant, type ShareLimits, Shares } from "./shares.ts";
import { makeTally, type Tally } from "./tally.ts";

const IDLE_MILLISECONDS = 60_000;
const MOST_WAITING = 10_000;

/** Something that wants a link. */
export type Ticket = Claimant &
  Waiting & {
    /** When it gives up waiting, by `performance.now()`. */
    readonly expires: number;
    /** Others may wait for it, since that costs less than to be sent by themselves. */
    readonly isBrief: boolean;
    start(link: Link): void;
    refuse(error: ApiError): void;
  };

export type LaneOptions = {
  /** How many exchanges a link may have in flight. */
  readonly depth: number;
  /** How many links stay open when there is nothing to do. */
  readonly least: number;
  /** Resolves with null when nobody wants the link any more. */
  readonly open: (events: LinkEvents, isWanted: () => boolean) => Promise<Link | null>;
  /** What to tell those who have waited too long. */
  readonly refusal: () => ApiError;
  readonly tally?: Tally;
  /** The shares that tickets take, by how many links there may be; without it there are no shares. */
  readonly limitsFor?: (most: number) => ShareLimits;
  /** For how many milliseconds a link may run what can run again while others wait for it. */
  readonly slice?: number;
  /** Called when something starts, so that `look` is too. */
  readonly onStart?: () => void;
};

/** Links of one kind and those who wait for one. */
export class Lane {
  readonly #options: LaneOptions;
  readonly tally: Tally;
  readonly #links: Link[] = [];
  readonly #waiting = new FairQueue<Ticket>();
  readonly #shares: Shares | null;
  #most = 0;
  #opening = 0;
  #draining: (() => void) | null = null;

  constructor(options: LaneOptions) {
    this.#options = options;
    this.tally = options.tally ?? makeTally();
    this.#shares = options.limitsFor ? new Shares(options.limitsFor(0)) : null;
  }

  get links(): readonly Link[] {
    return this.#links;
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  get inFlight(): number {
    return this.#links.reduce((sum, link) => sum + link.load, 0);
  }

  get most(): number {
    return this.#most;
  }

  /** Opens what is wanted at once; what is too many closes as it falls idle. */
  resize(most: number): void {
    this.#most = most;
    if (this.#shares) this.#shares.limits = this.#options.limitsFor!(most);
    this.#pump();
    this.#grow();
  }

  submit(ticket: Ticket): void {
    if (this.#draining) ticket.refuse(shuttingDown());
    else if (this.#waiting.length >= MOST_WAITING) this.#turnAway(ticket);
    else {
      // Whoever waits already can start on none of the links that have room.
      const link = this.#linkFor(ticket);
      if (link && this.#mayStart(ticket)) this.#start(ticket, link);
      else this.#waiting.push(ticket);
      this.#grow();
    }
  }

  /** It no longer wants to be started. */
  withdraw(ticket: Ticket): void {
    this.#waiting.remove(ticket);
  }

  /** Gives back a link that was leased. */
  release(link: Link): void {
    link.leased = false;
    this.#onReady(link);
  }

  /** Whoever waits is not served here. */
  turnAway(): void {
    for (const ticket of this.#waiting.takeWhile(() => true)) this.#turnAway(ticket);
  }

  forgetStatements(): void {
    for (const link of this.#links) link.forgetStatements();
  }

  /** To be called now and then. */
  sweep(now: number): void {
    this.#shares?.forget(now);
    for (const ticket of this.#waiting.takeWhile(({ expires }) => expires <= now)) this.#turnAway(ticket);
    for (const link of this.#links.slice()) {
      link.watch(now);
      if (now > link.retires) link.retiring = true;
      const spare = this.#links.length > this.#options.least && now - link.idleSince > IDLE_MILLISECONDS;
      if (spare || this.#links.length > this.#most) link.retiring ||= link.isIdle;
      if (link.retiring) this.#onReady(link);
    }
    this.#finishDraining();
  }

  /**
   * To be called every few milliseconds while something runs. Notes what takes long. Where others wait, or nobody waits for it, the read that has
   * been running for longest is interrupted and goes where it is in nobody's way. Few at a time, since all are slow where
   * the server is.
   */
  look(now: number): void {
    for (const link of this.#links) {
      if (link.claimant && link.busyFor(now) >= LONG) this.#shares!.takesLong(link.claimant, now);
    }
    const { slice } = this.#options;
    if (slice !== undefined) this.#interrupt(now, slice);
  }

  #interrupt(now: number, slice: number): void {
    const isCrowded = !this.#hasRoom && this.#waiting.find(this.#mayStart) !== null;
    // While it drains, others take nothing any more that goes on there.
    const mayMove = !this.#draining;
    const isInTheWay = (link: Link) => link.isAbandoned || (mayMove && (isCrowded || link.load > 1));
    this.#links
      .filter((link) => link.busyFor(now) > slice && link.isInterruptible && isInTheWay(link) && !link.claimant)
      .toSorted((one, other) => other.busyFor(now) - one.busyFor(now))
      .slice(0, Math.ceil(this.#links.length / 4))
      .forEach((link) => {
        link.interrupt();
      });
  }

  /** Takes no more tickets, waits for the last answer and closes. */
  async drain(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#draining = resolve;
      this.#finishDraining();
    });
    await Promise.all(this.#links.splice(0).map((link) => link.close()));
  }

  readonly #events: LinkEvents = {
    ready: (link) => this.#onReady(link),
    lost: (link) => {
      if (!this.#remove(link)) return;
      this.#pump();
      this.#grow();
    },
  };

  #onReady(link: Link): void {
    if (link.isIdle) this.#giveBack(link);
    if (link.retiring && link.isIdle && this.#remove(link)) {
      void link.close();
      this.#grow();
    }
    this.#pump();
    this.#finishDraining();
  }

  #pump(): void {
    while (this.#waiting.length > 0 && this.#hasRoom) {
      const ticket = this.#waiting.find(this.#mayStart);
      if (!ticket) return;
      this.#waiting.serve(ticket);
      this.#start(ticket, this.#linkFor(ticket)!);
    }
  }

  readonly #mayStart = (ticket: Ticket): boolean => this.#shares?.admits(ticket) ?? true;

  #start(ticket: Ticket, link: Link): void {
    // It may still have that of a ticket which goes on elsewhere.
    this.#giveBack(link);
    if (this.#shares?.take(ticket)) {
      link.claimant = ticket;
      link.claimedAt = performance.now();
    }
    this.#options.onStart?.();
    ticket.start(link);
  }

  #giveBack(link: Link): void {
    const { claimant } = link;
    if (!claimant) return;
    link.claimant = null;
    this.#shares!.giveBack(claimant);
    if (this.#shares!.isCongested) this.#noteEnd(claimant, link.claimedAt);
  }

  #noteEnd(claimant: Claimant, startedAt: number): void {
    const now = performance.now();
    if (now - startedAt >= LONG) return;
    const stillLong = this.#links.flatMap((link) => (link.busyFor(now) >= LONG && link.claimant) || []);
    this.#shares!.tookShort(claimant, stillLong);
  }

  get #hasRoom(): boolean {
    return this.#links.some((link) => link.hasRoom);
  }

  /**
   * What is brief goes along with what is about to be sent: one write, and one awakening of the server, for several. All
   * else goes where there is the least to do.
   */
  #linkFor({ isBrief }: Ticket): Link | undefined {
    let best: Link | undefined;
    for (const link of this.#links) {
      if (!link.hasRoom) continue;
      if (isBrief && link.isGathering) return link;
      if (!best || link.load < best.load) best = link;
    }
    return best;
  }

  #grow(): void {
    while (this.#links.length + this.#opening < this.#most && this.#isShort()) void this.#open();
  }

  #isShort(): boolean {
    if (this.#links.length + this.#opening < this.#options.least) return this.#draining === null;
    if (this.#waiting.length > this.#opening) return true;
    // Links that share their time among several exchanges get company, one at a time.
    return this.#opening === 0 && this.#options.depth > 1 && this.#links.every((link) => link.load > 1);
  }

  async #open(): Promise<void> {
    this.#opening++;
    const isWanted = () => this.#waiting.length > 0 || (this.#links.length < this.#options.least && !this.#draining);
    const link = await this.#options.open(this.#events, isWanted);
    this.#opening--;
    if (!link) return;
    // Lost on its way here, when there was nothing to remove yet.
    if (link.isGone) return this.#grow();
    if (this.#draining && !isWanted()) return link.close();
    this.#links.push(link);
    this.#onReady(link);
  }

  #remove(link: Link): boolean {
    const index = this.#links.indexOf(link);
    if (index < 0) return false;
    this.#links.splice(index, 1);
    this.#giveBack(link);
    return true;
  }

  #turnAway(ticket: Ticket): void {
    this.tally.turnedAway++;
    ticket.refuse(this.#options.refusal());
  }

  #finishDraining(): void {
    if (this.#waiting.length === 0 && this.#links.every((link) => link.isIdle)) this.#draining?.();
  }
}
