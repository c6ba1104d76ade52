import type { OperationTypeNode } from "grafast/graphql";
import { changedButResponseTooLarge, ResponseBudget } from "#postgres/database";

/** Larger responses are built one after the other: a few milliseconds per mebibyte. */
const SMALL_RESPONSE_BYTES = 256 * 1024;
/** How long a slow client's response counts against the shared budget. */
const MAX_HELD_MS = 5_000;

/** The memory budgets that all operations share. */
export type SharedBudgets = { readonly rows: ResponseBudget; readonly responses: ResponseBudget };

type OperationMemoryOptions = {
  readonly kind: `${OperationTypeNode}`;
  /** True if a change stays when its response is too large. */
  readonly commitsBeforeResponse: boolean;
  readonly maxRowBytes: number;
  readonly maxResponseBytes: number;
  readonly waitForSlot: () => Promise<void>;
};

/** Limits what one operation holds: its rows while it runs, and its response until that is sent. */
export class OperationMemory {
  readonly #options: OperationMemoryOptions;
  readonly #sharedRows: ResponseBudget;
  readonly #rows: ResponseBudget;
  readonly #response: ResponseBudget;

  constructor({ rows, responses }: SharedBudgets, options: OperationMemoryOptions) {
    this.#options = options;
    this.#sharedRows = rows;
    this.#rows = new ResponseBudget(options.maxRowBytes, rows);
    // Aliases can make a response much larger than its rows.
    this.#response = new ResponseBudget(options.maxResponseBytes, responses);
  }

  /** The number of bytes that the text of a response may have. */
  get maxBytes(): number {
    return Math.min(this.#options.maxRowBytes, this.#options.maxResponseBytes);
  }

  /** A subscription has no end, so each of its events has a budget of its own. */
  rowBudget(): ResponseBudget {
    const { kind, maxRowBytes } = this.#options;
    return kind === "subscription" ? new ResponseBudget(maxRowBytes) : this.#rows;
  }

  /** The budget for a statement of an open transaction. */
  statementBudget(): ResponseBudget {
    return new ResponseBudget(this.#options.maxRowBytes, this.#sharedRows);
  }

  /** Takes the memory for a response; throws if that is too much, and waits before a large response is built. */
  admitBytes(bytes: number): Promise<void> | void {
    const { kind, commitsBeforeResponse, waitForSlot } = this.#options;
    if (kind === "subscription") this.release();
    if (!this.#response.take(bytes)) {
      const refusal = commitsBeforeResponse ? changedButResponseTooLarge() : this.#response.refusal();
      this.release();
      throw refusal;
    }
    if (kind === "subscription") this.#releaseSoon();
    if (bytes > SMALL_RESPONSE_BYTES) return waitForSlot();
  }

  endExecution(): void {
    this.#rows.giveAllBack();
    this.#releaseSoon();
  }

  release(): void {
    this.#response.giveAllBack();
  }

  #releaseSoon(): void {
    if (this.#response.isSmall) this.release();
    else setTimeout(() => this.release(), MAX_HELD_MS).unref();
  }
}
