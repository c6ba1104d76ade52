import { type Interface, makeContexts } from "../engine/caller/context.ts";
import { occasionOf } from "../engine/caller/occasion.ts";
import type { Catalog } from "../engine/catalog/catalog.ts";
import type { Config } from "../engine/config/config.ts";
import type { Context } from "../engine/database/statement.ts";
import type { Outcome } from "../engine/inspect/attempt.ts";
import { type MatrixRow, policyMatrix } from "../engine/inspect/policy-matrix.ts";
import { loginRoleOf } from "../engine/postgres.ts";
import { withClient } from "../engine/with-client.ts";
import { readClaims } from "./claims.ts";
import { runCommand, UsageError } from "./command.ts";
import { withCatalog } from "./with-catalog.ts";

const DOORS: readonly Interface[] = ["table", "resource", "graphql", "realtime"];

type Asked = {
  readonly loginRole: string;
  readonly named: readonly string[];
  readonly claims: Readonly<Record<string, unknown>>;
  readonly door: Interface;
};

function printMatrix(rows: readonly MatrixRow[], contexts: readonly Context[]): void {
  const head = ["", "", ...contexts.map(({ role }) => role)];
  const body = rows.map(({ table, verb, total, outcomes }) => {
    return [verb === "select" ? table.name : "", verb, ...outcomes.map((outcome) => told(outcome, total))];
  });
  const widths = head.map((_, column) => Math.max(...[head, ...body].map((line) => line[column]!.length)));
  for (const line of [head, ...body]) {
    console.log(
      line
        .map((cell, column) => cell.padEnd(widths[column]!))
        .join("   ")
        .trimEnd(),
    );
  }
}

function told(outcome: Outcome, total: number): string {
  switch (outcome.kind) {
    case "rows":
      if (total === 0) return "no rows";
      return outcome.count === total ? `all ${total}` : `${outcome.count} of ${total}`;
    case "allowed":
      return "yes";
    case "denied":
      return "-";
    case "failed":
      return `error ${outcome.code}`;
  }
}

/** Those that were named, or else every role that a caller can be, the anonymous one first. */
function rolesOf({ roles }: Catalog, anonRole: string, { loginRole, named }: Asked): readonly string[] {
  const unknown = named.find((name) => !roles.has(name));
  if (unknown !== undefined) throw new UsageError(`Requests cannot become "${unknown}".`);
  if (named.length > 0) return named;
  return [anonRole, ...[...roles.keys()].filter((name) => name !== anonRole && name !== loginRole)];
}

/** As the requests of each appear to Postgres. */
function contextsOf(catalog: Catalog, config: Config, asked: Asked): Context[] {
  const { claims, door } = asked;
  const contextOf = makeContexts(config);
  const occasion = occasionOf(door, { id: "policies", method: "GET", path: "/", headers: {} });
  return rolesOf(catalog, config.anonRole, asked).map((role) => {
    const own = role === config.anonRole ? { role } : { ...claims, role };
    return contextOf({ role, claimsText: JSON.stringify(own) }, occasion);
  });
}

await runCommand({
  usage: `npm run policies [-- --sub ID | --claims JSON] [--role R …] [--interface table|resource|graphql|realtime]
  tries every verb on every exposed table as every role, or as those named, undoes it, and prints what was reached:
  rows, "yes" for an insert that privileges and policies let pass, "-" for what they refuse`,
  options: {
    sub: { type: "string" },
    claims: { type: "string" },
    role: { type: "string", multiple: true },
    interface: { type: "string" },
  },
  async run(given, words, options) {
    if (words.length > 0) throw new UsageError(`"${words[0]}" is one word too many.`);
    const door = DOORS.find((name) => name === (options.interface ?? "table"));
    if (!door) throw new UsageError(`--interface is one of ${DOORS.join(", ")}.`);
    const claims = readClaims(options);
    await withCatalog(given, async ({ catalog, config, postgres: { requestUrl, ownerUrl } }) => {
      const named = Array.isArray(options.role) ? options.role.map(String) : [];
      const contexts = contextsOf(catalog, config, { loginRole: await loginRoleOf(requestUrl), named, claims, door });
      const rows = await withClient(requestUrl, (login) =>
        withClient(ownerUrl, (owner) => policyMatrix({ catalog, contexts, login, owner })),
      );
      printMatrix(rows, contexts);
    });
  },
});
