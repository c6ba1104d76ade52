import { execFileSync } from "node:child_process";
import { constants } from "node:fs";
import { copyFile, cp, mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { dirname, join, relative } from "node:path";

// Makes `dist`, which the published package has in place of the sources: Node strips no types below node_modules.

const ROOT = join(import.meta.dirname, "../..");
const DIST = join(ROOT, "dist");
/** Folders with files that the code reads, which the build copies. */
const FOLDERS_WITH_ASSETS = ["accounts", "graphql/server", "plugins", "rest-gateway", "service"];
/** Emits the types of the module that package.json exports. It runs in browsers, so it needs the types of the DOM. */
const DECLARE_EXPORTS =
  "realtime/resuming-socket.ts --noCheck --ignoreConfig --declaration --emitDeclarationOnly --target es2024 --lib es2024,dom " +
  "--module nodenext --rootDir . --outDir dist";

await rm(DIST, { recursive: true, force: true });
// `npm run check` checks the types, which takes five times as long as to write the files.
execFileSync("tsc", ["-p", "tsconfig.build.json", "--noCheck"], { cwd: ROOT, stdio: "inherit" });
execFileSync("tsc", DECLARE_EXPORTS.split(" "), { cwd: ROOT, stdio: "inherit" });
const bundle = execFileSync(process.execPath, ["rest-gateway/studio/bundle-studio.ts", "studio"], { cwd: ROOT });
await mkdir(join(DIST, "studio"));
await writeFile(join(DIST, "studio/bundle.json"), bundle);
// The pages of the service have the same look.
await copyFile(join(ROOT, "studio/tokens.css"), join(DIST, "studio/tokens.css"));
for (const folder of FOLDERS_WITH_ASSETS) await copyAssets(folder);
// The error reference is generated from it. The guide reads the other pages at the root of the package.
await cp(join(ROOT, "docs/errors.md"), join(DIST, "docs/errors.md"));
await cp(join(ROOT, "templates"), join(DIST, "templates"), { recursive: true });
// The project's own migrations are left out, because they are not part of the package.
for (const part of ["platform", "content", "citus", "schema.sql", "superuser.sql", "watch.sql"]) {
  await cp(join(ROOT, "db", part), join(DIST, "db", part), { recursive: true });
}

// Node resolves subpath imports such as `#config` by the nearest package.json.
const { type, imports } = JSON.parse(await readFile(join(ROOT, "package.json"), "utf8"));
const built = Object.entries<string>(imports).map(([name, file]) => [name, file.replace(/\.ts$/, ".js")]);
await writeFile(join(DIST, "package.json"), `${JSON.stringify({ type, imports: Object.fromEntries(built) })}\n`);

/** Copies the files that the code reads: word lists, pages, styles, scripts for browsers. */
async function copyAssets(folder: string): Promise<void> {
  for (const entry of await readdir(join(ROOT, folder), { recursive: true, withFileTypes: true })) {
    if (
      !entry.isFile() ||
      entry.name.endsWith(".ts") ||
      entry.name === "README.md" ||
      entry.name.startsWith("tsconfig.")
    )
      continue;
    const source = join(entry.parentPath, entry.name);
    const target = join(DIST, relative(ROOT, source));
    await mkdir(dirname(target), { recursive: true });
    // A script for browsers must not replace what was built from a source of the same name.
    await copyFile(source, target, entry.name.endsWith(".js") ? constants.COPYFILE_EXCL : 0);
  }
}
