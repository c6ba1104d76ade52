import "./graphile-env.ts";
import type { Catalog } from "../engine/catalog/catalog.ts";
import { exposedSchemas } from "../engine/catalog/exposed-schemas.ts";
import type { Config } from "../engine/config/config.ts";
import { openDatabase } from "../engine/database/database.ts";
import { loginRoleOf, type Postgres } from "../engine/postgres.ts";
import { makePreset } from "../plugins/preset.ts";
import { buildSchema } from "../plugins/serve/build-schema.ts";
import type { BuiltSchema } from "../plugins/serve/make-schema.ts";
import { makePgService } from "../plugins/serve/pg-service.ts";

/** The schema that GraphQL would serve, built as the service does. */
export async function buildGraphQL(
  catalog: Catalog,
  { maxPageSize }: Pick<Config, "maxPageSize">,
  { requestUrl, ownerUrl }: Pick<Postgres, "requestUrl" | "ownerUrl">,
): Promise<BuiltSchema> {
  const database = openDatabase({ url: requestUrl, ownerUrl, log: { info() {}, warn() {} } });
  try {
    const schemas = exposedSchemas(catalog).map(({ name }) => name);
    const pgService = makePgService({ database, schemas, loginRole: await loginRoleOf(requestUrl) });
    return await buildSchema(makePreset({ pgService, maxPageSize }), new AbortController().signal);
  } finally {
    await database.close();
  }
}
