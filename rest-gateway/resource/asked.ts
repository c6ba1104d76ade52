import type { BodyLimitOf } from "../../engine/caller/body-limit.ts";
import type { Caller } from "../../engine/caller/caller.ts";
import type { Catalog } from "../../engine/catalog/catalog.ts";
import type { Config } from "../../engine/config/config.ts";
import type { GatewayRequest } from "../http.ts";
import type { Intent } from "../statement/intent.ts";
import type { Collections } from "./collections.ts";
import type { Agreed } from "./parse/accept.ts";
import type { Address } from "./parse/address.ts";
import type { Target } from "./parse/target.ts";
import type { Notice } from "./versions/notice.ts";

/** A request that has been understood as far as its address and its version go. */
export type Asked = {
  readonly request: GatewayRequest;
  readonly caller: Caller;
  readonly catalog: Catalog;
  readonly collections: Collections;
  readonly address: Address;
  readonly target: Target;
  readonly parameters: URLSearchParams;
  readonly agreed: Agreed;
  /** Null: the version stays. */
  readonly notice: Notice | null;
  readonly settings: Pick<Config, "maxPageSize" | "maxRowBytes" | "putSemantics" | "publicUrl" | "anonRole">;
  readonly bodyLimits: BodyLimits;
};

/** What may be sent to where there are many rows, and to a single one. */
export type BodyLimits = { readonly rows: BodyLimitOf; readonly row: BodyLimitOf };

export function readBody({ request, target, caller, bodyLimits }: Asked): Promise<Buffer> {
  const limitOf = target.key === null ? bodyLimits.rows : bodyLimits.row;
  return request.readBody(limitOf(caller));
}

/** The same, for a body that has been read already, and can be read but once. */
export function withBody(asked: Asked, body: Buffer): Asked {
  return { ...asked, request: { ...asked.request, readBody: () => Promise.resolve(body) } };
}

/** The same, whose body can be read again: what was read the first time. */
export function withLastingBody(request: GatewayRequest): GatewayRequest {
  let body: Promise<Buffer> | null = null;
  return { ...request, readBody: (limit) => (body ??= request.readBody(limit)) };
}

/** What Postgres tells. */
export type Rows = {
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
export type AskRows = (intent: Intent, model?: object) => Promise<Rows>;

export type Exchange = {
  readonly ask: AskRows;
  /** Several questions in one transaction, undone when the work rejects. */
  readonly together: <T>(work: (ask: AskRows) => Promise<T>) => Promise<T>;
};
