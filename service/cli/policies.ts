import { type Claims, INTERFACE_NAMES, type InterfaceName } from "#accounts/identity";
import { type Catalog, type CatalogTable, exposedSchemas, exposedTables } from "#catalog";
import { loginRoleOf } from "#cluster";
import type { Config } from "#config";
import { type AttemptOutcome, listRequestRoles, type PolicyMatrixRow, readPolicyMatrix } from "#operations/inspect";
import { withClient } from "#postgres/client";
import type { StatementContext } from "#postgres/statement";
import { commandLine, didYouMean } from "#runtime";
import { formatColumns, runCommand, UsageError } from "./command/command.ts";
import { makeCallerContexts, parseClaimOptions, withCatalog } from "./command/command-context.ts";

const PROGRESS_MS = 1_000;

type MatrixRequest = {
  readonly loginRole: string;
  readonly named: readonly string[];
  readonly claims: Claims;
  readonly interfaceName: InterfaceName;
};

function printMatrix(
  rows: readonly PolicyMatrixRow[],
  contexts: readonly StatementContext[],
  schemas: readonly string[],
): void {
  if (rows.length === 0) {
    console.log(`No tables in the exposed schemas: ${schemas.join(", ")}.`);
    return;
  }
  const head = ["", "", ...contexts.map(({ role }) => role)];
  const body = rows.map(({ table, verb, total, outcomes }) => {
    const isEmpty = table.kind === "materialized view" && total === null;
    return [
      verb === "select" ? table.name : "",
      verb,
      ...outcomes.map((outcome) => (isEmpty && isUnpopulated(outcome) ? "no data yet" : formatOutcome(outcome, total))),
    ];
  });
  console.log(formatColumns([head, ...body]));
}

/** True if the read failed because the materialized view is not populated. */
function isUnpopulated(outcome: AttemptOutcome): boolean {
  return outcome.kind === "failed" && outcome.code === "55000";
}

function formatOutcome(outcome: AttemptOutcome, total: number | null): string {
  switch (outcome.kind) {
    case "rows":
      if (total === 0) return "no rows";
      if (total === null) return String(outcome.count);
      return outcome.count === total ? `all ${total}` : `${outcome.count} of ${total}`;
    case "allowed":
      return "yes";
    case "denied":
      return "-";
    case "failed":
      return `error ${outcome.code}`;
  }
}

/** Finds `things` or `public.things`. */
function findExposedTable(name: string, catalog: Catalog): CatalogTable {
  const tables = exposedTables(catalog);
  const found = tables.filter((table) => name === table.name || name === `${table.schema}.${table.name}`);
  if (found.length === 1) return found[0]!;
  if (found.length > 1)
    throw new UsageError(`Several schemas have a table "${name}": write ${found[0]!.schema}.${name}.`);
  const names = tables.map((table) => table.name);
  throw new UsageError(`Table "${name}" is not exposed${didYouMean(name, names) || "."}`);
}

/** Prints the progress once a second. */
function makeProgress() {
  let saidAt = performance.now();
  return (done: number, of: number) => {
    if (performance.now() - saidAt < PROGRESS_MS) return;
    saidAt = performance.now();
    console.error(`${done} of ${of} tables`);
  };
}

/** The role and settings of each caller's requests. */
function makeContexts(catalog: Catalog, config: Config, request: MatrixRequest): StatementContext[] {
  const { claims, interfaceName, loginRole, named } = request;
  const contextOf = makeCallerContexts(catalog, config);
  const roles = named.length > 0 ? named : listRequestRoles(catalog, { anonRole: config.anonRole, loginRole });
  return roles.map((role) =>
    contextOf({ role, claims: role === config.anonRole ? {} : claims }, { interfaceName, path: "/" }),
  );
}

await runCommand({
  usage: `${commandLine("policies", "[TABLE …] [--sub ID | --claims JSON] [--role R …] [--interface NAME]")}
  Runs each command on each exposed table (or on those given) as each role (or as those given), rolls it back, and prints
  the number of rows, "yes" for an insert that privileges and policies allow, or "-" if permission is denied.
  --interface   of the requests: ${INTERFACE_NAMES.join(", ")} (default: table)

Examples:
  ${commandLine("policies", "--sub 7")}
  ${commandLine("policies", "things")}
  ${commandLine("policies", `--role anon --role authenticated --claims '{"sub": "7", "tenant": "acme"}'`)}`,
  options: {
    sub: { type: "string" },
    claims: { type: "string" },
    role: { type: "string", multiple: true },
    interface: { type: "string" },
  },
  async run(baseConfig, args, options) {
    const interfaceName = INTERFACE_NAMES.find((name) => name === (options.interface ?? "table"));
    if (!interfaceName) throw new UsageError(`--interface must be one of ${INTERFACE_NAMES.join(", ")}.`);
    const claims = parseClaimOptions(options);
    await withCatalog(baseConfig, async ({ catalog, config, postgres: { requestUrl, directUrl } }) => {
      const named = Array.isArray(options.role) ? options.role.map(String) : [];
      const contexts = makeContexts(catalog, config, {
        loginRole: await loginRoleOf(requestUrl),
        named,
        claims,
        interfaceName,
      });
      const tables = args.length > 0 ? args.map((name) => findExposedTable(name, catalog)) : null;
      const rows = await withClient(requestUrl, (login) =>
        withClient(directUrl, (owner) =>
          readPolicyMatrix({ catalog, contexts, login, owner, onProgress: makeProgress(), ...(tables && { tables }) }),
        ),
      );
      printMatrix(
        rows,
        contexts,
        exposedSchemas(catalog).map(({ name }) => name),
      );
    });
  },
});
