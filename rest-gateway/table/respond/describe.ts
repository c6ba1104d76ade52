import type { Catalog } from "../../../engine/catalog/catalog.ts";
import type { Routine } from "../../../engine/catalog/routines.ts";
import type { CatalogTable } from "../../../engine/catalog/tables.ts";
import type { Config } from "../../../engine/config/config.ts";
import type { Caller } from "../../../engine/identity/caller.ts";
import type { CallArgument } from "../../../engine/statement/intent.ts";
import { routineNotFound } from "../../../engine/statement/plan/find-routine.ts";
import { findTable } from "../../../engine/statement/plan/find-table.ts";
import { TABLE_PREFIX } from "../../http/paths.ts";
import type { GatewayRequest } from "../../http/request.ts";
import type { GatewayResponse, ResponseBody } from "../../http/response.ts";
import { describeTables } from "../../openapi/describe-tables.ts";
import { DocumentCache, documentResponse } from "../../openapi/written-document.ts";
import type { TableRequest, TableResource } from "../parse/request.ts";
import { encodeHeaders } from "./respond.ts";

const WITHOUT_ARGUMENTS: CallArgument = { kind: "query", values: [] };

type DescribeOptions = Pick<Config, "openapiMode" | "openapiProxyUrl" | "openapiSecurity">;
type DescribeRequest = {
  readonly request: GatewayRequest;
  readonly parsed: TableRequest;
  /** Null: all. */
  readonly tables: readonly string[] | null;
  readonly caller: Caller;
  readonly catalog: Catalog;
};

/** The root resource: an OpenAPI document of the schema, or of some of its tables, as the caller may see it. */
export function makeRootDescription({ openapiMode, openapiProxyUrl, openapiSecurity }: DescribeOptions) {
  const documents = new DocumentCache();
  return async ({
    request,
    parsed,
    tables,
    caller,
    catalog,
  }: DescribeRequest): Promise<GatewayResponse<ResponseBody>> => {
    request.stages.enter("plan");
    const { schema } = parsed.profile;
    const { contentType, document } = await describeTables(
      {
        catalog,
        role: caller.role,
        schema,
        tables:
          tables && [...new Set(tables.map((name) => findTable({ schema, name }, catalog, caller.role).name))].sort(),
        mode: openapiMode === "ignore-privileges" ? "ignore-privileges" : "follow-privileges",
        serverUrl: openapiProxyUrl ?? TABLE_PREFIX,
        securityActive: openapiSecurity,
        version: "1",
        accept: request.headers.accept,
      },
      documents,
    );
    request.stages.enter("respond");
    const profile = parsed.profile.negotiated ? { "Content-Profile": parsed.profile.schema } : {};
    const headers = { "Content-Type": contentType, ...profile, Vary: "Accept, Authorization, apikey" };
    return encodeHeaders(await documentResponse(document, request, headers));
  };
}

type CatalogView = { readonly schema: string; readonly catalog: Catalog; readonly role: string };

/** `OPTIONS,GET,HEAD,POST`: the methods that the resource supports. Throws if it does not exist. */
export function allowedMethods(
  { kind, name }: TableResource & { name?: string },
  { schema, catalog, role }: CatalogView,
): string {
  if (kind === "root" || name === undefined) return "OPTIONS,GET,HEAD";
  if (kind === "table") return tableMethods(findTable({ schema, name }, catalog, role));
  const [routine] = catalog.schemas.get(schema)?.routines.get(name) ?? [];
  if (!routine)
    throw routineNotFound({ target: { schema, name }, argument: WITHOUT_ARGUMENTS, overloads: [] }, catalog, role);
  return routineMethods(routine);
}

function tableMethods({ insertable, updatable, deletable, primaryKey }: CatalogTable): string {
  const methods = ["OPTIONS", "GET", "HEAD"];
  if (insertable) methods.push("POST");
  if (insertable && updatable && primaryKey.length > 0) methods.push("PUT");
  if (updatable) methods.push("PATCH");
  if (deletable) methods.push("DELETE");
  return methods.join(",");
}

/** A function that changes something is not to be called by following a link. */
function routineMethods({ volatility }: Routine): string {
  return volatility === "volatile" ? "OPTIONS,POST" : "OPTIONS,GET,HEAD,POST";
}
