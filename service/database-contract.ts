import { loadCatalog } from "#catalog";
import { loginRoleOf } from "#cluster";
import type { Config } from "#config";
import { pruneToPrivileges } from "#graphql/schema";
import { type Contract, readContract } from "#operations/contract";
import { listRequestRoles } from "#operations/inspect";
import { withServiceClient } from "#postgres/client";
import { makeVersionReader } from "#rest-gateway/resource";
import { buildGraphQL } from "./cli/explain-query.ts";

/** Reads as the owner, for what the login of requests may see: it may not connect to a copy. */
export async function readContractOf(url: string, requestUrl: string, config: Config): Promise<Contract> {
  const loginRole = await loginRoleOf(requestUrl);
  const { schemas, extraSearchPath, anonRole } = config;
  const options = { schemas, extraSearchPath, loginRole, timeZones: false };
  return withServiceClient(url, async (client) => {
    const { catalog } = await loadCatalog(client, options);
    const roles = listRequestRoles(catalog, { anonRole, loginRole });
    const { schema } = await buildGraphQL(catalog, config, { requestUrl: url, ownerUrl: url }, loginRole);
    const versions = await makeVersionReader((read) => read(client))();
    return readContract({ catalog, roles, graphql: await pruneToPrivileges(schema, catalog, roles), versions });
  });
}
