import type { ImageOptions } from "#files";
import { storageError } from "./storage-error.ts";

/** The maximum side, as in Supabase's service: larger values are reduced to it. */
const MAX_SIDE = 2500;
const RESIZE_MODES = ["cover", "contain", "fill"] as const;
const FORMATS = ["origin", "avif", "webp"] as const;
const USUAL_QUALITY = 80;

/** The options as the client has sent them, by name. */
export type SentImageOptions = Readonly<Record<string, unknown>>;

/** Reads the options; `webp` is the default format if the client accepts it. */
export function readImageOptions(sent: SentImageOptions, accept: string | undefined): ImageOptions {
  const { format } = checkImageOptions(sent);
  return {
    width: readSide(sent, "width"),
    height: readSide(sent, "height"),
    resize: (sent.resize as ImageOptions["resize"] | undefined) ?? "cover",
    quality: readNumber(sent, "quality") ?? USUAL_QUALITY,
    format: (format as ImageOptions["format"] | undefined) ?? (acceptsWebp(accept) ? "webp" : "origin"),
  };
}

/** Returns the known options; throws if one of them has an invalid value. */
export function checkImageOptions(sent: SentImageOptions): SentImageOptions {
  const { width, height, resize, format, quality } = sent;
  readSide(sent, "width");
  readSide(sent, "height");
  if (resize !== undefined && !RESIZE_MODES.some((mode) => mode === resize)) throw notAllowed("resize");
  if (format !== undefined && !FORMATS.some((name) => name === format)) throw notAllowed("format");
  const percent = readNumber(sent, "quality");
  if (percent !== null && (percent < 20 || percent > 100))
    throw storageError("InvalidRequest", `quality must be ${percent < 20 ? ">= 20" : "<= 100"}`);
  return { width, height, resize, format, quality };
}

function notAllowed(name: string) {
  return storageError("InvalidRequest", `${name} must be equal to one of the allowed values`);
}

/** Reads a side; null for 0 and for a missing value, which leave it open. */
function readSide(sent: SentImageOptions, name: "width" | "height"): number | null {
  const side = readNumber(sent, name);
  return side === null || side === 0 ? null : Math.min(side, MAX_SIDE);
}

function readNumber(sent: SentImageOptions, name: string): number | null {
  const value = sent[name];
  if (value === undefined || value === null) return null;
  if (!/^\d{1,9}$/.test(String(value))) throw storageError("InvalidRequest", `${name} must be integer`);
  return Number(value);
}

function acceptsWebp(accept = ""): boolean {
  return /\bimage\/webp\b(?!\s*;\s*q=0(?:\.0*)?(?![.\d]))/i.test(accept);
}
