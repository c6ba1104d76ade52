import { referTo } from "../openapi/table-document/component-key.ts";
import type { Schema } from "../openapi/table-document/type-schema.ts";
import type { ErrorStatus } from "./error-responses.ts";
import { object } from "./object-schema.ts";

/** One operation that is not about rows. */
export type Described = {
  readonly id: string;
  readonly tag: "Sign in" | "Providers" | "Sessions" | "Second factor" | "API keys" | "Service" | "Tasks";
  readonly summary: string;
  readonly parameters?: readonly object[];
  readonly body?: Schema;
  readonly answers: Readonly<Record<number, readonly [description: string, schema: Schema | null]>>;
  readonly refusals?: readonly ErrorStatus[];
};

/** By address and method. */
export type DescribedPaths = Readonly<Record<string, Readonly<Record<string, Described>>>>;

export const TEXT: Schema = { type: "string" };
export const OPTIONAL_TEXT: Schema = { type: ["string", "null"] };
export const OPTIONAL_MOMENT: Schema = { type: ["string", "null"], format: "date-time" };
export const MESSAGE = object({ message: TEXT });
export const SIGNED_IN = object({ username: TEXT, role: TEXT, message: TEXT });
export const PAIR = referTo("schemas", "tokenPair");

export const CSRF = {
  name: "X-CSRF-Token",
  in: "header",
  description: "From GET /csrf-token, for sessions",
  schema: TEXT,
};
