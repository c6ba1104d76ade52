import type { LiveEvent, LiveSubscription } from "#live";
import { formatLsn, type Lsn } from "#postgres/database";
import { parseJsonExactly } from "#runtime/json";
import { errorsOf } from "./errors.ts";
import type { OperationResult } from "./run-compiled.ts";

/** How long one wait for a change takes. */
const WAIT_MS = 60_000;

type ResultStep = IteratorResult<OperationResult, undefined>;
const END: ResultStep = { done: true, value: undefined };

type LiveResultOptions = {
  /** The key of the result in `data`. */
  readonly key: string;
  /** True if the client takes changes as JSON Patch instead of whole results. */
  readonly takesPatches: boolean;
};

/** The results of a live query, as those of a subscription. */
export class LiveResults implements AsyncGenerator<OperationResult, undefined, undefined> {
  readonly #subscription: LiveSubscription;
  readonly #options: LiveResultOptions;
  readonly #returned = Promise.withResolvers<void>();
  /** The LSN of the last result that was taken. */
  position: Lsn = 0n;
  #isOver = false;

  constructor(subscription: LiveSubscription, options: LiveResultOptions) {
    this.#subscription = subscription;
    this.#options = options;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<ResultStep> {
    while (!this.#isOver) {
      const result = await this.take(WAIT_MS);
      // The service stops. An end would say that nothing follows; the connection that is closed next says to connect again.
      if (result === null) await this.#returned.promise;
      else if (result !== "idle") return { done: false, value: result };
    }
    return END;
  }

  /** `idle` if nothing has changed in that time; null when the service ends the query, and after `return`. */
  async take(milliseconds: number): Promise<OperationResult | "idle" | null> {
    const event = await this.#subscription.next(milliseconds).catch((error: unknown) => ({ error }));
    if (event === null || this.#isOver) return null;
    if (event === "idle") return event;
    return "error" in event ? this.#fail(event) : this.#read(event);
  }

  async return(): Promise<ResultStep> {
    this.#isOver = true;
    this.#subscription.close();
    this.#returned.resolve();
    return END;
  }

  async throw(error: unknown): Promise<ResultStep> {
    await this.return();
    throw error;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.return();
  }

  #fail({ error }: { readonly error: unknown }): OperationResult {
    void this.return();
    return { errors: errorsOf(error) };
  }

  #read({ kind, position, text, result }: LiveEvent): OperationResult {
    const { key, takesPatches } = this.#options;
    this.position = position;
    const data = `{"${key}":${result}}`;
    if (!takesPatches) return { data };
    const at = { position: formatLsn(position) };
    return kind === "snapshot"
      ? { data, extensions: { live: at } }
      : { extensions: { live: { ...at, patch: withinKey(text, key) } } };
  }
}

/** The paths of a JSON Patch of the result, in `data`. */
function withinKey(patch: string, key: string): unknown {
  const operations = parseJsonExactly(patch) as readonly { readonly path: string }[];
  return operations.map((operation) => ({ ...operation, path: `/${key}${operation.path}` }));
}
