import { formatLsn, type Lsn, parseLsn } from "../../engine/database/lsn.ts";
import type { Caller } from "../../engine/identity/caller.ts";
import type { ProtocolVersion } from "../protocol/messages.ts";
import type { Outbox } from "../protocol/outbox.ts";
import type { Binding } from "./binding.ts";

/** All of a transaction, whatever is in it. */
const TRANSACTION_END = Number.MAX_SAFE_INTEGER;
const RESUME_TOKEN = /^(?<lsn>[^.@]+)(?:\.(?<index>\d{1,15}))?@(?<history>[^@]+)$/;

/** A channel that hears of changes, by the claims that it has shown last. */
export type ChangeSubscriber = {
  readonly caller: Caller;
  readonly bindings: readonly Binding[];
  readonly version: ProtocolVersion;
  readonly topic: string;
  readonly outbox: Outbox;
  /** Of the last change that it was told of, or past which it began. */
  position: StreamPosition;
  /** In whose history that is, of one who resumes. */
  readonly history: string | null;
  /** Changes may have been missed: it is told so, and joins again. */
  reportGap(reason: string): void;
};

/** The place of a change in the order of all changes: its transaction's, and its number in there. */
export type StreamPosition = { readonly commitLsn: Lsn; readonly index: number };

/** As a client keeps it: it says, too, in which history of the database it has a meaning. */
export type ResumePoint = { readonly position: StreamPosition; readonly history: string };

/** `0/16B3748.2@5f0c2a91`, or `0/16B3748@5f0c2a91` behind a whole transaction */
export function formatResumeToken({ position: { commitLsn, index }, history }: ResumePoint): string {
  return `${formatLsn(commitLsn)}${index === TRANSACTION_END ? "" : `.${index}`}@${history}`;
}

/** Null for anything else. */
export function parseResumeToken(text: string): ResumePoint | null {
  const { lsn = "", index, history = "" } = RESUME_TOKEN.exec(text)?.groups ?? {};
  const commitLsn = parseLsn(lsn);
  if (commitLsn === null) return null;
  return { position: { commitLsn, index: index === undefined ? TRANSACTION_END : Number(index) }, history };
}

export function endOfTransaction(commitLsn: Lsn): StreamPosition {
  return { commitLsn, index: TRANSACTION_END };
}

export function isAfter(one: StreamPosition, other: StreamPosition): boolean {
  return one.commitLsn === other.commitLsn ? one.index > other.index : one.commitLsn > other.commitLsn;
}

export function earliestPosition(positions: readonly StreamPosition[]): StreamPosition | null {
  return positions.reduce<StreamPosition | null>(
    (first, each) => (first && !isAfter(first, each) ? first : each),
    null,
  );
}

/** From where to read again what comes after a position, which may be amid a transaction. */
export function replayStart({ commitLsn, index }: StreamPosition): Lsn {
  return index === TRANSACTION_END ? commitLsn : commitLsn - 1n;
}
