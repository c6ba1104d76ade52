import type { Lsn } from "#postgres/database";

/** The size of the WAL's files, and the timeline with which their names begin. */
export type WalLayout = { readonly timeline: number; readonly segmentBytes: number };

/** Returns Postgres's name of the file with this position: timeline, and the number of the segment in two parts. */
export function segmentName(lsn: Lsn, { timeline, segmentBytes }: WalLayout): string {
  const number = lsn / BigInt(segmentBytes);
  const perPart = 0x1_0000_0000n / BigInt(segmentBytes);
  return [BigInt(timeline), number / perPart, number % perPart].map(toHex).join("");
}

/** Returns the first position of the file; null if the name is of another timeline, or not of a segment. */
export function segmentStart(name: string, { timeline, segmentBytes }: WalLayout): Lsn | null {
  const [, ofTimeline, high, low] = /^([\dA-F]{8})([\dA-F]{8})([\dA-F]{8})$/.exec(name) ?? [];
  if (!ofTimeline || Number.parseInt(ofTimeline, 16) !== timeline) return null;
  const perPart = 0x1_0000_0000n / BigInt(segmentBytes);
  return (BigInt(`0x${high}`) * perPart + BigInt(`0x${low}`)) * BigInt(segmentBytes);
}

/** Returns the first position of the segment with this position. */
export function startOfSegment(lsn: Lsn, segmentBytes: number): Lsn {
  return lsn - (lsn % BigInt(segmentBytes));
}

/** Parses `16MB`, the format of Postgres's settings. */
export function parseByteSize(text: string): number {
  const [, number, unit = "B"] = /^(\d+)\s*(B|kB|MB|GB)?$/.exec(text) ?? [];
  if (number === undefined) throw new Error(`Postgres reports a size that cannot be read: ${text}`);
  return Number(number) * 1024 ** ["B", "kB", "MB", "GB"].indexOf(unit);
}

function toHex(part: bigint): string {
  return part.toString(16).toUpperCase().padStart(8, "0");
}
