import { RecentMap } from "#runtime";

/** The number of failures in a row that stops the deliveries to an origin. */
const MAX_FAILURES = 5;
const FIRST_PAUSE_MS = 1_000;
const MAX_PAUSE_MS = 60_000;
/** The time for which deliveries wait for the result of the probe. */
const PROBE_PAUSE_MS = 1_000;
const MAX_ORIGINS = 10_000;

type OriginState = {
  failures: number;
  pauseMs: number;
  /** The value of `performance.now()` at which a delivery may be sent again; 0 while the circuit is closed. */
  opensAt: number;
  isProbing: boolean;
};

/**
 * A circuit breaker per origin. After consecutive failures no deliveries are sent to it for a while (open); then one is, as a
 * probe (half-open). Its success closes the circuit, its failure doubles the pause.
 */
export class CircuitBreaker {
  readonly #origins = new RecentMap<string, OriginState>(MAX_ORIGINS);

  /** Returns 0 if a request may be sent, which must then be reported; otherwise the milliseconds to wait. */
  enter(origin: string): number {
    const state = this.#origins.get(origin);
    if (!state || state.opensAt === 0) return 0;
    if (state.isProbing) return PROBE_PAUSE_MS;
    const remaining = state.opensAt - performance.now();
    if (remaining > 0) return remaining;
    state.isProbing = true;
    return 0;
  }

  reportSuccess(origin: string): void {
    const state = this.#origins.get(origin);
    if (state) Object.assign(state, makeClosedState());
  }

  /** `retryAfterMs` is the time for which the receiver has said to accept no requests. */
  reportFailure(origin: string, retryAfterMs = 0): void {
    const state = this.#origins.get(origin) ?? makeClosedState();
    this.#origins.set(origin, state);
    state.failures++;
    const isOpen = state.opensAt !== 0;
    // The results of requests that were sent before the circuit opened carry no new information.
    if (state.failures < MAX_FAILURES || (isOpen && !state.isProbing)) return;
    state.pauseMs = isOpen ? Math.min(MAX_PAUSE_MS, 2 * state.pauseMs) : FIRST_PAUSE_MS;
    state.isProbing = false;
    const pauseMs = Math.max(state.pauseMs, Math.min(MAX_PAUSE_MS, retryAfterMs));
    state.opensAt = performance.now() + pauseMs;
  }

  /** Reports that we cancelled the request: its result does not describe the receiver. */
  reportCancelled(origin: string): void {
    const state = this.#origins.get(origin);
    if (state) state.isProbing = false;
  }
}

function makeClosedState(): OriginState {
  return { failures: 0, pauseMs: FIRST_PAUSE_MS, opensAt: 0, isProbing: false };
}
