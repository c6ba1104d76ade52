import pg from "pg";
import type { Catalog } from "../engine/catalog/catalog.ts";
import type { Policy } from "../engine/catalog/policies.ts";
import type { Table } from "../engine/catalog/tables.ts";
import { PUBLICATION } from "../engine/changes/publication.ts";
import { ApiError, toApiError } from "../engine/errors.ts";
import { missingGrants } from "../engine/inspect/missing-grants.ts";
import { quotedName } from "../engine/quoted-name.ts";
import { withClient } from "../engine/with-client.ts";
import { type Explained, explainRead } from "../rest-gateway/why/explain-read.ts";
import { judging } from "../rest-gateway/why/verdicts.ts";
import { makeCallerContexts } from "./caller-context.ts";
import { readClaims } from "./claims.ts";
import { runCommand, UsageError } from "./command.ts";
import { commandLine } from "./command-line.ts";
import type { ExplainedStatement } from "./explain-query.ts";
import { readAddress } from "./requested-rows.ts";
import { withCatalog } from "./with-catalog.ts";

const QUERY = /^\s*(?:\{|query\b)/;
const IN_GRAPHQL = { interfaceName: "graphql", path: "/graphql" } as const;

function tell({ table, seen, total, hidden, policies, closedColumns, plan }: Explained, role: string): void {
  console.log(`${role} sees ${seen} of ${total} rows.`);
  if (closedColumns.length > 0) console.log(`Closed to ${role}: ${closedColumns.join(", ")}.`);
  tellOfPolicies(table, policies, role);
  for (const { key, verdicts } of hidden) {
    const told = verdicts.map(
      ({ policy, passes }) => `${policy.name} ${passes === null ? "unknown" : passes ? "yes" : "no"}`,
    );
    console.log(
      `\nhidden ${table.primaryKey.map((column, index) => `${column}=${key[index]}`).join(", ")}\n  ${told.join(", ") || "no policy lets it"}`,
    );
  }
  console.log(`\n${plan}`);
}

function tellOfPolicies(table: Table, policies: readonly Policy[], role: string): void {
  if (table.rowSecurity === "off") console.log(`Row-level security is off: every row of ${table.name} is open.`);
  else if (policies.length === 0) console.log(`No policy of ${table.name} is for ${role}.`);
  for (const { name, permissive, using } of policies) {
    console.log(`\npolicy ${name}${permissive ? "" : " (restrictive: must pass)"}\n  ${using ?? "true"}`);
  }
}

function tellOfStatement({ tables, seen, all, plan }: ExplainedStatement, role: string, catalog: Catalog): void {
  const of = tables.map(({ name }) => name).join(", ");
  const isSingle = seen.length === 1 && all.length === 1;
  const [mine, whole] = [seen, all].map(([row]) => JSON.stringify(row));
  if (!isSingle) console.log(`${role} sees ${seen.length} of ${all.length} rows of ${of}.`);
  else if (mine === whole) console.log(`${role} sees of ${of} what somebody whom no policy binds sees.`);
  else console.log(`${role} sees of ${of} ${mine}, and somebody whom no policy binds ${whole}.`);
  for (const table of tables) tellOfPolicies(table, judging(table, role, catalog), role);
  console.log(`\n${plan}\n`);
}

/** Of a table that is not published nobody hears, whatever policies say. */
async function tellOfPublication(owner: pg.ClientBase, { schema, name }: Table): Promise<void> {
  const { rowCount } = await owner.query(
    "select from pg_publication_tables where pubname = $1 and schemaname = $2 and tablename = $3",
    [PUBLICATION, schema, name],
  );
  if (rowCount) return;
  const fix = `alter publication ${PUBLICATION} add table ${quotedName(schema, name)};`;
  console.log(`Nobody is sent changes of ${name}, which is not published: ${fix}`);
}

await runCommand({
  usage: `${commandLine("why", "[--role R] [--sub ID | --claims JSON] REQUEST")}
  says which rows of a request somebody sees, which are hidden and by which policy, and how Postgres finds them; changes nothing
  REQUEST is an address of /rest/v1 (or what is below it), /api or /users, or of /realtime/v1 for a subscription to changes;
  or a query of GraphQL, of which each statement is told

Examples:
  ${commandLine("why", "things")}
  ${commandLine("why", '--role authenticated --sub 7 "/rest/v1/things?done=is.false"')}
  ${commandLine("why", '"/api/v1/things?done=false"')}
  ${commandLine("why", '"/realtime/v1?schema=public&table=things&filter=done=is.false"')}
  ${commandLine("why", "'{ things(first: 5) { edges { node { id } } } }'")}`,
  options: { role: { type: "string" }, sub: { type: "string" }, claims: { type: "string" } },
  async run(given, [address, ...others], options) {
    if (address === undefined || others.length > 0) throw new UsageError("Say one request, in quotes.");
    const claims = readClaims(options);
    const addressed = QUERY.test(address) ? null : readAddress(address);
    await withCatalog(given, async ({ catalog, config, postgres }) => {
      const { requestUrl, ownerUrl } = postgres;
      const role = typeof options.role === "string" ? options.role : config.anonRole;
      const { interfaceName, path } = addressed ?? IN_GRAPHQL;
      const context = makeCallerContexts(catalog, config)({ role, claims }, { interfaceName, path });
      const tellAll = async (login: pg.ClientBase, owner: pg.ClientBase): Promise<void> => {
        const means = { catalog, context, login, owner };
        if (!addressed) {
          // Other requests need not wait until PostGraphile is loaded.
          const { buildGraphQL } = await import("./build-graphql.ts");
          const { explainQuery } = await import("./explain-query.ts");
          const built = await buildGraphQL(catalog, config, postgres);
          for (const each of await explainQuery(address, { ...means, built })) tellOfStatement(each, role, catalog);
          return;
        }
        const requested = addressed.rows({ catalog, config, role });
        if (interfaceName === "realtime") await tellOfPublication(owner, requested.table);
        tell(await explainRead(requested, means), role);
      };
      await withClient(requestUrl, (login) => withClient(ownerUrl, (owner) => tellAll(login, owner))).catch((error) => {
        if (!(error instanceof ApiError || error instanceof pg.DatabaseError)) throw error;
        const { status, code, message } = toApiError(error, { anonymous: role === config.anonRole });
        const answer = `${role} is answered ${status} ${code}: ${message}`;
        // Clients are not told what is wrong with a policy, and who asks here is to mend it.
        const more = error instanceof pg.DatabaseError && error.message !== message ? `\n${error.message}` : "";
        const grants = missingGrants(error.message, role, catalog).map((grant) => `\nMissing: ${grant}`);
        throw new Error(`${answer}${more}${grants.join("")}`, { cause: error });
      });
    });
  },
});
