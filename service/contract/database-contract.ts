import { loadCatalog } from "#catalog/loading";
import { loginRoleOf } from "#cluster";
import type { Config } from "#config";
import { pruneToPrivileges } from "#graphql/schema";
import { type Contract, checkRequests, type RecordedRequest, readContract } from "#operations/contract";
import { listRequestRoles } from "#operations/inspect";
import { withServiceClient } from "#postgres/client";
import { makeVersionReader } from "#rest-gateway/resource/parse";
import { buildGraphQL } from "./build-graphql.ts";

export type CheckedContract = {
  readonly contract: Contract;
  /** The reason why the database would refuse each of the requests; null if it would not. */
  readonly refusals: readonly (string | null)[];
};

/** Reads, as the owner, the contract that the login role of requests has, because the login role may not connect to a copy. */
export async function readContractOf(url: string, requestUrl: string, config: Config): Promise<Contract> {
  return (await checkContractOf(url, requestUrl, config, [])).contract;
}

/** Reads the contract, and also checks recorded requests. */
export async function checkContractOf(
  url: string,
  requestUrl: string,
  config: Config,
  requests: readonly RecordedRequest[],
): Promise<CheckedContract> {
  const loginRole = await loginRoleOf(requestUrl);
  const { schemas, extraSearchPath, anonRole } = config;
  const options = { schemas, extraSearchPath, loginRole, timeZones: false };
  return withServiceClient(url, async (client) => {
    const { catalog } = await loadCatalog(client, options);
    const roles = listRequestRoles(catalog, { anonRole, loginRole });
    const { schema } = await buildGraphQL(catalog, config, { requestUrl: url, ownerUrl: url }, loginRole);
    const versions = await makeVersionReader((read) => read(client))();
    const graphql = await pruneToPrivileges(schema, catalog, roles);
    const contract = await readContract({ catalog, roles, graphql, versions });
    const schemaOf = (role: string) => pruneToPrivileges(schema, catalog, [role]);
    const refusals = await checkRequests(requests, { client, catalog, contract, schemaOf, extraSearchPath });
    return { contract, refusals };
  });
}
