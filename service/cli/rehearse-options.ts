import { UsageError } from "./command/command.ts";

/** The exit code of `migrate rehearse` if a statement would hold up others for long. */
export const EXIT_HOLDS = 3;

export type RehearseOptions = { readonly schemaOnly: boolean; readonly format: "text" | "json" | "markdown" };

export const REHEARSE_OPTIONS = {
  "schema-only": { type: "boolean" },
  json: { type: "boolean" },
  markdown: { type: "boolean" },
} as const;

export function parseRehearseOptions(options: Readonly<Record<string, unknown>>): RehearseOptions {
  const { "schema-only": schemaOnly, json, markdown } = options;
  if (json && markdown) throw new UsageError("Choose one of --json and --markdown.");
  return { schemaOnly: schemaOnly === true, format: json ? "json" : markdown ? "markdown" : "text" };
}
