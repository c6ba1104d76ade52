import { ApiError } from "#runtime";

/** Counts the open items of each caller. */
export class OpenOfCallers {
  readonly #counts = new Map<string, number>();

  #size = 0;

  get size(): number {
    return this.#size;
  }

  of(quotaKey: string): number {
    return this.#counts.get(quotaKey) ?? 0;
  }

  add(quotaKey: string): void {
    this.#size++;
    this.#counts.set(quotaKey, this.of(quotaKey) + 1);
  }

  remove(quotaKey: string): void {
    this.#size--;
    const left = this.of(quotaKey) - 1;
    if (left > 0) this.#counts.set(quotaKey, left);
    else this.#counts.delete(quotaKey);
  }
}

export function tooManyOpen(message: string): ApiError {
  return new ApiError("rateLimited", "RATE_LIMITED", message, { hint: "Close others first.", retryAfterSeconds: 5 });
}
