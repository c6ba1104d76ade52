import { formatLsn, type Lsn, parseLsn } from "../../engine/changes/lsn.ts";

/** The place of a change in the order of all changes: its transaction's, and its number in there. */
export type Position = { readonly commitLsn: Lsn; readonly index: number };

/** All of a transaction, whatever is in it. */
const WHOLE = Number.MAX_SAFE_INTEGER;
const BOOKMARK = /^(?<lsn>[^.@]+)(?:\.(?<index>\d{1,15}))?@(?<history>[^@]+)$/;

/** As a client keeps it: it says, too, in which history of the database it has a meaning. */
export type Bookmark = { readonly position: Position; readonly history: string };

/** `0/16B3748.2@5f0c2a91`, or `0/16B3748@5f0c2a91` behind a whole transaction */
export function formatBookmark({ position: { commitLsn, index }, history }: Bookmark): string {
  return `${formatLsn(commitLsn)}${index === WHOLE ? "" : `.${index}`}@${history}`;
}

/** Null for anything else. */
export function parseBookmark(text: string): Bookmark | null {
  const { lsn = "", index, history = "" } = BOOKMARK.exec(text)?.groups ?? {};
  const commitLsn = parseLsn(lsn);
  if (commitLsn === null) return null;
  return { position: { commitLsn, index: index === undefined ? WHOLE : Number(index) }, history };
}

export function behind(commitLsn: Lsn): Position {
  return { commitLsn, index: WHOLE };
}

export function isAfter(one: Position, other: Position): boolean {
  return one.commitLsn === other.commitLsn ? one.index > other.index : one.commitLsn > other.commitLsn;
}

export function earliest(positions: readonly Position[]): Position | null {
  return positions.reduce<Position | null>((first, each) => (first && !isAfter(first, each) ? first : each), null);
}

/** From where to read again what comes after a position, which may be amid a transaction. */
export function sinceOf({ commitLsn, index }: Position): Lsn {
  return index === WHOLE ? commitLsn : commitLsn - 1n;
}
