import type { LimitCreatedUsers } from "#accounts";
import type { Caller } from "#accounts/identity";
import type { Catalog } from "#catalog";
import type { Config } from "#config";
import type { FindBodyLimit, GatewayRequest } from "#http";
import type { Collections } from "../collections/collections.ts";
import type { ResourceAddress, ResourceTarget } from "./address.ts";
import type { DeprecationNotice, NegotiatedType } from "./versions.ts";

/** A request whose address and version are known. */
export type ResourceRequest = {
  readonly request: GatewayRequest;
  readonly caller: Caller;
  readonly catalog: Catalog;
  readonly collections: Collections;
  readonly address: ResourceAddress;
  readonly target: ResourceTarget;
  readonly parameters: URLSearchParams;
  readonly negotiated: NegotiatedType;
  /** The notice of a deprecated version; otherwise null. */
  readonly notice: DeprecationNotice | null;
  readonly settings: Pick<Config, "maxPageSize" | "maxRowBytes" | "putSemantics" | "publicUrl" | "anonRole">;
  readonly bodyLimits: ResourceBodyLimits;
  /** The limit of created users; null if there is none. */
  readonly limitCreatedUsers: LimitCreatedUsers | null;
};

/** The limits of bodies sent to a collection, and to a single row. */
export type ResourceBodyLimits = { readonly rows: FindBodyLimit; readonly row: FindBodyLimit };

/** Returns true if the response needs links, which are read after the rows. */
export function requestsLinks({ negotiated, parameters }: ResourceRequest): boolean {
  return negotiated.links || parameters.has("links");
}

export function readResourceBody({ request, target, caller, bodyLimits }: ResourceRequest): Promise<Buffer> {
  const limitOf = target.key === null ? bodyLimits.rows : bodyLimits.row;
  return request.readBody(limitOf(caller));
}
