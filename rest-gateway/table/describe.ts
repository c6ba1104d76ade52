import type { Caller } from "../../engine/caller/caller.ts";
import type { Catalog } from "../../engine/catalog/catalog.ts";
import type { Config } from "../../engine/config/config.ts";
import type { Body, GatewayRequest, GatewayResponse } from "../http.ts";
import { openApiAnswer } from "../openapi/answer.ts";
import { DocumentCache } from "../openapi/document-cache.ts";
import { documentResponse } from "../openapi/document-response.ts";
import { findTable } from "../statement/plan/table.ts";
import type { TableRequest } from "./parse/request.ts";
import { PREFIX } from "./prefix.ts";
import { inBytes } from "./send/in-bytes.ts";

type Settings = Pick<Config, "openapiMode" | "openapiProxyUrl" | "openapiSecurity">;
type Turn = {
  readonly request: GatewayRequest;
  readonly asked: TableRequest;
  /** Null: all. */
  readonly tables: readonly string[] | null;
  readonly caller: Caller;
  readonly catalog: Catalog;
};

/** What is at the root: all that the schema offers the caller, or some of its tables, as an OpenAPI document. */
export function makeDescribe({ openapiMode, openapiProxyUrl, openapiSecurity }: Settings) {
  const documents = new DocumentCache();
  return async ({ request, asked, tables, caller, catalog }: Turn): Promise<GatewayResponse<Body>> => {
    request.stages.enter("plan");
    const { schema } = asked.profile;
    const { contentType, document } = await openApiAnswer(
      {
        catalog,
        role: caller.role,
        schema,
        tables:
          tables && [...new Set(tables.map((name) => findTable({ schema, name }, catalog, caller.role).name))].sort(),
        mode: openapiMode === "ignore-privileges" ? "ignore-privileges" : "follow-privileges",
        serverUrl: openapiProxyUrl ?? PREFIX,
        securityActive: openapiSecurity,
        version: "1",
        accept: request.headers.accept,
      },
      documents,
    );
    request.stages.enter("response");
    const profile = asked.profile.negotiated ? { "Content-Profile": asked.profile.schema } : {};
    const headers = { "Content-Type": contentType, ...profile, Vary: "Accept, Authorization, apikey" };
    return inBytes(await documentResponse(document, request, headers));
  };
}
