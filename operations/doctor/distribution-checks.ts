import { type CatalogTable, exposedTables } from "#catalog";
import { quotedName } from "#postgres/client";
import type { DoctorFacts, DoctorFinding } from "./facts.ts";
import { isComparedBy } from "./table-checks.ts";

/** Finds tables of Citus whose requests are sent to all shards although those of one tenant are on one, and workers that refuse callers. */
export function distributionFindings(facts: DoctorFacts): DoctorFinding[] {
  const tables = exposedTables(facts.catalog).flatMap((table) => {
    const column = table.kind === "view" ? null : (table.distribution?.column ?? null);
    return column === null ? [] : [...keyFindings(table, column), ...pruningFindings(table, column, facts)];
  });
  return [...workerFindings(facts), ...tables];
}

function keyFindings({ schema, name, primaryKey }: CatalogTable, column: string): DoctorFinding[] {
  if (primaryKey.includes(column)) return [];
  const table = quotedName(schema, name);
  const isMissing = primaryKey.length === 0;
  const columns = [column, ...primaryKey].map((each) => quotedName(each));
  const problem = isMissing
    ? `${table} has no primary key: no request can address one of its rows by key.`
    : `The primary key of ${table} does not contain its distribution column ${quotedName(column)}: a row by key is looked for in all shards.`;
  return [
    {
      kind: "slow",
      problem,
      fix: `alter table ${table} add primary key (${[...columns, ...(isMissing ? ["…"] : [])].join(", ")});  -- with the columns that identify a row of one value`,
    },
  ];
}

function pruningFindings(
  { schema, name, policies }: CatalogTable,
  column: string,
  { clients }: DoctorFacts,
): DoctorFinding[] {
  const isForClients = ({ roles }: { roles: readonly string[] }) =>
    roles.some((role) => role === "public" || clients.includes(role));
  const own = policies.filter((policy) => isForClients(policy) && policy.using !== null);
  const prunes = ({ using }: { using: string | null }) => isComparedBy(column, using ?? "");
  if (own.some((policy) => !policy.permissive && policy.command === "all" && prunes(policy))) return [];
  return own
    .filter((policy) => policy.permissive && !prunes(policy))
    .map((policy) => ({
      kind: "slow",
      problem: `The policy ${quotedName(policy.name)} on ${quotedName(schema, name)} does not compare the distribution column ${quotedName(column)}: requests without a filter on it are sent to all shards.`,
      fix: `-- Add the tenant of the caller: ${quotedName(column)} = …, without a sub-select, which Citus refuses.`,
    }));
}

function workerFindings({ server }: DoctorFacts): DoctorFinding[] {
  return server.workers.flatMap(({ name, missingLogins }): DoctorFinding[] => {
    if (missingLogins === null) {
      return [
        {
          kind: "danger",
          problem: `The worker ${name} of Citus does not answer.`,
          fix: "-- Start it, or remove it by citus_remove_node.",
        },
      ];
    }
    if (missingLogins.length === 0) return [];
    const roles = missingLogins.map((role) => quotedName(role));
    return [
      {
        kind: "danger",
        problem: `Requests of ${roles.join(", ")} fail on the worker ${name} of Citus, where the role may not log in.`,
        fix: roles.map((role) => `alter role ${role} login;  -- on that worker`).join("\n"),
      },
    ];
  });
}
