import type { Catalog } from "../engine/catalog/catalog.ts";
import { exposedSchemas } from "../engine/catalog/exposed-schemas.ts";
import type { Config } from "../engine/config/config.ts";
import { openDatabase } from "../engine/database/database.ts";
import type { Finding } from "../engine/inspect/doctor/finding.ts";
import { loginRoleOf, type Postgres } from "../engine/postgres.ts";
import type { LeftOut } from "../plugins/left-out.ts";
import { makePreset } from "../plugins/preset.ts";
import { buildSchema } from "../plugins/serve/build-schema.ts";
import { makePgService } from "../plugins/serve/pg-service.ts";

/** What callers may use and GraphQL does not have: found by building the schema as the service does. */
export async function graphqlFindings(
  catalog: Catalog,
  { maxPageSize }: Pick<Config, "maxPageSize">,
  { requestUrl, ownerUrl }: Pick<Postgres, "requestUrl" | "ownerUrl">,
): Promise<Finding[]> {
  const database = openDatabase({ url: requestUrl, ownerUrl, log: { info() {}, warn() {} } });
  try {
    const schemas = exposedSchemas(catalog).map(({ name }) => name);
    const pgService = makePgService({ database, schemas, loginRole: await loginRoleOf(requestUrl) });
    const { leftOut } = await buildSchema(makePreset({ pgService, maxPageSize }), new AbortController().signal);
    return leftOut.map(toFinding);
  } finally {
    await database.close();
  }
}

function toFinding({ object, reason, fix }: LeftOut): Finding {
  return { kind: "advice", what: `GraphQL is served without ${object}: ${reason}.`, fix };
}
