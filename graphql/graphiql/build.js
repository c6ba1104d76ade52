// Bundles the page with everything that it loads into graphql/server/graphiql: npm ci --prefix graphiql && npm run build --prefix graphiql

import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { build } from "esbuild";

const OUTPUT = join(import.meta.dirname, "../server/graphiql");

mkdirSync(OUTPUT, { recursive: true });
const { outputFiles, metafile } = await build({
  absWorkingDir: import.meta.dirname,
  entryPoints: { graphiql: "page.js" },
  outdir: OUTPUT,
  bundle: true,
  minify: true,
  format: "iife",
  target: "es2022",
  // Set per bundle, because the browser has no process.
  define: { "process.env.NODE_ENV": '"production"' },
  loader: { ".woff2": "empty", ".woff": "empty" },
  legalComments: "none",
  metafile: true,
  write: false,
});
for (const { path, text } of outputFiles) {
  // The page uses the fonts of the system.
  writeFileSync(path, path.endsWith(".css") ? text.replace(/@font-face\{[^}]*\}/g, "") : text);
}
writeFileSync(join(OUTPUT, "LICENCES.txt"), licences(Object.keys(metafile.inputs)));

/** The licences of the packages in the bundle, which it must be accompanied by. */
function licences(inputs) {
  const folders = inputs.map((path) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path)?.[0]).filter(Boolean);
  return [...new Set(folders)].sort().map(licence).join("\n");
}

function licence(folder) {
  const path = join(import.meta.dirname, folder);
  const { name, version, license } = JSON.parse(readFileSync(join(path, "package.json"), "utf8"));
  const file = readdirSync(path).find((entry) => /^licen[cs]e/i.test(entry));
  const text = file ? readFileSync(join(path, file), "utf8").replaceAll("\r\n", "\n").trim() : `Licence: ${license}`;
  return `${name} ${version}\n${"-".repeat(name.length + version.length + 1)}\n${text}\n`;
}
