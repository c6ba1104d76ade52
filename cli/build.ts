import { execFileSync } from "node:child_process";
import { cp, rm } from "node:fs/promises";
import { join } from "node:path";

// Makes `dist`, which the published package has in place of the sources: Node strips no types below node_modules.

const ROOT = join(import.meta.dirname, "..");
const DIST = join(ROOT, "dist");
const SOURCES = ["engine", "http", "plugins", "processes", "realtime", "rest-gateway"];

await rm(DIST, { recursive: true, force: true });
execFileSync("tsc", ["-p", "tsconfig.build.json"], { cwd: ROOT, stdio: "inherit" });
for (const folder of SOURCES) {
  // Files that the code reads: word lists, pages, styles.
  const filter = (path: string) => !path.endsWith(".ts");
  await cp(join(ROOT, folder), join(DIST, folder), { recursive: true, filter });
}
// The error reference is generated from it. The guide reads the other pages at the root of the package.
await cp(join(ROOT, "docs/errors.md"), join(DIST, "docs/errors.md"));
await cp(join(ROOT, "templates"), join(DIST, "templates"), { recursive: true });
// Without the project's own migrations, which are not part of the package.
for (const part of ["platform", "content", "schema.sql", "watch.sql"]) {
  await cp(join(ROOT, "db", part), join(DIST, "db", part), { recursive: true });
}
