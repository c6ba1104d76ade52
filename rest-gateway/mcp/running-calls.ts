import type { IncomingHttpHeaders } from "node:http";
import { type AbortLike, LightAbortSignal } from "#runtime/concurrency";

type RunningCall = { readonly signal: LightAbortSignal; isAmbiguous: boolean };

/**
 * The calls of clients of 2025-11-25, which cancel one by a notification in a request of its own. It names the call by an
 * id that the client has chosen: of two calls with the same credentials and id, none is cancelled.
 */
export class RunningCalls {
  readonly #calls = new Map<string, RunningCall>();

  /** Runs the work with a signal that ends with the request, or when the client cancels the call. */
  async run<T>(
    { headers, signal: outer }: { readonly headers: IncomingHttpHeaders; readonly signal: AbortLike },
    id: unknown,
    work: (signal: AbortLike) => Promise<T>,
  ): Promise<T> {
    const key = keyOf(headers, id);
    const other = this.#calls.get(key);
    if (other) {
      other.isAmbiguous = true;
      return work(outer);
    }
    const signal = new LightAbortSignal();
    const forward = () => signal.abort(outer.reason);
    if (outer.aborted) forward();
    outer.addEventListener("abort", forward);
    this.#calls.set(key, { signal, isAmbiguous: false });
    try {
      return await work(signal);
    } finally {
      this.#calls.delete(key);
      outer.removeEventListener("abort", forward);
    }
  }

  cancel(headers: IncomingHttpHeaders, id: unknown): void {
    const call = this.#calls.get(keyOf(headers, id));
    if (call && !call.isAmbiguous) call.signal.abort(new Error("The client has cancelled the call"));
  }
}

function keyOf({ authorization, apikey, "user-agent": userAgent }: IncomingHttpHeaders, id: unknown): string {
  return JSON.stringify([authorization ?? apikey, userAgent, id]);
}
