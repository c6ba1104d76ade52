import { memoized } from "../memoized.ts";

export type TablePrivilege =
  | "select"
  | "insert"
  | "update"
  | "delete"
  | "truncate"
  | "references"
  | "trigger"
  | "maintain";
export type SchemaPrivilege = "usage" | "create";
export type RoutinePrivilege = "execute";
export type Privilege = TablePrivilege | SchemaPrivilege | RoutinePrivilege;

/** What was granted, by the role it was granted to; `public` stands for everybody (no role can bear that name). */
export type Grants = ReadonlyMap<string, ReadonlySet<Privilege>>;

const LETTERS: Readonly<Record<string, Privilege>> = {
  r: "select",
  a: "insert",
  w: "update",
  d: "delete",
  D: "truncate",
  x: "references",
  t: "trigger",
  m: "maintain",
  U: "usage",
  C: "create",
  X: "execute",
};

/** One `aclitem` to a line: `"some role"=ar*w/owner`; no role at all is everybody. A star is the grant option. */
const ITEM =
  /(?:"(?<quoted>(?:[^"]|"")*)"|(?<plain>[^="]*))=(?<letters>[a-zA-Z*]*)\/(?:"(?:[^"]|"")*"|[^\n]*)(?:\n|$)/gy;

const NONE: Grants = new Map();

/** Tables by the thousand bear the same few lists of grants; each list is parsed once and shared. */
export function makeGrantsParser(): (acl: string | null) => Grants {
  const parse = memoized(parseGrants);
  return (acl) => (acl === null ? NONE : parse(acl));
}

function parseGrants(acl: string): Grants {
  const grants = new Map<string, Set<Privilege>>();
  for (const { groups } of acl.matchAll(ITEM)) {
    const grantee = groups!.quoted?.replaceAll('""', '"') ?? (groups!.plain || "public");
    const privileges = grants.get(grantee) ?? new Set();
    for (const letter of groups!.letters!) {
      const privilege = LETTERS[letter];
      if (privilege) privileges.add(privilege);
    }
    grants.set(grantee, privileges);
  }
  return grants;
}
