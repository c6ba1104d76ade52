/** As much of an AbortSignal as is asked here: that nobody waits for an answer any more. */
export type AbortLike = {
  readonly aborted: boolean;
  readonly reason: unknown;
  addEventListener(type: "abort", listener: () => void): void;
  removeEventListener(type: "abort", listener: () => void): void;
};

/**
 * For each request: node's own controller, signal and listener take a tenth of the time of a small one. A listener that is
 * added twice is called twice, and one that another one removes meanwhile is still called.
 */
export class LightAbortSignal implements AbortLike {
  #aborted = false;
  #reason: unknown;
  #listeners: (() => void)[] = [];

  get aborted(): boolean {
    return this.#aborted;
  }

  get reason(): unknown {
    return this.#reason;
  }

  addEventListener(_type: "abort", listener: () => void): void {
    this.#listeners.push(listener);
  }

  removeEventListener(_type: "abort", listener: () => void): void {
    const index = this.#listeners.indexOf(listener);
    if (index >= 0) this.#listeners.splice(index, 1);
  }

  abort(reason: unknown): void {
    if (this.#aborted) return;
    this.#aborted = true;
    this.#reason = reason;
    const listeners = this.#listeners;
    this.#listeners = [];
    for (const listener of listeners) listener();
  }
}

/** For who takes nothing but node's own. */
export function toSignal(abort: AbortLike): AbortSignal {
  if (abort instanceof AbortSignal) return abort;
  if (abort.aborted) return AbortSignal.abort(abort.reason);
  const controller = new AbortController();
  abort.addEventListener("abort", () => controller.abort(abort.reason));
  return controller.signal;
}
