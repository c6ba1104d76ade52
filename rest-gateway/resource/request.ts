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

/** A request that has been understood as far as its address and its version go. */
export type ResourceRequest = {
  readonly request: GatewayRequest;
  readonly caller: Caller;
  readonly catalog: Catalog;
  readonly collections: Collections;
  readonly address: ResourceAddress;
  readonly target: ResourceTarget;
  readonly parameters: URLSearchParams;
  readonly negotiated: NegotiatedType;
  /** Null: the version stays. */
  readonly notice: DeprecationNotice | null;
  readonly settings: Pick<Config, "maxPageSize" | "maxRowBytes" | "putSemantics" | "publicUrl" | "anonRole">;
  readonly bodyLimits: ResourceBodyLimits;
};

/** What may be sent to where there are many rows, and to a single one. */
export type ResourceBodyLimits = { readonly rows: FindBodyLimit; readonly row: FindBodyLimit };

export function readResourceBody({ request, target, caller, bodyLimits }: ResourceRequest): Promise<Buffer> {
  const limitOf = target.key === null ? bodyLimits.rows : bodyLimits.row;
  return request.readBody(limitOf(caller));
}

/** The same, for a body that has been read already, and can be read but once. */
export function withBody(parsed: ResourceRequest, body: Buffer): ResourceRequest {
  return { ...parsed, request: { ...parsed.request, readBody: () => Promise.resolve(body) } };
}

/** The same, whose body can be read again: what was read the first time. */
export function withRereadableBody(request: GatewayRequest): GatewayRequest {
  let body: Promise<Buffer> | null = null;
  return { ...request, readBody: (limit) => (body ??= request.readBody(limit)) };
}

/** What Postgres tells. */
export type ResourceRows = {
  /** A JSON array of them; of a function that gives a value that value. */
  readonly text: string;
  readonly count: number;
  /** Those that there are, where it was asked. */
  readonly total: number | null;
};

/**
 * Asks Postgres as the caller: one round trip. Intents that come with the same model differ in their values only, so
 * their plan is known without looking at them.
 */
export type RunIntent = (intent: Intent, model?: object) => Promise<ResourceRows>;

export type ResourceTransaction = {
  readonly run: RunIntent;
  /** Several questions in one transaction, undone when the work rejects. */
  readonly inTransaction: <T>(work: (ask: RunIntent) => Promise<T>) => Promise<T>;
};
