import { formatLsn, type Lsn, parseLsn } from "../../engine/changes/lsn.ts";

/** The place of a change in the order of all changes: its transaction's, and its number in there. */
export type Position = { readonly commitLsn: Lsn; readonly index: number };

/** All of a transaction, whatever is in it. */
const WHOLE = Number.MAX_SAFE_INTEGER;

/** `0/16B3748.2`, or `0/16B3748` behind a whole transaction */
export function formatPosition({ commitLsn, index }: Position): string {
  return index === WHOLE ? formatLsn(commitLsn) : `${formatLsn(commitLsn)}.${index}`;
}

/** Null for anything else. */
export function parsePosition(text: string): Position | null {
  const [, lsn = "", index] = /^([^.]+)(?:\.(\d{1,15}))?$/.exec(text) ?? [];
  const commitLsn = parseLsn(lsn);
  return commitLsn === null ? null : { commitLsn, index: index === undefined ? WHOLE : Number(index) };
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
