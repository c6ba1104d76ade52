import type { Claims } from "../engine/caller/claims.ts";
import type { Interface } from "../engine/caller/context.ts";
import type { Catalog } from "../engine/catalog/catalog.ts";
import type { Config } from "../engine/config/config.ts";
import type { Context } from "../engine/database/statement.ts";
import type { Outcome } from "../engine/inspect/attempts.ts";
import { type MatrixRow, policyMatrix } from "../engine/inspect/policy-matrix.ts";
import { loginRoleOf } from "../engine/postgres.ts";
import { withClient } from "../engine/with-client.ts";
import { makeCallerContexts } from "./caller-context.ts";
import { readClaims } from "./claims.ts";
import { inColumns } from "./columns.ts";
import { runCommand, UsageError } from "./command.ts";
import { commandLine } from "./command-line.ts";
import { withCatalog } from "./with-catalog.ts";

const INTERFACES: readonly Interface[] = ["table", "resource", "graphql", "realtime"];

const PROGRESS_MS = 1_000;

type Asked = {
  readonly loginRole: string;
  readonly named: readonly string[];
  readonly claims: Claims;
  readonly interfaceName: Interface;
};

function printMatrix(rows: readonly MatrixRow[], contexts: readonly Context[]): void {
  const head = ["", "", ...contexts.map(({ role }) => role)];
  const body = rows.map(({ table, verb, total, outcomes }) => {
    const isEmpty = table.kind === "materialized view" && total === null;
    return [
      verb === "select" ? table.name : "",
      verb,
      ...outcomes.map((outcome) => (isEmpty && isUnpopulated(outcome) ? "no data yet" : told(outcome, total))),
    ];
  });
  console.log(inColumns([head, ...body]));
}

/** `refresh materialized view` has not been run. */
function isUnpopulated(outcome: Outcome): boolean {
  return outcome.kind === "failed" && outcome.code === "55000";
}

function told(outcome: Outcome, total: number | null): string {
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

/** Says once a second how far it has come, to whom output alone would be silence. */
function makeProgress() {
  let saidAt = performance.now();
  return (done: number, of: number) => {
    if (performance.now() - saidAt < PROGRESS_MS) return;
    saidAt = performance.now();
    console.error(`${done} of ${of} tables`);
  };
}

/** Roles of Postgres itself, which no token should name. */
const PREDEFINED = /^pg_/;

/** Those that were named, or else every role that a caller can be, the anonymous one first. */
function rolesOf({ roles }: Catalog, anonRole: string, { loginRole, named }: Asked): readonly string[] {
  if (named.length > 0) return named;
  const others = [...roles.keys()].filter((name) => ![anonRole, loginRole].includes(name) && !PREDEFINED.test(name));
  return [anonRole, ...others];
}

/** As the requests of each appear to Postgres. */
function contextsOf(catalog: Catalog, config: Config, asked: Asked): Context[] {
  const { claims, interfaceName } = asked;
  const contextOf = makeCallerContexts(catalog, config);
  return rolesOf(catalog, config.anonRole, asked).map((role) =>
    contextOf({ role, claims: role === config.anonRole ? {} : claims }, { interfaceName, path: "/" }),
  );
}

await runCommand({
  usage: `${commandLine("policies", "[--sub ID | --claims JSON] [--role R …] [--interface table|resource|graphql|realtime]")}
  tries every verb on every exposed table as every role, or as those named, undoes it, and prints what was reached:
  rows, "yes" for an insert that privileges and policies let pass, "-" for what they refuse

Examples:
  ${commandLine("policies", "--sub 7")}
  ${commandLine("policies", `--role anon --role authenticated --claims '{"sub": "7", "tenant": "acme"}'`)}`,
  options: {
    sub: { type: "string" },
    claims: { type: "string" },
    role: { type: "string", multiple: true },
    interface: { type: "string" },
  },
  async run(given, words, options) {
    if (words.length > 0) throw new UsageError(`"${words[0]}" is one word too many.`);
    const interfaceName = INTERFACES.find((name) => name === (options.interface ?? "table"));
    if (!interfaceName) throw new UsageError(`--interface is one of ${INTERFACES.join(", ")}.`);
    const claims = readClaims(options);
    await withCatalog(given, async ({ catalog, config, postgres: { requestUrl, ownerUrl } }) => {
      const named = Array.isArray(options.role) ? options.role.map(String) : [];
      const contexts = contextsOf(catalog, config, {
        loginRole: await loginRoleOf(requestUrl),
        named,
        claims,
        interfaceName,
      });
      const rows = await withClient(requestUrl, (login) =>
        withClient(ownerUrl, (owner) => policyMatrix({ catalog, contexts, login, owner, onProgress: makeProgress() })),
      );
      printMatrix(rows, contexts);
    });
  },
});
