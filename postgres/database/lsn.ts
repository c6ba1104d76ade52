/** A position in the write-ahead log (pg_lsn). */
export type Lsn = bigint;

const LSN_PATTERN = /^([\dA-F]{1,8})\/([\dA-F]{1,8})$/i;

/** Parses an LSN such as `16/B374D848`; null if the text is invalid. */
export function parseLsn(text: string): Lsn | null {
  const [, high, low] = LSN_PATTERN.exec(text) ?? [];
  return high && low ? (BigInt(`0x${high}`) << 32n) | BigInt(`0x${low}`) : null;
}

export function formatLsn(lsn: Lsn): string {
  return `${(lsn >> 32n).toString(16)}/${(lsn & 0xffffffffn).toString(16)}`.toUpperCase();
}
