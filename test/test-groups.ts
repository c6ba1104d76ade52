// Which test files a command runs: `npm test` those that are short, `npm run test:all` all, `npm run test:pure` the short ones
// that start no program and no Postgres, and `npm run test:long` those of programs that put a load on the service as well. A file that
// is named on the command line runs in any case.
import { existsSync, globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { isShort } from "./durations.ts";
import { LOAD_TESTS } from "./long-runs.ts";
import { REPOSITORY } from "./repository.ts";
import { importedFile } from "./rooms.ts";

export type TestGroup = "default" | "all" | "pure" | "named";

/** Packages that a test, or a fixture of its, imports if it needs more than its own process. */
const OTHER_PROGRAMS = /^(pg|ws|node:(child_process|cluster|http|net)|@supabase\/.*|puppeteer.*)$/;
const FIXTURES_WITH_POSTGRES = new Set(["test/cluster.ts", "test/database.ts", "test/server-binaries.ts"]);
const IMPORT = /^(?:import|export)\s(?!type\b)[^;]*?from\s+"([^"]+)"|^import\s+"([^"]+)"|import\("([^"]+)"\)/gms;

export function testFiles(group: TestGroup): readonly string[] {
  const every = globSync("test/**/*.test.ts", { cwd: REPOSITORY }).sort();
  if (group === "named") return every;
  const files = every.filter((file) => !LOAD_TESTS.includes(file));
  if (group === "all") return files;
  const short = files.filter(isShort);
  return group === "default" ? short : short.filter((file) => isPure(file));
}

/** Returns the number of files that `npm test` leaves out, by the folder of what they test. */
export function leftOut(): ReadonlyMap<string, number> {
  const short = new Set(testFiles("default"));
  const long = testFiles("all").filter((file) => !short.has(file));
  const byFolder = Map.groupBy(long, (file) => file.split("/")[1]!);
  return new Map([...byFolder].map(([folder, files]) => [folder, files.length]));
}

/** Follows the imports of fixtures, not those of the service: a module of the service starts nothing when it is loaded. */
function isPure(file: string, seen = new Set<string>()): boolean {
  if (seen.has(file)) return true;
  seen.add(file);
  const text = readFileSync(join(REPOSITORY, file), "utf8");
  return [...text.matchAll(IMPORT)].every(([, ...names]) => {
    const name = names.find((found) => found !== undefined)!;
    const path = importedFile(file, name);
    if (path === null) return !OTHER_PROGRAMS.test(name);
    if (FIXTURES_WITH_POSTGRES.has(path) || /^(cluster|service)\//.test(path)) return false;
    // It lists the files of this repository.
    if (path === "test/repository.ts" || !path.startsWith("test/")) return true;
    return !path.endsWith(".ts") || !existsSync(join(REPOSITORY, path)) || isPure(path, seen);
  });
}
