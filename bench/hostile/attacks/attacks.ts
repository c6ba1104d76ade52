import type { VictimOptions } from "../service.ts";

type Definition = {
  /** A description of the attack for users. */
  readonly what: string;
  /** The services that only this attack uses, besides the one of the honest callers. */
  readonly victims?: readonly VictimOptions[];
  /** True if the attack runs after the others, and honest callers are not measured beside it. */
  readonly isApart?: boolean;
};

export const ATTACKS = {
  bodies: { what: "240 sockets with unfinished bodies of 10 MB" },
  channels: { what: "20 sockets with 100 joins each, of 250 kB and of 60 kB" },
  tenants: { what: "two tenants whose claims differ beyond 2^53" },
  filters: { what: "realtime filters without an end, anonymous" },
  stderr: {
    what: "stderr on a full device, and in a full pipe",
    victims: [
      { env: { LOG_LEVEL: "info" }, stderr: "full" },
      { env: { LOG_LEVEL: "info" }, stderr: "unread" },
    ],
  },
  parse: { what: "bodies of 1 and 10 MB that are slow to read, anonymous and of a user" },
  reads: { what: "12 anonymous readers with a regular expression without an end" },
  answers: { what: "40 GraphQL answers at once, of 45 MB and of 3.5 MB" },
  documents: { what: "GraphQL documents of 900 fields and variables of 1 MB, new each time, by HTTP and on sockets" },
  shapes: { what: "20 anonymous readers of /rest/v1 with a new query shape each time" },
  live: { what: "1,000 callers who open ever more shapes, under memberships that change 1,000 times a second" },
  ddl: { what: "about nine changes of the schema a second" },
  functions: { what: "unfinished bodies, 50 slow sockets and 6 patterns without an end on 23 functions" },
  "sign-ins": { what: "60 sockets of one address and 200 of ever new addresses that sign in without end" },
  connections: { what: "1,000 idle connections, and others that come and go" },
  kills: {
    what: "all worker processes killed, again and again, while others write",
    victims: [{ env: { WEB_CONCURRENCY: "2" } }],
    isApart: true,
  },
} as const satisfies Record<string, Definition>;

export type AttackName = keyof typeof ATTACKS;

export const ATTACK_NAMES = Object.keys(ATTACKS) as readonly AttackName[];

export function victimsOf(name: AttackName): NonNullable<Definition["victims"]> {
  return definitionOf(name).victims ?? [];
}

export function isApart(name: AttackName): boolean {
  return definitionOf(name).isApart ?? false;
}

function definitionOf(name: AttackName): Definition {
  return ATTACKS[name];
}
