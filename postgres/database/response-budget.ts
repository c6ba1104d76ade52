import type { ApiError } from "#runtime";
import { responseTooLarge, tooManyLargeResponses } from "./database-errors.ts";

/** The maximum size of a response that is never refused because of others. */
const SMALL_BYTES = 256 * 1024;

/** Limits the memory of a response. */
export type MemoryAllowance = {
  /** Returns false if the limit is exceeded. Refused bytes count too, until they are given back. */
  take(bytes: number): boolean;
  giveBack(bytes: number): void;
  /** Returns the error for the latest refusal. */
  refusal(): ApiError;
};

/** A limit for bytes held together: one response, the statements of one operation, a request body, or the total of these. */
export class ResponseBudget implements MemoryAllowance {
  readonly #maxBytes: number;
  readonly #total: ResponseBudget | null;
  readonly #smallBytes: number;
  #taken = 0;

  constructor(max: number, total: ResponseBudget | null = null, smallBytes = SMALL_BYTES) {
    this.#maxBytes = max;
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

  /** Releases everything; returns the number of bytes. */
  giveAllBack(): number {
    const taken = this.#taken;
    this.giveBack(taken);
    return taken;
  }

  /** True if the response exceeds its own limit, regardless of the total. */
  get isExceeded(): boolean {
    return this.#taken > this.#maxBytes;
  }

  refusal(): ApiError {
    return this.isExceeded ? responseTooLarge(this.#maxBytes) : tooManyLargeResponses();
  }
}

/** Limits each row of a stream by itself. */
export function allowRowsOf(max: number): MemoryAllowance {
  return { take: (bytes) => bytes <= max, giveBack: () => {}, refusal: () => responseTooLarge(max) };
}

/** Writes have no limit, because they are committed before the response arrives. */
export const UNLIMITED = allowRowsOf(Number.POSITIVE_INFINITY);
