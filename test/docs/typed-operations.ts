import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { preset } from "@graphql-codegen/client-preset";
import { codegen } from "@graphql-codegen/core";
import { buildSchema, parse } from "grafast/graphql";

const SCHEMA = join(import.meta.dirname, "../../plugins/schema.graphql");
/** graphql(`query …`) */
const OPERATION = /graphql\(`(.*?)`\)/gs;

type Settings = { readonly config: object; readonly presetConfig: object };

/** Writes the types that `npx graphql-codegen` generates for a file's operations, with a configuration's settings for it. */
export async function writeTypedOperations(folder: string, file: string, settings: Settings): Promise<void> {
  const sdl = await readFile(SCHEMA, "utf8");
  const location = join(folder, file);
  const operations = [...(await readFile(location, "utf8")).matchAll(OPERATION)].map(([, text]) => text!);
  const sections = await preset.buildGeneratesSection({
    baseOutputDir: join(folder, "graphql/"),
    schema: parse(sdl),
    schemaAst: buildSchema(sdl),
    documents: operations.map((rawSDL) => ({ location, rawSDL, document: parse(rawSDL) })),
    plugins: [],
    pluginMap: {},
    ...settings,
  });
  for (const section of sections) {
    await mkdir(dirname(section.filename), { recursive: true });
    await writeFile(section.filename, await codegen(section));
  }
}
