import type { DatabaseError } from "pg";
import type { Exchange, Step } from "./exchange.ts";
import type { Prepared } from "./prepared.ts";
import { readFields } from "./wire/decode.ts";
import * as message from "./wire/messages.ts";

/** Both leave nothing behind, since Bind failed: the statement is gone (26000), or its columns have changed (0A000). */
const STALE = new Set(["26000", "0A000"]);
/** What was understood before is not any more: a column has another type now, or is not there. */
const MISUNDERSTOOD = /^42/;

/** How far the server has come with an exchange, as its answers tell. */
export class Progress {
  readonly exchange: Exchange;
  /** One for each step. */
  readonly prepared: readonly Prepared[];
  /** As it was when it was sent. */
  readonly expected: number;
  error: Error | null = null;
  /** The error is about a prepared statement and not about what it was to do. */
  isStale = false;

  #step = 0;
  /** The index of the step whose Sync the server will answer next. */
  #sync: number;
  /** The current step's Bind has been answered. */
  #bound = false;

  constructor(exchange: Exchange, prepared: readonly Prepared[]) {
    this.exchange = exchange;
    this.prepared = prepared;
    this.expected = exchange.expected;
    this.#sync = exchange.steps.findIndex(({ sync }) => sync);
  }

  /** What the server is at; behind the last step before a Sync it is the commit. */
  get step(): Step | undefined {
    return this.#step <= this.#sync ? this.exchange.steps[this.#step] : undefined;
  }

  get #isMain(): boolean {
    const { main, mains } = this.exchange;
    return this.#step >= main && this.#step < main + mains;
  }

  /** Asked before a message is collected that comes in pieces; what is not admitted is dropped as it comes. */
  admits(type: number, bytes: number): boolean {
    return type !== message.DATA_ROW || !this.#isMain || this.exchange.admits(bytes);
  }

  /** Takes an answer that is neither an error nor ReadyForQuery. */
  take(type: number, buffer: Buffer, start: number, end: number, owned: boolean): void {
    const isMain = this.#isMain;
    switch (type) {
      case message.DATA_ROW:
        // What is owned was admitted before it was collected.
        if (isMain && (owned || this.exchange.admits(end - start))) {
          this.exchange.collector.row(buffer, start, end, owned);
        }
        break;
      case message.COMMAND_COMPLETE:
      case message.EMPTY_QUERY:
        if (isMain) this.exchange.collector.complete(buffer, start, end);
        this.#step++;
        this.#bound = false;
        break;
      case message.PARSE_COMPLETE:
        this.prepared[this.#step]!.ready = true;
        break;
      case message.BIND_COMPLETE:
        this.#bound = true;
        break;
      case message.ROW_DESCRIPTION:
        this.prepared[this.#step]!.fields = readFields(buffer, start);
        break;
      case message.NO_DATA:
        this.prepared[this.#step]!.fields = [];
        break;
      default:
        // COPY, for one, would have us speak another protocol.
        throw new Error(`The server sent a message of type ${String.fromCharCode(type)}, which none of ours calls for`);
    }
  }

  /** Returns the prepared statement that is of no use any more, if that is what the error is about. */
  fail(error: DatabaseError): Prepared | null {
    this.error ??= error;
    this.isStale = this.step !== undefined && !this.#bound && this.#isOutdated(error.code ?? "");
    return this.isStale ? this.prepared[this.#step]! : null;
  }

  #isOutdated(code: string): boolean {
    return STALE.has(code) || (MISUNDERSTOOD.test(code) && this.prepared[this.#step]!.ready);
  }

  /** ReadyForQuery, to which the server skips after an error; false when another Sync is to be answered. */
  sync(): boolean {
    const { steps } = this.exchange;
    this.#step = this.#sync + 1;
    this.#sync = steps.findIndex(({ sync }, index) => sync && index >= this.#step);
    this.#bound = false;
    return this.#step === steps.length;
  }
}
