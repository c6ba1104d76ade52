import { type GraphQLSchema, printSchema } from "grafast/graphql";
import { bypassesPolicies, type Catalog } from "#catalog";
import { makeResourceDocument, printDocument, readDocument } from "#rest-gateway/openapi";
import type { ApiVersion } from "#rest-gateway/resource/parse";
import { toClientTypes } from "./client-types.ts";
import { CONTRACT_FORMAT, type Contract } from "./contract.ts";
import { readAccess } from "./read-access.ts";
import { readTableInterface } from "./read-table-interface.ts";

type ContractSource = {
  readonly catalog: Catalog;
  /** The roles of requests. */
  readonly roles: readonly string[];
  /** The schema as all roles together see it. */
  readonly graphql: GraphQLSchema;
  readonly versions: readonly ApiVersion[];
};

/** Reads the contract of the database with its clients. */
export async function readContract({ catalog, roles, graphql, versions }: ContractSource): Promise<Contract> {
  const openapi: Record<string, unknown> = {};
  for (const version of versions.filter(({ status }) => status !== "retired"))
    openapi[`v${version.number}`] = await readOpenApi(catalog, roles, version);
  return {
    format: CONTRACT_FORMAT,
    graphql: printSchema(graphql),
    openapi,
    tables: readTableInterface(catalog, roles),
    types: toClientTypes(catalog),
    access: readAccess(catalog, roles),
  };
}

/** Reads the document that a caller with the privileges of all roles would get, without the paths of the service. */
async function readOpenApi(
  catalog: Catalog,
  roles: readonly string[],
  { number, status }: ApiVersion,
): Promise<unknown> {
  const hasPrivilege = (_: string, ...privilege: readonly unknown[]) =>
    roles.some((role) => (catalog.hasPrivilege as (...all: unknown[]) => boolean)(role, ...privilege));
  const document = await makeResourceDocument({
    catalog: { ...catalog, hasPrivilege },
    // Policies, which do not apply to all of the roles, decide what is returned of a created row.
    role: roles.find((role) => bypassesPolicies(catalog, role)) ?? roles.at(-1)!,
    version: number,
    isDeprecated: status === "deprecated",
    filter: null,
    errorBody: "detail",
    publicUrl: null,
    routes: new Set(),
    folders: [],
    hasTasks: false,
  });
  return readDocument(await printDocument(document));
}
