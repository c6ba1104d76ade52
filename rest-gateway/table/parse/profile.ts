import { ApiError } from "../../../engine/errors.ts";

export type Profile = {
  readonly schema: string;
  /** Whether the answer names the schema. */
  readonly negotiated: boolean;
};

/** The schema that a request is about, by the header that its method has for it. */
export function parseProfile(header: string | undefined, schemas: readonly string[]): Profile {
  if (header === undefined) return { schema: schemas[0]!, negotiated: schemas.length > 1 };
  // Clients send UTF-8, or else Latin-1, of which node has read each byte as a character.
  const schema = schemas.includes(header) ? header : Buffer.from(header, "latin1").toString();
  if (schemas.includes(schema)) return { schema, negotiated: true };
  throw new ApiError(406, "PGRST106", `Invalid schema: ${schema}`, {
    hint: `Only the following schemas are exposed: ${schemas.join(", ")}`,
  });
}
