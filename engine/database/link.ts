import type { DatabaseError } from "pg";
import type { Exchange } from "./exchange.ts";
import { ContextError, transactionAstray } from "./faults.ts";
import { type Prepared, PreparedStatements } from "./prepared.ts";
import { Progress } from "./progress.ts";
import type { Claimant } from "./shares.ts";
import { makeTally, type Tally } from "./tally.ts";
import { type UnderWay, underWay } from "./under-way.ts";
import { isFatal, readError, readPair } from "./wire/decode.ts";
import { Outbox } from "./wire/encode.ts";
import * as message from "./wire/messages.ts";
import type { WireSocket } from "./wire/socket.ts";

/** What a server that was asked to cancel gets before it counts as gone. */
const GRACE = 5_000;

const LIFETIME = 3_600_000;

/** So many may be in flight whatever they take. */
const FEW = 4;
/** So many go into one write; more on one link would make others of its processes idle. */
const MOST_GATHERED = 8;
/** Milliseconds that those in flight may be expected to take together before further ones go elsewhere, or wait. */
const MOST_EXPECTED = 10;

/** SQLSTATE query_canceled. */
const CANCELED = "57014";

export type LinkEvents = {
  /** It may have room for another exchange, or be done for good. */
  ready(link: Link): void;
  lost(link: Link, reason: Error): void;
};

export type LinkOptions = {
  /** How many exchanges may be in flight, while they are expected to be brief. */
  readonly depth: number;
  readonly mostPrepared: number;
  readonly tally?: Tally;
};

/** One session. Exchanges are answered in the order in which they were sent. */
export class Link {
  readonly openedAt = performance.now();
  /** When it has served long enough: a backend's memory only ever grows. */
  readonly retires = this.openedAt + LIFETIME * (0.9 + Math.random() * 0.2);
  /** Lent to a transaction as a whole. */
  leased = false;
  /** Takes nothing more, and is to be closed when it is idle. */
  retiring = false;
  /** Whose shares what runs on it takes, if anybody's. */
  claimant: Claimant | null = null;
  claimedAt = 0;

  readonly #socket: WireSocket;
  readonly #events: LinkEvents;
  readonly #depth: number;
  readonly #tally: Tally;
  readonly #prepared: PreparedStatements;
  readonly #outbox = new Outbox();
  readonly #inFlight: Progress[] = [];
  /** Milliseconds that those in flight are expected to take. */
  #expected = 0;
  /** How many of those in flight are still in the outbox. */
  #unsent = 0;
  /** Since when the server has had nothing else to do than the head of those in flight. */
  #headSince = performance.now();
  #heard = true;
  #quietSince = 0;
  #paused = false;
  #cancelWanted = false;
  #cancelling = false;
  /** Whoever is hit by the cancel may run again. Until all in flight have ended nothing is added. */
  #interrupted = false;
  #gone = false;
  /** Reported settings that differ from what they were at the start. */
  readonly #deviations = new Set<string>();

