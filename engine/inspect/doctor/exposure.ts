import type { Table } from "../../catalog/tables.ts";
import { quotedName } from "../../quoted-name.ts";
import { VERBS } from "../attempts.ts";
import { exposedTables } from "../exposed-tables.ts";
import type { Facts } from "./facts.ts";
import type { Finding } from "./finding.ts";

/** Tables and views that clients reach past all policies. */
export function exposureFindings(facts: Facts): Finding[] {
  return exposedTables(facts.catalog).flatMap((table) => {
    const reached = reachOf(table, facts);
    return reached.length > 0 ? findingsOf(table, reached.join("; "), facts) : [];
  });
}

function findingsOf(table: Table, who: string, { catalog, clients }: Facts): Finding[] {
  const name = quotedName(table.schema, table.name);
  switch (table.kind) {
    case "table":
    case "partitioned table":
      return tableFindings(table, name, who);
    case "view":
      return table.securityInvoker ? [] : [viewFinding(name, who, catalog.server.version)];
    case "materialized view":
    case "foreign table": {
      const what = `Policies cannot bind ${name}, a ${table.kind}: every row is open (${who}).`;
      const roles = clients.map((role) => quotedName(role)).join(", ");
      return [{ kind: "danger", what, fix: `revoke all on ${name} from public, ${roles};` }];
    }
  }
}

function tableFindings({ rowSecurity, policies }: Table, name: string, who: string): Finding[] {
  if (rowSecurity === "off") {
    return [
      {
        kind: "danger",
        what: `Every row of ${name} is open: row-level security is off (${who}).`,
        fix: `alter table ${name} enable row level security;`,
      },
    ];
  }
  if (policies.length > 0) return [];
  return [
    {
      kind: "advice",
      what: `Nobody sees a row of ${name}: it has privileges (${who}), and no policy.`,
      fix: `create policy select_all on ${name} for select using (true);  -- or whom it concerns`,
    },
  ];
}

function viewFinding(name: string, who: string, serverVersion: number): Finding {
  const fix =
    serverVersion >= 150_000
      ? `alter view ${name} set (security_invoker = true);`
      : `-- Postgres 14 has no such views: grant a function in place of ${name}.`;
  return { kind: "danger", what: `The view ${name} reads past the policies of its tables (${who}).`, fix };
}

/** `anon: select, insert` */
function reachOf(table: Table, { catalog, clients }: Facts): string[] {
  return clients.flatMap((role) => {
    const verbs = VERBS.filter(
      (verb) =>
        catalog.mayRole(role, verb, table) ||
        [...table.columns.keys()].some((column) => catalog.mayRole(role, verb, table, column)),
    );
    return verbs.length > 0 ? [`${role}: ${verbs.join(", ")}`] : [];
  });
}
