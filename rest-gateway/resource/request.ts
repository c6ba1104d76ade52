import type { Catalog } from "../../engine/catalog/catalog.ts";
import type { Config } from "../../engine/config/config.ts";
import type { Caller } from "../../engine/identity/caller.ts";
import type { Intent } from "../../engine/statement/intent.ts";
import type { FindBodyLimit } from "../../http/body-limit.ts";
import type { GatewayRequest } from "../http/request.ts";
import type { Collections } from "./collections.ts";
import type { ResourceAddress, ResourceTarget } from "./parse/address.ts";
import type { NegotiatedType } from "./versions/negotiate.ts";
import type { DeprecationNotice } from "./versions/versions.ts";

/** A request whose path and version are resolved. */
export type ResourceRequest = {
  readonly request: GatewayRequest;
  readonly caller: Caller;
  readonly catalog: Catalog;
  readonly collections: Collections;
  readonly address: ResourceAddress;
  readonly target: ResourceTarget;
  readonly parameters: URLSearchParams;
  readonly negotiated: NegotiatedType;
  /** Null if the version is not deprecated. */
  readonly notice: DeprecationNotice | null;
  readonly settings: Pick<Config, "maxPageSize" | "maxRowBytes" | "putSemantics" | "publicUrl" | "anonRole">;
  readonly bodyLimits: ResourceBodyLimits;
};

/** Body limits for collections and for single rows. */
export type ResourceBodyLimits = { readonly rows: FindBodyLimit; readonly row: FindBodyLimit };

export function readResourceBody({ request, target, caller, bodyLimits }: ResourceRequest): Promise<Buffer> {
  const limitOf = target.key === null ? bodyLimits.rows : bodyLimits.row;
  return request.readBody(limitOf(caller));
}

/** The same request with a body that is already read, since it can be read only once. */
export function withBody(parsed: ResourceRequest, body: Buffer): ResourceRequest {
  return { ...parsed, request: { ...parsed.request, readBody: () => Promise.resolve(body) } };
}

/** The same request with a body that can be read repeatedly. */
export function withRereadableBody(request: GatewayRequest): GatewayRequest {
  let body: Promise<Buffer> | null = null;
  return { ...request, readBody: (limit) => (body ??= request.readBody(limit)) };
}

/** The result of a statement. */
export type ResourceRows = {
  /** A JSON array of rows; the value itself if a function returns one. */
  readonly text: string;
  readonly count: number;
  /** The number of all matching rows, if requested. */
  readonly total: number | null;
};

/**
 * Runs a statement as the caller, in one round trip. Intents with the same plan key differ in their values only, so
 * their plan is found without comparing them.
 */
export type RunIntent = (intent: Intent, model?: object) => Promise<ResourceRows>;

export type ResourceTransaction = {
  readonly run: RunIntent;
  /** Runs several statements in one transaction, which is rolled back if the work rejects. */
  readonly inTransaction: <T>(work: (ask: RunIntent) => Promise<T>) => Promise<T>;
};
