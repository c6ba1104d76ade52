import type pg from "pg";
import { type Catalog, type CatalogTable, type Policy, policyCondition } from "#catalog";
import { isPathUnder } from "#http";
import { REALTIME_PUBLICATION } from "#live/stream";
import {
  type ExplainableRequest,
  explainRead,
  explainRefusal,
  explainWrite,
  parseReadAddress,
  type ReadExplanation,
  type RequestedWrite,
  readPoliciesOf,
  WRITE_COMMANDS,
} from "#operations";
import { taskCountOf } from "#operations/inspect";
import { quotedName, withClient } from "#postgres/client";
import { type FilterCondition, parseFilter } from "#realtime";
import { commandLine } from "#runtime";
import { isExactJsonObject, parseJsonExactly } from "#runtime/json";
import { runCommand, UsageError } from "./command/command.ts";
import { makeCallerContexts, parseClaimOptions, withCatalog } from "./command/command-context.ts";
import { readUserCaller } from "./command/user-caller.ts";
import { explainLive } from "./explain-live.ts";
import type { ComparedPart, ExplainedQuery } from "./explain-query.ts";
import { printExplainedWrite, printResults } from "./print-explained-write.ts";

const REALTIME_PREFIX = "/realtime/v1";
const STORAGE_PREFIX = "/storage/v1";

