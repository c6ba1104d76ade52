import { ApiError } from "../errors.ts";
import type { Logger } from "../log.ts";
import { Audience, type Seat } from "./audience.ts";
import { formatLsn, type Lsn } from "./lsn.ts";
import { Reading } from "./reading.ts";
import type { SessionOptions } from "./session.ts";
import type { Slot } from "./slots.ts";

export type ReplaysOptions = {
  readonly session: SessionOptions;
  readonly log: Pick<Logger, "info" | "warn" | "error">;
  /** Whoever comes to the live reading now is told of the transactions above it. */
  liveHead(): Lsn;
  /** The seat has been told of everything that the live reading will not tell it. */
  handOver(seat: Seat): void;
  refuse(seat: Seat, error: ApiError): void;
};

/** Reads what was missed for those who resume, until it meets the live reading: one replay at a time for all who wait. */
export class Replays {
  readonly #options: ReplaysOptions;
  #waiting = new Set<Seat>();
  #audience: Audience | null = null;
  #reading: Reading | null = null;
  #running: Promise<void> | null = null;

  constructor(options: ReplaysOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#waiting.size + (this.#audience?.size ?? 0);
  }

  add(seat: Seat): void {
    this.#waiting.add(seat);
    this.#running ??= this.#run().finally(() => {
      this.#running = null;
    });
  }

  remove(seat: Seat): void {
    this.#waiting.delete(seat);
    this.#audience?.remove(seat);
    if (this.#audience?.size === 0) this.#reading?.close();
  }

  async close(): Promise<void> {
    this.#waiting.clear();
    this.#reading?.close();
    await this.#running;
  }

  async #run(): Promise<void> {
    while (this.#waiting.size > 0) {
      const audience = new Audience(this.#options.log);
      for (const seat of this.#waiting) audience.add(seat);
      this.#waiting = new Set();
      await this.#replay(audience);
    }
  }

  async #replay(audience: Audience): Promise<void> {
    const { session, log } = this.#options;
    const beginAt = (slot: Slot) => {
      this.#refuseLate(audience, slot);
      return lowest(audience.seats().map((seat) => seat.after + 1n)) ?? slot.now;
    };
    const reading = new Reading({ session, log, audience, beginAt, onPassed: () => this.#meet(reading, audience) });
    this.#audience = audience;
    this.#reading = reading;
    reading.started.then(
      () => this.#meet(reading, audience),
      (error) => {
        if (error instanceof ApiError) for (const seat of audience.seats()) this.#options.refuse(seat, error);
      },
    );
    await reading.run();
    this.#audience = null;
    this.#reading = null;
  }

  #refuseLate(audience: Audience, { earliest, now }: Slot): void {
    for (const seat of audience.seats()) {
      if (seat.after + 1n >= earliest && seat.after < now) continue;
      audience.remove(seat);
      this.#options.refuse(seat, noLongerKept(seat.after));
    }
  }

  #meet(reading: Reading, audience: Audience): void {
    if (reading.position >= this.#options.liveHead()) {
      for (const seat of audience.seats()) {
        audience.remove(seat);
        if (seat.after < reading.position) seat.after = reading.position;
        this.#options.handOver(seat);
      }
    }
    if (audience.size === 0) reading.close();
  }
}

function lowest(positions: readonly Lsn[]): Lsn | null {
  return positions.reduce<Lsn | null>((low, each) => (low === null || each < low ? each : low), null);
}

function noLongerKept(after: Lsn): ApiError {
  return new ApiError(410, "RESOURCE_NOT_FOUND", `The changes since ${formatLsn(after)} are no longer kept.`, {
    hint: "Read the rows again, and follow from now on.",
  });
}
