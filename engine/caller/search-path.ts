import type { Context } from "../database/statement.ts";
import { memoized } from "../memoized.ts";
import { quotedName } from "../quoted-name.ts";

type Setting = Context["settings"][number];

/** Where SQL looks for names: the schema that is asked, then the deployment's own (PGRST_DB_EXTRA_SEARCH_PATH). */
export function makeSearchPaths(extraSearchPath: readonly string[]): (schema: string) => Setting {
  return memoized((schema: string): Setting => {
    return ["search_path", [schema, ...extraSearchPath].map((name) => quotedName(name)).join(", ")];
  });
}
