import { readMediaRanges } from "../../media-range.ts";
import type { Format } from "../../statement/intent.ts";
import { ANY_TYPE, parseMediaType } from "./media-type.ts";

/** What the client takes, best first. */
export function parseAccept(header: string | undefined): readonly Format[] {
  if (header === undefined) return [ANY_TYPE];
  if (!/[,; ]/.test(header)) return [parseMediaType(header)];
  return readMediaRanges(header).map(({ type }) => parseMediaType(type));
}
