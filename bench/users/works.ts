import { PGBENCH } from "../comparison/runners.ts";
import type { Targets } from "../comparison/targets.ts";
import { READ, type Work } from "../comparison/work.ts";
import { USERS } from "../graphql/content.ts";
import { DRIZZLE } from "./servers.ts";

/** Ids begin at 1 there, and what is drawn begins at 0. And pgbench has its statements parsed before it takes a role. */
export const PREPARATION = `
  insert into users (id, name, email) overriding system value values (0, 'User 0', 'user0@example.org');
  grant usage on schema public to authenticator;`;

export const WORKS: readonly Work[] = [
  {
    ...READ,
    name: "one user",
    path: { tables: "/users/{n}", handlers: "/users/{n}" },
    drawn: { step: 1, count: USERS },
  },
  { ...READ, name: "10 users", path: { tables: "/users", handlers: "/users" } },
];

const TARGET = [
  { than: PGBENCH, least: 0.5 },
  { than: DRIZZLE, least: 3 },
];
export const TARGETS: Targets = { "one user": TARGET, "10 users": TARGET };
