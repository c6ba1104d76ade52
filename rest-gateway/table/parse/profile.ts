import { ApiError } from "../../../engine/errors.ts";
import { schemaInHeader } from "../../profile.ts";

export type Profile = {
  readonly schema: string;
  /** Whether the answer names the schema. */
  readonly negotiated: boolean;
};

/** The schema that a request is about, by the header that its method has for it. */
export function parseProfile(header: string | undefined, schemas: readonly string[]): Profile {
  if (header === undefined) return { schema: schemas[0]!, negotiated: schemas.length > 1 };
  const schema = schemaInHeader(header, schemas);
  if (schemas.includes(schema)) return { schema, negotiated: true };
  throw new ApiError(406, "PGRST106", `Invalid schema: ${schema}`, {
    hint: `Only the following schemas are exposed: ${schemas.join(", ")}`,
  });
}
