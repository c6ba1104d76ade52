import type { PostgresUrls } from "#cluster";
import { holdsOthers, rehearseMigrations } from "#migrate";
import { printMarkdown, printText } from "./print-rehearsal.ts";
import { EXIT_HOLDS, type RehearseOptions } from "./rehearse-options.ts";
import { withSchemaCopy } from "./schema-copy.ts";

/** Applies what is pending to a copy of the database, and prints whom each statement would hold up. Returns the exit code. */
export async function rehearse(postgres: PostgresUrls, { schemaOnly, format }: RehearseOptions): Promise<number> {
  const statements = await withSchemaCopy(postgres, { withRows: !schemaOnly }, (settings) =>
    rehearseMigrations(settings, postgres.directUrl),
  );
  if (format === "json") console.log(JSON.stringify(statements, null, 2));
  else if (statements.length === 0) console.log("No migrations are pending.");
  else console.log(statements.map(format === "markdown" ? printMarkdown : printText).join("\n\n"));
  return statements.some(holdsOthers) ? EXIT_HOLDS : 0;
}
