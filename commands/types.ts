import { writeFile } from "node:fs/promises";
import { toClientTypes } from "../rest-gateway/client-types/client-types.ts";
import { runCommand, UsageError } from "./command.ts";
import { commandLine } from "./command-line.ts";
import { withCatalog } from "./with-catalog.ts";

await runCommand({
  usage: `${commandLine("types", "[--output FILE]", { silent: true })}
  prints TypeScript types of the exposed schemas, for createClient<Database>() of supabase-js, or writes them to a file

Example:
  ${commandLine("types", "--output database.types.ts")}`,
  options: { output: { type: "string" } },
  async run(config, words, { output }) {
    if (words.length > 0) throw new UsageError(`"${words[0]}" is one word too many.`);
    const types = await withCatalog(config, async ({ catalog }) => toClientTypes(catalog));
    if (typeof output === "string") await writeFile(output, types);
    else process.stdout.write(types);
  },
});
