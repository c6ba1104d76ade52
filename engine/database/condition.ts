export type Log = {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
};

export type Condition = {
  readonly status: "connecting" | "up" | "down";
  readonly since: Date;
  /** Why the latest attempt to reach it failed. */
  readonly reason: string | null;
};

/** Whether the database can be reached. Each change is told once, however many requests meet it. */
export class ConditionKeeper {
  #current: Condition = { status: "connecting", since: new Date(), reason: null };
  #isShort = false;
  readonly #log: Log;
  readonly #onChange: (condition: Condition) => void;

  constructor(log: Log, onChange: (condition: Condition) => void) {
    this.#log = log;
    this.#onChange = onChange;
  }

  get current(): Condition {
    return this.#current;
  }

  /** A connection was opened. */
  up(): void {
    this.#isShort = false;
    const { status, since } = this.#current;
    if (status === "up") return;
    if (status === "down") this.#log.info({ awayMs: Date.now() - since.getTime() }, "the database is back");
    this.#change({ status: "up", since: new Date(), reason: null });
  }

  /** A further connection was refused while others work. */
  short(error: Error): void {
    if (this.#isShort) return;
    this.#isShort = true;
    this.#log.warn({ err: error }, "cannot open another database connection; going on with those that are open");
  }

  /** There is no connection and none was to be had. */
  down(error: Error): void {
    const reason = error.message;
    if (this.#current.status === "down") this.#current = { ...this.#current, reason };
    else {
      this.#log.warn({ err: error }, "the database is away; trying to reach it until it answers");
      this.#change({ status: "down", since: new Date(), reason });
    }
  }

  #change(condition: Condition): void {
    this.#current = condition;
    this.#onChange(condition);
  }
}