const GRAPHQL_QUERY = /^\s*(?:\{|query\b)/;
const GRAPHQL_WRITE = /^\s*(?:mutation|subscription)\b[^{]*\{/;
const GRAPHQL_REQUEST = { interfaceName: "graphql", path: "/graphql" } as const;

function printExplainedRead(
  { table, visible, total, hidden, policies, unreadableColumns, plan }: ReadExplanation,
  role: string,
): void {
  console.log(`${role} sees ${visible} of ${total} rows.`);
  if (unreadableColumns.length > 0)
    console.log(`Columns that ${role} may not select: ${unreadableColumns.join(", ")}.`);
  printPolicies(table, policies, role);
  for (const { key, verdicts } of hidden) {
    const name = table.primaryKey.map((column, index) => `${column}=${key[index]}`).join(", ");
    console.log(`\nhidden ${name}\n  ${printResults(verdicts)}`);
  }
  printShards(plan, table);
  console.log(`\n${plan}`);
}

/** Says how many shards of Citus the request reads. */
function printShards(plan: string, { distribution }: CatalogTable): void {
  const tasks = taskCountOf(plan);
  if (tasks === null) return;
  const column = distribution?.column ?? null;
  const advice = tasks > 1 && column !== null ? `: neither its filters nor a policy compare ${column}` : "";
  console.log(`\nThe request is sent to ${tasks === 1 ? "one shard" : `${tasks} shards`}${advice}.`);
}

function printPolicies(table: CatalogTable, policies: readonly Policy[], role: string): void {
  if (table.rowSecurity === "off")
    console.log(`Row-level security is disabled: every row of ${table.name} is accessible.`);
  else if (policies.length === 0) console.log(`No policy of ${table.name} lets ${role} select rows.`);
  for (const policy of policies) {
    const { name, permissive } = policy;
    console.log(`\npolicy ${name}${permissive ? "" : " (restrictive: must pass)"}\n  ${policyCondition(policy)}`);
  }
}

function printExplainedQuery({ tables, parts, plan }: ExplainedQuery, role: string, catalog: Catalog): void {
  for (const part of parts) console.log(comparison(part, role));
  const hidesRows = parts.some((part) => part.kind === "rows" && part.seen < part.all);
  if (hidesRows && tables.length > 0) {
    const request = tables[0]!.name;
    console.log(
      `With the same options, ${commandLine("why", request)} says which rows of ${request} are hidden, and by which policy.`,
    );
  }
  for (const table of tables) printPolicies(table, readPoliciesOf(table, role, catalog), role);
  console.log(`\n${plan}\n`);
}

function comparison({ path, ...part }: ComparedPart, role: string): string {
  if (part.kind === "rows") return `${role} sees ${part.seen} of ${part.all} rows of ${path}.`;
  const [mine, whole] = [part.seen, part.all].map((value) => JSON.stringify(value));
  return mine === whole
    ? `${role} gets the same ${path} as a role that bypasses row-level security.`
    : `${role} gets ${mine} as ${path}; a role that bypasses row-level security gets ${whole}.`;
}

/** Warns if the table is not published, since its changes are then not sent to anybody. */
async function printPublication(owner: pg.ClientBase, { schema, name }: CatalogTable): Promise<void> {
  const { rowCount } = await owner.query(
    "select from pg_catalog.pg_publication_tables where pubname = $1 and schemaname = $2 and tablename = $3",
    [REALTIME_PUBLICATION, schema, name],
  );
  if (rowCount) return;
  const fix = `alter publication ${REALTIME_PUBLICATION} add table ${quotedName(schema, name)};`;
  console.log(`Changes of ${name} are not sent, because it is not published: ${fix}`);
}

await runCommand({
  usage: `${commandLine("why", "[--user EMAIL | --role R] [--sub ID | --claims JSON] [--insert | --update | --delete] [--body JSON] REQUEST")}
  Explains which rows of a request a caller sees, which policies hide the others, the execution plan, and whether
  it can be live; or which privileges and policies refuse a write. Changes nothing.
  REQUEST is an address or a path below /rest/v1 (which may be omitted), /api, /users, or /realtime/v1 for a subscription
  to changes; or a GraphQL query, of which the statement is explained.
  --user   a user, by e-mail address or user name, with the role and the claims of the account, of which --claims replaces some
  --insert, --update, --delete   explains this write, of a row or of the rows of the request
  --body   a JSON object of the written columns; for --insert also an array of them

Examples:
  ${commandLine("why", "things")}
  ${commandLine("why", "--user ada@example.org things")}
  ${commandLine("why", '--role authenticated --sub 7 "/rest/v1/things?done=is.false"')}
  ${commandLine("why", '--user ada@example.org --update --body \'{"done": true}\' "things?id=eq.7"')}
  ${commandLine("why", '"/api/v1/things?done=false"')}
  ${commandLine("why", '"/realtime/v1?schema=public&table=things&filter=done=is.false"')}
  ${commandLine("why", "'{ things(first: 5) { edges { node { id } } } }'")}`,
  options: {
    user: { type: "string" },
    role: { type: "string" },
    sub: { type: "string" },
    claims: { type: "string" },
    insert: { type: "boolean" },
    update: { type: "boolean" },
    delete: { type: "boolean" },
    body: { type: "string" },
  },
  async run(baseConfig, requests, options) {
    const address = parseRequest(requests, options);
    const { user } = options;
    if (user !== undefined && [options.role, options.sub].some((option) => option !== undefined))
      throw new UsageError("--user has a role and a number: it cannot be combined with --role or --sub.");
    const addressed = GRAPHQL_QUERY.test(address) ? null : parseAddress(address);
    const writes = parseWriteOptions(options);
    if (writes && (!addressed || addressed.interfaceName === "realtime"))
      throw new UsageError("A write is explained for a path below /rest/v1, /api or /users.");
    await withCatalog(baseConfig, async ({ catalog, config, postgres }) => {
      const { requestUrl, directUrl } = postgres;
      const chosenClaims = parseClaimOptions(options);
      const { role, claims } =
        user === undefined
          ? { role: String(options.role ?? config.anonRole), claims: chosenClaims }
          : await readUserCaller(String(user), config, directUrl, chosenClaims);
      if (claims.aal === "aal2" && chosenClaims.aal === undefined)
        console.log(`${user} is explained as after a second factor. Without it: --claims '{"aal": "aal1"}'.\n`);
      const { interfaceName, path } = addressed ?? GRAPHQL_REQUEST;
      const context = makeCallerContexts(catalog, config)({ role, claims }, { interfaceName, path });
      const printAll = async (login: pg.ClientBase, owner: pg.ClientBase): Promise<void> => {
        const dependencies = { catalog, context, login, owner };
        if (!addressed) {
          // Imported here, because loading PostGraphile is slow, and after withCatalog has set GRAPHILE_ENV.
          const { buildGraphQL } = await import("../contract/build-graphql.ts");
          const { explainQuery } = await import("./explain-query.ts");
          const { schema } = await buildGraphQL(catalog, config, postgres);
          printExplainedQuery(await explainQuery(address, { ...dependencies, schema }), role, catalog);
          return;
        }
        const requested = addressed.rows({ catalog, config, role });
        if (writes) {
          for (const [index, write] of writes.entries()) {
            if (writes.length > 1) console.log(`${index === 0 ? "" : "\n"}Row ${index + 1} of ${writes.length}:`);
            console.log(printExplainedWrite(await explainWrite(requested, write, dependencies), write.command, role));
          }
          return;
        }
        if (interfaceName === "realtime") await printPublication(owner, requested.table);
        printExplainedRead(await explainRead(requested, dependencies), role);
        if (interfaceName !== "realtime")
          console.log(`\n${await explainLive(owner, { statement: requested.prepared.statement, context })}`);
      };
      await withClient(requestUrl, (login) => withClient(directUrl, (owner) => printAll(login, owner))).catch(
        (error) => {
          const refusal = explainRefusal(error, { role, catalog, config });
          const answer = `${role} gets ${refusal.status} ${refusal.code}: ${refusal.message}`;
          const grants = refusal.missingGrants.map((grant) => `\nMissing: ${grant}`);
          const more = refusal.cause === null ? "" : `\n${refusal.cause}`;
          throw new Error(`${answer}${more}${grants.join("")}`, { cause: error });
        },
      );
    });
  },
});

function parseRequest(requests: readonly string[], options: Readonly<Record<string, unknown>>): string {
  const [address, ...others] = requests;
  if (address !== undefined && others.length === 0) {
    if (GRAPHQL_WRITE.test(address))
      throw new UsageError(
        "Of GraphQL, only queries are explained. Explain the write with --insert, --update or --delete.",
      );
    return address;
  }
  const command = WRITE_COMMANDS.find((each) => options[each] === true);
  const body = requests.find((each) => each.startsWith("{"));
  if (command && command !== "delete" && body && options.body === undefined)
    throw new UsageError(`Write the columns after --body: --${command} --body '${body}'`);
  throw new UsageError("Specify one request, in quotes.");
}

/** The write of `--insert`, `--update` or `--delete` with the columns of `--body`, for each row of an array; null for a read. */
function parseWriteOptions({ body, ...options }: Readonly<Record<string, unknown>>): readonly RequestedWrite[] | null {
  const [command, ...others] = WRITE_COMMANDS.filter((each) => options[each] === true);
  if (others.length > 0) throw new UsageError("Specify one of --insert, --update and --delete.");
  if (body !== undefined && (command === undefined || command === "delete"))
    throw new UsageError("--body is for --insert and --update.");
  if (command === undefined) return null;
  if (body === undefined) return [{ command, values: null }];
  return parseBody(String(body), command).map((values) => ({ command, values }));
}

function parseBody(text: string, command: RequestedWrite["command"]): readonly RequestedWrite["values"][] {
  let values: unknown = null;
  try {
    values = parseJsonExactly(text);
  } catch {
    // The error is the same as for JSON that is not an object.
  }
  if (isExactJsonObject(values)) return [values];
  if (command === "insert" && Array.isArray(values) && values.length > 0 && values.every(isExactJsonObject))
    return values;
  throw new UsageError(`--body must be a JSON object with the written columns, such as '{"done": true}'.`);
}

/** An address that `parseReadAddress` reads, or `/realtime/v1?table=things&filter=id=eq.7`; also after the origin of a service. */
function parseAddress(addressOrUrl: string): ExplainableRequest {
  const address = addressOrUrl.replace(/^https?:\/\/[^/]+(?=\/)/i, "");
  const { pathname, searchParams } = new URL(address, "http://localhost");
  if (isPathUnder(STORAGE_PREFIX, pathname))
    throw new UsageError("Requests for files are not explained: the policies of storage.objects decide.");
  if (!isPathUnder(REALTIME_PREFIX, pathname)) return parseReadAddress(address);
  const [schema, request] = toTableRequest(searchParams);
  return { ...parseReadAddress(request, schema), interfaceName: "realtime", path: pathname };
}

/** Converts a subscription to changes to a /rest/v1 request for the same rows. */
function toTableRequest(parameters: URLSearchParams): [schema: string, request: string] {
  const table = parameters.get("table");
  const filter = parameters.get("filter") ?? "";
  const conditions = parseFilter(filter);
  if (!table) throw new UsageError(`Specify a table: ${REALTIME_PREFIX}?table=things&filter=id=eq.7`);
  if (!conditions) throw new UsageError(`Invalid filter: ${filter}`);
  const query = new URLSearchParams();
  for (const { column, ...condition } of conditions) query.append(quoteValue(column), formatCondition(condition));
  return [parameters.get("schema") ?? "public", `${encodeURIComponent(table)}?${query}`];
}

function formatCondition({ negated, operator, values }: Omit<FilterCondition, "column">): string {
  const value = operator === "in" ? `(${values.map(quoteValue).join(",")})` : values[0]!;
  return `${negated ? "not." : ""}${operator}.${value}`;
}

function quoteValue(text: string): string {
  return `"${text.replace(/[\\"]/g, "\\$&")}"`;
}
