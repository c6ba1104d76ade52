/** A finished request, without the query string like in the log, because it may hold keys and personal data. */
export type RecentRequest = {
  /** The end of the request, in milliseconds since 1970. */
  readonly at: number;
  readonly id: string;
  readonly method: string;
  readonly path: string;
  readonly status: number;
  readonly milliseconds: number;
  readonly interface: string;
};

/** The maximum number of requests of one process. */
export const MAX_RECENT_REQUESTS = 1_000;
const MAX_PATH_CHARACTERS = 300;

/** The last requests of this process. */
export class RecentRequests {
  readonly #requests: RecentRequest[] = [];
  #next = 0;

  /** Keeps the request with the beginning of its path, and returns that. */
  add(request: RecentRequest): RecentRequest {
    const path = request.path.length > MAX_PATH_CHARACTERS ? request.path.slice(0, MAX_PATH_CHARACTERS) : request.path;
    const kept = { ...request, path };
    this.#requests[this.#next] = kept;
    this.#next = (this.#next + 1) % MAX_RECENT_REQUESTS;
    return kept;
  }

  list(): readonly RecentRequest[] {
    return this.#requests;
  }
}

export type RequestSearch = {
  /** The words; each must be in the id, the method or the path. */
  readonly words: readonly string[];
  /** A status such as 404, or the first digit alone for its class. */
  readonly status: number | null;
  readonly interface: string | null;
  readonly leastMilliseconds: number;
  readonly limit: number;
};

/** Returns the newest requests first. */
export function searchRequests(
  requests: readonly RecentRequest[],
  { words, status, interface: name, leastMilliseconds, limit }: RequestSearch,
): readonly RecentRequest[] {
  const wanted = words.map((word) => word.toLowerCase());
  const hasStatus = (each: RecentRequest) =>
    status === null || each.status === status || Math.floor(each.status / 100) === status;
  return requests
    .filter((each) => {
      if (!hasStatus(each) || each.milliseconds < leastMilliseconds) return false;
      if (name !== null && each.interface !== name) return false;
      const text = `${each.id} ${each.method} ${each.path}`.toLowerCase();
      return wanted.every((word) => text.includes(word));
    })
    .toSorted((one, other) => other.at - one.at)
    .slice(0, limit);
}
