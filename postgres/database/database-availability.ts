import { NoServerError } from "../client/server-finder.ts";

export type DatabaseLog = {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
};

export type DatabaseAvailability = {
  readonly status: "connecting" | "up" | "down";
  readonly since: Date;
  /** The error message of the latest failed attempt. */
  readonly reason: string | null;
  /** True if servers answer, and none of them is a primary. */
  readonly lacksPrimary: boolean;
};

/** Tracks and logs whether the database can be reached. Reports each change once, however many requests fail. */
export class AvailabilityMonitor {
  #current: DatabaseAvailability = {
    status: "connecting",
    since: new Date(),
    reason: null,
    lacksPrimary: false,
  };
  #isExhausted = false;
  readonly #log: DatabaseLog;
  readonly #onChange: (availability: DatabaseAvailability) => void;

  constructor(log: DatabaseLog, onChange: (availability: DatabaseAvailability) => void) {
    this.#log = log;
    this.#onChange = onChange;
  }

  get current(): DatabaseAvailability {
    return this.#current;
  }

  /** Reports that a connection was opened. */
  up(): void {
    this.#isExhausted = false;
    const { status, since } = this.#current;
    if (status === "up") return;
    if (status === "down") this.#log.info({ awayMs: Date.now() - since.getTime() }, "the database is back");
    this.#change({ status: "up", since: new Date(), reason: null, lacksPrimary: false });
  }

  /** Reports that the server refused another connection while others are open. */
  exhausted(error: Error): void {
    if (this.#isExhausted) return;
    this.#isExhausted = true;
    this.#log.warn({ err: error }, "cannot open another database connection; going on with those that are open");
  }

  /** Reports that no connection is open and none could be opened. */
  down(error: Error): void {
    const reason = error.message;
    const lacksPrimary = error instanceof NoServerError && error.isAnswered;
    if (this.#current.status === "down") this.#current = { ...this.#current, reason, lacksPrimary };
    else {
      this.#log.warn({ err: error }, "the database is away; trying to reach it until it answers");
      this.#change({ status: "down", since: new Date(), reason, lacksPrimary });
    }
  }

  #change(availability: DatabaseAvailability): void {
    this.#current = availability;
    this.#onChange(availability);
  }
}
