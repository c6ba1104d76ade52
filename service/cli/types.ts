import { writeFile } from "node:fs/promises";
import { toClientTypes } from "#operations/contract";
import { commandLine } from "#runtime";
import { runCommand, UsageError } from "./command/command.ts";
import { withCatalog } from "./command/command-context.ts";

await runCommand({
  usage: `${commandLine("types", "[--output FILE]", { silent: true })}
  Prints TypeScript types of the exposed schemas for createClient<Database>() of supabase-js, or writes them to FILE.
  With createClient<ExtendedDatabase>(), writes also take related rows and operators.

Example:
  ${commandLine("types", "--output database.types.ts")}`,
  options: { output: { type: "string" } },
  async run(config, args, { output }) {
    if (args.length > 0) throw new UsageError(`Unexpected argument "${args[0]}".`);
    const types = await withCatalog(config, async ({ catalog }) => toClientTypes(catalog));
    if (typeof output !== "string") {
      process.stdout.write(types);
      return;
    }
    await writeFile(output, types).catch((error) => {
      throw new Error(`${output} cannot be written: ${error.code}.`);
    });
  },
});
