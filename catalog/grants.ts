import { memoize } from "#runtime";
import type { Grants, Privilege } from "./privileges.ts";

const PRIVILEGE_LETTERS: Readonly<Record<string, Privilege>> = {
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

/** One `aclitem` per line: `"some role"=ar*w/owner`. An empty role is PUBLIC; a star is the grant option. */
const ACL_ITEM =
  /(?:"(?<quoted>(?:[^"]|"")*)"|(?<plain>[^="]*))=(?<letters>[a-zA-Z*]*)\/(?:"(?:[^"]|"")*"|[^\n]*)(?:\n|$)/gy;

const NO_GRANTS: Grants = new Map();

/** The parser is memoized, because thousands of tables have the same few access control lists. */
export function makeGrantsParser(): (acl: string | null) => Grants {
  const parse = memoize(parseGrants);
  return (acl) => (acl === null ? NO_GRANTS : parse(acl));
}

function parseGrants(acl: string): Grants {
  const grants = new Map<string, Set<Privilege>>();
  for (const { groups } of acl.matchAll(ACL_ITEM)) {
    const grantee = groups!.quoted?.replaceAll('""', '"') ?? (groups!.plain || "public");
    const privileges = grants.get(grantee) ?? new Set();
    for (const letter of groups!.letters!) {
      const privilege = PRIVILEGE_LETTERS[letter];
      if (privilege) privileges.add(privilege);
    }
    grants.set(grantee, privileges);
  }
  return grants;
}
