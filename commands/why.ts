import pg from "pg";
import { makeContexts } from "../engine/caller/context.ts";
import { occasionOf } from "../engine/caller/occasion.ts";
import { settingsOfRole } from "../engine/caller/role-settings.ts";
import type { Catalog } from "../engine/catalog/catalog.ts";
import type { Config } from "../engine/config/config.ts";
import type { Context } from "../engine/database/statement.ts";
import { ApiError, toApiError } from "../engine/errors.ts";
import { quotedName } from "../engine/quoted-name.ts";
import { withClient } from "../engine/with-client.ts";
import { type Explained, explainRead } from "../rest-gateway/why/explain-read.ts";
import { readClaims } from "./claims.ts";
import { runCommand, UsageError } from "./command.ts";
import { withCatalog } from "./with-catalog.ts";

type Who = { readonly role: string; readonly claims: Readonly<Record<string, unknown>> };

function contextOf({ role, claims }: Who, path: string, config: Config, catalog: Catalog): Context {
  const occasion = occasionOf("table", { id: "why", method: "GET", path, headers: {} });
  const { settings } = makeContexts(config)({ role, claimsText: JSON.stringify({ ...claims, role }) }, occasion);
  const schemas = [config.schemas[0]!, ...config.extraSearchPath].map((schema) => quotedName(schema));
  return {
    role,
    settings: [["search_path", schemas.join(", ")], ...settingsOfRole(catalog.roles.get(role)), ...settings],
  };
}

function tell({ table, seen, total, hidden, policies, closedColumns, plan }: Explained, role: string): void {
  console.log(`${role} sees ${seen} of ${total} rows.`);
  if (closedColumns.length > 0) console.log(`Closed to ${role}: ${closedColumns.join(", ")}.`);
  if (table.rowSecurity === "off") console.log(`Row-level security is off: every row of ${table.name} is open.`);
  else if (policies.length === 0) console.log(`No policy of ${table.name} is for ${role}.`);
  for (const { name, permissive, using } of policies) {
    console.log(`\npolicy ${name}${permissive ? "" : " (restrictive: must pass)"}\n  ${using ?? "true"}`);
  }
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

await runCommand({
  usage: `npm run why -- [--role R] [--sub ID | --claims JSON] <request>
  says which rows of a request somebody sees, which are hidden and by which policy, and how Postgres finds them; changes nothing
  npm run why -- --role authenticated --sub 7 "/rest/v1/things?done=is.false"`,
  options: { role: { type: "string" }, sub: { type: "string" }, claims: { type: "string" } },
  async run(given, [address, ...others], options) {
    if (address === undefined || others.length > 0) throw new UsageError("Say one request, in quotes.");
    const claims = readClaims(options);
    await withCatalog(given, async ({ catalog, config, postgres: { requestUrl, ownerUrl } }) => {
      const role = typeof options.role === "string" ? options.role : config.anonRole;
      if (!catalog.roles.has(role)) throw new UsageError(`Requests cannot become "${role}".`);
      const context = contextOf({ role, claims }, address, config, catalog);
      const explained = await withClient(requestUrl, (login) =>
        withClient(ownerUrl, (owner) => explainRead(address, { catalog, config, context, login, owner })),
      ).catch((error) => {
        if (!(error instanceof ApiError || error instanceof pg.DatabaseError)) throw error;
        const { status, code, message } = toApiError(error, { anonymous: role === config.anonRole });
        throw new Error(`${role} is answered ${status} ${code}: ${message}`, { cause: error });
      });
      tell(explained, role);
    });
  },
});
