import { parsePublicKeySet } from "#runtime";
import type { Logger } from "#runtime/log";
import { makeSafeFetch } from "#runtime/safe-fetch";
import { type TokenKey, toForeignKeys } from "./token-keys.ts";

type RemoteKeySetOptions = {
  readonly url: string;
  /** The address that the operator has configured, if `url` was discovered there; the default is `url`. */
  readonly trustedUrl?: string;
  readonly allowsPrivateNetwork?: boolean;
  readonly log: Pick<Logger, "warn" | "info">;
};

/** The time for which keys are used without fetching them again. */
const FRESH_MS = 600_000;
const RETRY_MS = 30_000;
/** Tokens with unknown keys, which anybody can send, cause at most this number of fetches at once, and then one per interval. */
const MAX_FETCHES_AT_ONCE = 5;
const FETCH_INTERVAL_MS = 12_000;

/**
 * The public keys of another issuer. They are fetched in the background; while the address
 * fails, the previous keys stay in use.
 */
export class RemoteKeySet {
  readonly #options: RemoteKeySetOptions;
  readonly #fetch: ReturnType<typeof makeSafeFetch>;
  #keys: readonly TokenKey[] = [];
  #text: string | null = null;
  #failed = false;
  #fetching: Promise<boolean> | null = null;
  #nextFetchAt = 0;
  #allowance = MAX_FETCHES_AT_ONCE;
  #allowanceAt = Date.now();

  constructor(options: RemoteKeySetOptions) {
    this.#options = options;
    const { url, trustedUrl: providerUrl = url, allowsPrivateNetwork = true } = options;
    this.#fetch = makeSafeFetch({ providerUrl, allowsPrivateNetwork });
    void this.refetch();
  }

  /** True if the keys have been fetched at least once. */
  get isLoaded(): boolean {
    return this.#text !== null;
  }

  /** Returns the same array until the keys change. */
  current(): readonly TokenKey[] {
    if (Date.now() >= this.#nextFetchAt) void this.refetch();
    return this.#keys;
  }

  /** Fetches the keys, at a bounded rate. Returns true if they differ from the previous ones. */
  refetch(): Promise<boolean> {
    if (this.#fetching) return this.#fetching;
    if (!this.#mayFetch()) return Promise.resolve(false);
    this.#fetching = this.#update().finally(() => {
      this.#fetching = null;
    });
    return this.#fetching;
  }

  #mayFetch(): boolean {
    const now = Date.now();
    const earned = (now - this.#allowanceAt) / FETCH_INTERVAL_MS;
    this.#allowance = Math.min(MAX_FETCHES_AT_ONCE, this.#allowance + Math.max(earned, 0));
    this.#allowanceAt = now;
    if (this.#allowance < 1) return false;
    this.#allowance--;
    return true;
  }

  async #update(): Promise<boolean> {
    this.#nextFetchAt = Date.now() + RETRY_MS;
    try {
      const text = await this.#download();
      if (text !== this.#text) this.#keys = toForeignKeys(parsePublicKeySet(text));
      const hasChanged = text !== this.#text;
      this.#text = text;
      this.#nextFetchAt = Date.now() + FRESH_MS;
      this.#report(null);
      return hasChanged;
    } catch (error) {
      this.#report(error);
      return false;
    }
  }

  async #download(): Promise<string> {
    const headers = { accept: "application/jwk-set+json, application/json" };
    const response = await this.#fetch(this.#options.url, {
      method: "GET",
      headers,
      body: undefined,
      redirect: "manual",
    });
    if (response.status !== 200) throw new Error(`The response has the status ${response.status}`);
    return response.text();
  }

  /** Logs the first failure and the recovery. */
  #report(err: unknown): void {
    const { url, log } = this.#options;
    if (err !== null && !this.#failed) {
      log.warn({ err, url }, "the key set of an issuer cannot be read; previous keys stay in use");
    }
    if (err === null && this.#failed) log.info({ url }, "the key set of an issuer can be read again");
    this.#failed = err !== null;
  }
}
