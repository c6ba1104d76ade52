import type { LimitCreatedUsers } from "#accounts";
import type { Caller } from "#accounts/identity";
import type { Catalog } from "#catalog";
import type { Config } from "#config";
import type { FindBodyLimit, GatewayRequest, GatewayResponse } from "#http";
import type { Intent } from "#planner";
import type { Collections } from "./collections.ts";
import type { ResourceAddress, ResourceTarget } from "./parse/address.ts";
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
  /** Null if the version is not deprecated. */
  readonly notice: DeprecationNotice | null;
  readonly settings: Pick<Config, "maxPageSize" | "maxRowBytes" | "putSemantics" | "publicUrl" | "anonRole">;
  readonly bodyLimits: ResourceBodyLimits;
  /** Null: callers create as many users as they like. */
  readonly limitCreatedUsers: LimitCreatedUsers | null;
};

/** The limits of bodies sent to a collection, and to a single row. */
export type ResourceBodyLimits = { readonly rows: FindBodyLimit; readonly row: FindBodyLimit };

/** Links are read after the rows. */
export function requestsLinks({ negotiated, parameters }: ResourceRequest): boolean {
  return negotiated.links || parameters.has("links");
}

export function readResourceBody({ request, target, caller, bodyLimits }: ResourceRequest): Promise<Buffer> {
  const limitOf = target.key === null ? bodyLimits.rows : bodyLimits.row;
  return request.readBody(limitOf(caller));
}

export type ResourceRows = {
  /** A JSON array of rows, or the value of a function that returns no rows. */
  readonly text: string;
  readonly count: number;
  /** The number of all rows, where it was requested. */
  readonly total: number | null;
};

/** Runs a statement as the caller. Intents with the same plan key differ in their values only. */
export type RunRows = (intent: Intent, planKey?: object) => Promise<ResourceRows>;

/** Parsed values of a row or of arguments, by column or argument name; JSON values are not parsed. */
export type SentMembers = ReadonlyMap<string, { readonly value?: unknown }>;

/** What a request does with the rows at its address: its statement, and the response to what that returns. */
export type ResourceOperation = {
  /** A function where the body has to be parsed, or other rows have to be read, first. */
  readonly intent: Intent | ((run: RunRows) => Promise<Intent>);
  readonly planKey?: object | undefined;
  /** Runs after the intent is known and before its statement. */
  readonly precheck?: ((run: RunRows) => Promise<void>) | undefined;
  /** The values of the body, once the intent is known; Postgres may reject one of them. */
  readonly sent?: () => readonly SentMembers[];
  readonly respond: (rows: ResourceRows, run: RunRows) => GatewayResponse | Promise<GatewayResponse>;
};
