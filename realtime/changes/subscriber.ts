import type { Caller } from "#accounts/identity";
import type { HistoryPosition } from "#live/stream";
import { formatLsn, type Lsn, parseLsn } from "#postgres/database";
import type { ProtocolVersion } from "../protocol/messages.ts";
import type { Outbox } from "../protocol/outbox.ts";
import type { Binding } from "./binding.ts";

/** The position after all changes of a transaction. */
const TRANSACTION_END = Number.MAX_SAFE_INTEGER;
const RESUME_TOKEN = /^(?<lsn>[^.@]+)(?:\.(?<index>\d{1,15}))?@(?<history>[^@]+)$/;

/** A channel that receives changes, with the caller of its current token. */
export type ChangeSubscriber = {
  readonly caller: Caller;
  readonly bindings: readonly Binding[];
  readonly version: ProtocolVersion;
  readonly topic: string;
  readonly outbox: Outbox;
  /** The position of the last change that the subscriber was sent, or its start position. */
  position: StreamPosition;
  /** The history that the position is valid in, for a client that resumes. */
  readonly history: string | null;
  /** Reports to the client that changes may have been missed, so that it joins again. */
  reportGap(reason: string): void;
};

/** The position of a change in the stream: its transaction, and its number in the transaction. */
export type StreamPosition = { readonly commitLsn: Lsn; readonly index: number };

/** A position that a client stores, with the history of the database that it is valid in. */
export type ResumePoint = { readonly position: StreamPosition; readonly history: string };

/** Formats `0/16B3748.2@5f0c2a91`, or `0/16B3748@5f0c2a91` after a whole transaction. */
export function formatResumeToken({ position: { commitLsn, index }, history }: ResumePoint): string {
  return `${formatLsn(commitLsn)}${index === TRANSACTION_END ? "" : `.${index}`}@${history}`;
}

/** Parses a resume token; null if it is invalid. */
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

/** Returns the position from which to replay the changes after a position, which may be inside a transaction. */
export function replayStart({ position: { commitLsn, index }, history }: ResumePoint): HistoryPosition {
  return { lsn: index === TRANSACTION_END ? commitLsn : commitLsn - 1n, history };
}
