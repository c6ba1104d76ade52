import { toAddressName } from "../naming.ts";

/** What the path of a request says before anything is known of collections. */
export type Address = {
  /** `2` of `/api/v2/…`, as it is written; null where the path names none. */
  readonly version: string | null;
  /** What stands before the first collection: `/api/v2`, `/api`, or nothing at the root. */
  readonly base: string;
  /** By turns a name as collections and actions have it, and what chooses a row, which is still percent-encoded. */
  readonly segments: readonly string[];
  /** The path as it ought to be spelled. */
  readonly canonical: string;
};

/** Each part is spelled as it ought to be, whatever it names. */
const PLAIN = /^(?:\/[a-z0-9]+)+$/;
const API = /^\/api(?:\/v(?<version>\d+))?(?=\/)/i;

export function parseAddress(path: string): Address {
  const found = API.exec(path);
  const base = found?.[0].toLowerCase() ?? "";
  const version = found?.groups?.version ?? null;
  const segments = path.slice(base.length + 1).split("/");
  if (PLAIN.test(path)) return { version, base, segments, canonical: path };
  if (segments.length > 1 && segments.at(-1) === "") segments.pop();
  // Keys keep their case: only what names a collection or an action is ours to spell.
  const spelled = segments.map((segment, index) => (isName(index) ? spell(segment) : segment));
  return { version, base, segments: spelled, canonical: pathOf(base, spelled) };
}

/** The same, of the collection of that name. */
export function withFirstName({ version, base, segments }: Address, name: string): Address {
  const renamed = segments.with(0, name);
  return { version, base, segments: renamed, canonical: pathOf(base, renamed) };
}

function pathOf(base: string, segments: readonly string[]): string {
  const encoded = segments.map((segment, index) => (isName(index) ? encodeURIComponent(segment) : segment));
  return [base, ...encoded].join("/");
}

function isName(index: number): boolean {
  return index % 2 === 0;
}

const WELL_SPELLED = /^[a-z0-9]+$/;

function spell(segment: string): string {
  return WELL_SPELLED.test(segment) ? segment : toAddressName(decode(segment));
}

/** What cannot be decoded is no name of anything. */
function decode(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}