  constructor(socket: WireSocket, events: LinkEvents, { depth, mostPrepared, tally = makeTally() }: LinkOptions) {
    this.#socket = socket;
    this.#events = events;
    this.#depth = depth;
    this.#tally = tally;
    this.#prepared = new PreparedStatements(mostPrepared, tally);
    tally.opened++;
    socket.listen(this.#deliver, (reason) => this.#lose(reason), this.#admit);
  }

  get load(): number {
    return this.#inFlight.length;
  }

  get hasRoom(): boolean {
    const { length } = this.#inFlight;
    if (length >= this.#depth || (length >= FEW && this.#expected >= MOST_EXPECTED)) return false;
    return !this.leased && !this.retiring && !this.#cancelling && !this.#interrupted;
  }

  /** Has not sent yet what it was given, and takes more. */
  get isGathering(): boolean {
    return this.#unsent > 0 && this.#unsent < MOST_GATHERED;
  }

  get isIdle(): boolean {
    return this.#inFlight.length === 0 && !this.leased && !this.#cancelling;
  }

  /** Nobody waits for what the server is at. */
  get isAbandoned(): boolean {
    return this.#inFlight[0]?.exchange.isAbandoned ?? false;
  }

  get isGone(): boolean {
    return this.#gone;
  }

  get idleSince(): number {
    return this.#headSince;
  }

  get preparedStatements(): number {
    return this.#prepared.size;
  }

  forgetStatements(): void {
    this.#prepared.dropAll();
  }

  /** Of the session, as the server has it. */
  get pid(): number {
    return this.#socket.processId;
  }

  underWay(now: number): UnderWay[] {
    const session = { pid: this.pid, milliseconds: now - this.#headSince };
    return this.#inFlight.map(({ exchange }) => underWay(session, exchange));
  }

  send(exchange: Exchange): void {
    if (this.#gone) exchange.end({ kind: "lost", cause: new Error("The connection is closed"), sent: false });
    else {
      const progress = new Progress(exchange, this.#write(exchange));
      this.#inFlight.push(progress);
      this.#expected += progress.expected;
      this.#unsent++;
      // One write for all that comes up in this turn of the event loop; writing each at once costs 10 to 15 %.
      if (this.#depth === 1 && !this.leased) this.#flush();
      else if (this.#unsent === 1) setImmediate(this.#flush);
    }
  }

  pause(): void {
    this.#paused = true;
    this.#socket.pause();
  }

  resume(): void {
    this.#paused = false;
    this.#socket.resume();
  }

  /**
   * A cancel hits whatever the session runs when it arrives there: so nothing happens on links that are shared, and this
   * one has no room before the server has taken the cancel.
   */
  cancel(): void {
    if (this.#depth > 1 || this.#inFlight.length === 0) return;
    this.#cancelWanted = true;
    if (!this.#cancelling) this.#beginCancel();
  }

  /** For how many milliseconds the server has been at what it is at. */
  busyFor(now: number): number {
    return this.#unsent < this.#inFlight.length ? now - this.#headSince : 0;
  }

  get isInterruptible(): boolean {
    return !this.#cancelling && (this.#inFlight[0]?.exchange.isInterruptible ?? false);
  }

  /** Cancels what is running, for others to go on. When it has ended by itself meanwhile, the cancel hits the next one, which runs again too. */
  interrupt(): void {
    this.#interrupted = true;
    this.#tally.interrupted++;
    this.#beginCancel();
  }

  #beginCancel(): void {
    this.#cancelling = true;
    // Postgres does not notice a cancel while it waits for somebody to read.
    if (this.#paused) this.resume();
    // Behind the write of what is to be cancelled.
    setImmediate(() => this.#sendCancel());
  }

  /** To be called now and then: notices a server that has fallen silent, and a cancel that came too early to hit. */
  watch(now: number): void {
    const head = this.#inFlight[0];
    if (this.#heard || this.#paused || !head) {
      this.#heard = false;
      this.#quietSince = now;
    }
    if (!head) return;
    const overdue = now - this.#quietSince - head.exchange.patience;
    if (this.#cancelWanted || overdue > 0) this.cancel();
    if (overdue > GRACE) this.#abandon(new Error("The server has stopped answering"));
  }

  async close(): Promise<void> {
    this.retiring = true;
    await this.#socket.end();
  }

  async #sendCancel(): Promise<void> {
    try {
      if (this.#inFlight.length > 0) await this.#socket.cancel();
      this.#cancelling = false;
      if (this.#inFlight.length === 0) this.#interrupted = false;
      if (!this.#gone) this.#events.ready(this);
    } catch (error) {
      // It may still arrive, and hit what comes next.
      this.#abandon(error as Error);
    }
  }

  #write({ steps, main, wantsFields, fresh }: Exchange): Prepared[] {
    const outbox = this.#outbox;
    for (const name of this.#prepared.takeClosing()) outbox.closeStatement(name);
    return steps.map((step, index) => {
      const statement = fresh ? this.#prepared.replace(step.shape) : this.#prepared.use(step.shape);
      if (!statement.sent) {
        outbox.parse(statement.name, step.shape.text);
        statement.sent = true;
      }
      outbox.bind(statement.name, step.values);
      if (wantsFields && index === main && !statement.fields) outbox.describePortal();
      outbox.execute();
      if (step.sync) outbox.sync();
      return statement;
    });
  }

  readonly #flush = (): void => {
    if (this.#gone || this.#unsent === 0) return;
    if (!this.#socket.isWritable()) {
      this.#abandon(new Error("The connection was closed by the server"));
      return;
    }
    const now = performance.now();
    if (this.#unsent === this.#inFlight.length) this.#headSince = now;
    this.#quietSince = now;
    this.#unsent = 0;
    this.#socket.write(this.#outbox.take());
  };

  readonly #admit = (type: number, bytes: number): boolean => this.#inFlight[0]?.admits(type, bytes) ?? true;

  readonly #deliver = (type: number, buffer: Buffer, start: number, end: number, owned: boolean): void => {
    if (this.#gone) return;
    this.#heard = true;
    const head = this.#inFlight[0];
    switch (type) {
      case message.CLOSE_COMPLETE:
      case message.NOTIFICATION:
      case message.NOTICE:
        break;
      case message.PARAMETER_STATUS:
        this.#onParameter(buffer, start);
        break;
      case message.ERROR:
        this.#onError(head, readError(buffer, start, end, head?.step?.isContext ? ContextError : undefined));
        break;
      case message.READY_FOR_QUERY:
        if (head?.sync()) this.#finish(head, buffer[start]!);
        break;
      default:
        if (!head) throw new Error("The server answered what nobody asked");
        head.take(type, buffer, start, end, owned);
    }
  };

  /** A function has changed the session, not only its transaction: such a session is not used again. */
  #onParameter(buffer: Buffer, start: number): void {
    const [name, value] = readPair(buffer, start);
    if (this.#socket.parameters.get(name) === value) this.#deviations.delete(name);
    else this.#deviations.add(name);
  }

  #onError(head: Progress | undefined, error: DatabaseError): void {
    if (!head || isFatal(error)) this.#abandon(error);
    else {
      const useless = head.fail(error);
      if (useless) this.#prepared.drop(useless);
    }
  }

  #finish({ exchange, expected, prepared, error, isStale }: Progress, status: number): void {
    this.#inFlight.shift();
    this.#expected = this.#inFlight.length === 0 ? 0 : this.#expected - expected;
    this.#cancelWanted = false;
    if (this.#paused) this.resume();
    const now = performance.now();
    const milliseconds = now - this.#headSince;
    this.#headSince = now;
    this.#tally.exchanges++;
    this.#tally.milliseconds += milliseconds;
    if (error) for (const statement of prepared) if (!statement.ready) this.#prepared.forget(statement);

    const isAstray = exchange.keepsTransaction ? !error && status === message.IDLE : status !== message.IDLE;
    const failure = error ?? (isAstray ? transactionAstray() : null);
    const fields = exchange.wantsFields ? prepared[exchange.main]!.fields : null;
    const isInterrupted = this.#interrupted && (error as DatabaseError | null)?.code === CANCELED;
    if (this.#inFlight.length === 0 && !this.#cancelling) this.#interrupted = false;
    if (failure) exchange.end({ kind: "refused", milliseconds, error: failure, isStale, isInterrupted });
    else exchange.end({ kind: "done", milliseconds, fields });

    // Those behind it ran inside the transaction that it left open, so they must end with it.
    if (isAstray) this.#abandon(transactionAstray());
    else {
      if (status === message.IDLE && this.#deviations.size > 0) this.retiring = true;
      this.#events.ready(this);
    }
  }

  #abandon(reason: Error): void {
    this.#socket.destroy();
    this.#lose(reason);
  }

  #lose(reason: Error): void {
    if (this.#gone) return;
    this.#gone = true;
    if (!this.retiring) this.#tally.lost++;
    const lost = this.#inFlight.splice(0);
    const sent = lost.length - this.#unsent;
    this.#events.lost(this, reason);
    for (const [index, { exchange, error }] of lost.entries()) {
      // Once refused it cannot have been committed.
      if (error) exchange.end({ kind: "refused", milliseconds: 0, error, isStale: false, isInterrupted: false });
      else exchange.end({ kind: "lost", cause: reason, sent: index < sent });
    }
  }
}
