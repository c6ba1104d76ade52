import { RecentMap } from "#runtime";

/** So many failures in a row stop the deliveries to an origin. */
const MAX_FAILURES = 5;
const FIRST_PAUSE_MS = 1_000;
const MAX_PAUSE_MS = 60_000;
/** How long deliveries wait while the result of the probe is not known. */
const PROBE_PAUSE_MS = 1_000;
const MAX_ORIGINS = 10_000;

type OriginState = {
  failures: number;
  pauseMs: number;
  /** `performance.now()` when a delivery may be sent again; 0 while the circuit is closed. */
  opensAt: number;
  isProbing: boolean;
};

/**
 * A circuit breaker per origin. After consecutive failures no deliveries are sent to it for a while (open); then one is, as a
 * probe (half-open). Its success closes the circuit, its failure doubles the pause.
 */
export class CircuitBreaker {
  readonly #origins = new RecentMap<string, OriginState>(MAX_ORIGINS);

  /** 0 if a request may be sent, which must then be reported; otherwise milliseconds to wait. */
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

  /** `retryAfterMs`: how long the receiver accepts no requests, as it has said. */
  reportFailure(origin: string, retryAfterMs = 0): void {
    const state = this.#origins.get(origin) ?? makeClosedState();
    this.#origins.set(origin, state);
    state.failures++;
    const isOpen = state.opensAt !== 0;
    // Requests that were sent before the circuit opened say nothing new.
    if (state.failures < MAX_FAILURES || (isOpen && !state.isProbing)) return;
    state.pauseMs = isOpen ? Math.min(MAX_PAUSE_MS, 2 * state.pauseMs) : FIRST_PAUSE_MS;
    state.isProbing = false;
    const pauseMs = Math.max(state.pauseMs, Math.min(MAX_PAUSE_MS, retryAfterMs));
    state.opensAt = performance.now() + pauseMs;
  }

  /** The request was cancelled by us: its result says nothing of the receiver. */
  reportCancelled(origin: string): void {
    const state = this.#origins.get(origin);
    if (state) state.isProbing = false;
  }
}

function makeClosedState(): OriginState {
  return { failures: 0, pauseMs: FIRST_PAUSE_MS, opensAt: 0, isProbing: false };
}
