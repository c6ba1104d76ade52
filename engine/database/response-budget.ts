import type { ApiError } from "../errors.ts";
import { responseTooLarge, tooManyLargeResponses } from "./database-errors.ts";

/** Who holds no more than this is not refused because of what others hold. */
const SMALL_BYTES = 256 * 1024;

/** How much of an answer may be held. */
export type MemoryAllowance = {
  /** False when it is spent. What was refused counts too, until it is given back. */
  take(bytes: number): boolean;
  giveBack(bytes: number): void;
  /** Why the last one was refused. */
  refusal(): ApiError;
};

/** Bytes that are held together: one answer, the statements of one operation, a request's body, or all of these at once. */
export class ResponseBudget implements MemoryAllowance {
  readonly #maxBytes: number;
  readonly #total: ResponseBudget | null;
  readonly #smallBytes: number;
  #taken = 0;

  constructor(most: number, total: ResponseBudget | null = null, smallBytes = SMALL_BYTES) {
    this.#maxBytes = most;
    this.#total = total;
    this.#smallBytes = smallBytes;
  }

  take(bytes: number): boolean {
    this.#taken += bytes;
    const isTotalKept = this.#total === null || this.#total.take(bytes) || this.isSmall;
    return isTotalKept && this.#taken <= this.#maxBytes;
  }

  giveBack(bytes: number): void {
    this.#taken -= bytes;
    this.#total?.giveBack(bytes);
  }

  get isSmall(): boolean {
    return this.#taken <= this.#smallBytes;
  }

  /** Nothing of it is held any more. Returns how much was. */
  giveAllBack(): number {
    const taken = this.#taken;
    this.giveBack(taken);
    return taken;
  }

  /** Whether it is spent by what is held of it alone, whatever others hold. */
  get isExceeded(): boolean {
    return this.#taken > this.#maxBytes;
  }

  refusal(): ApiError {
    return this.isExceeded ? responseTooLarge(this.#maxBytes) : tooManyLargeResponses();
  }
}

/** For rows that are handed on as they come. */
export function allowRowsOf(most: number): MemoryAllowance {
  return { take: (bytes) => bytes <= most, giveBack: () => {}, refusal: () => responseTooLarge(most) };
}

/** For what is committed by the time that its answer comes. */
export const UNLIMITED = allowRowsOf(Number.POSITIVE_INFINITY);
