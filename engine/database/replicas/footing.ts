import type { Lsn } from "../../changes/lsn.ts";

/** What a request's reads must see of what has been written before. With one, its reads may be answered by a replica. */
export type Footing = {
  /** Whose writes these are: one user, or all callers of a role who are nobody in particular. */
  readonly subject: string;
  /** Requests of the same seat are answered by the same replica, so that what they saw is still there. */
  readonly seat: number;
  /** What the client says it was told of its writes, 0 when it says nothing; null when what it says cannot be read. */
  readonly after: Lsn | null;
  /** Told the place of what the request has written. */
  wrote(place: Lsn): void;
};
