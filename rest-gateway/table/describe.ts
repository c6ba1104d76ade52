import type { Caller } from "../../engine/caller/caller.ts";
import type { Catalog } from "../../engine/catalog/catalog.ts";
import type { Config } from "../../engine/config/config.ts";
import type { GatewayRequest, GatewayResponse } from "../http.ts";
import { openApiAnswer } from "../openapi/answer.ts";
import { DocumentCache } from "../openapi/document-cache.ts";
import type { TableRequest } from "./parse/request.ts";
import { PREFIX } from "./prefix.ts";
import { inBytes } from "./send/in-bytes.ts";

type Settings = Pick<Config, "openapiMode" | "openapiProxyUrl" | "openapiSecurity">;
type Turn = {
  readonly request: GatewayRequest;
  readonly asked: TableRequest;
  readonly caller: Caller;
  readonly catalog: Catalog;
};

/** What is at the root: all that the schema offers the caller, as an OpenAPI document. */
export function makeDescribe({ openapiMode, openapiProxyUrl, openapiSecurity }: Settings) {
  const documents = new DocumentCache();
  return async ({ request, asked, caller, catalog }: Turn): Promise<GatewayResponse> => {
    request.stages.enter("plan");
    const { contentType, text } = await openApiAnswer(
      {
        catalog,
        role: caller.role,
        schema: asked.profile.schema,
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
    return inBytes({ status: 200, headers, body: text });
  };
}
