import { crc32 } from "node:zlib";
import type { CursorPage, CursorPosition } from "../../../engine/statement/intent.ts";

const CHECKSUM_BYTES = 4;

/** A filter names an operator before a dot, and no cursor has one: so a column may be called cursor. */
export function isCursor(value: string): boolean {
  return !value.includes(".");
}

/** `cursor=` is the first page. */
export function parseCursor(text: string): CursorPage {
  if (text === "") return { kind: "first" };
  const position = readPosition(Buffer.from(text, "base64url").subarray(CHECKSUM_BYTES));
  // A position has exactly one encoding, so any other text was truncated or changed.
  return position && formatCursor(position) === text ? { kind: "after", position } : { kind: "unreadable" };
}

/** Neither signed nor secret: it contains only values that the caller has seen or may request. */
export function formatCursor({ order, values }: CursorPosition): string {
  const content = Buffer.from(JSON.stringify([order, ...values]));
  const checksum = Buffer.alloc(CHECKSUM_BYTES);
  checksum.writeUInt32BE(crc32(content));
  return Buffer.concat([checksum, content]).toString("base64url");
}

function readPosition(content: Buffer): CursorPosition | null {
  try {
    const parts: unknown = JSON.parse(content.toString("utf8"));
    if (!Array.isArray(parts) || !parts.every(isPositionValue)) return null;
    const [order, ...values] = parts;
    return typeof order === "string" ? { order, values } : null;
  } catch {
    return null;
  }
}

/** Postgres takes a zero byte for the end of a text. */
function isPositionValue(part: unknown): part is string | null {
  return part === null || (typeof part === "string" && !part.includes("\0"));
}
