import { readdir, readFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { rolldown } from "rolldown";
import type { BundledFile } from "./studio-files.ts";

// Prints Studio, whose folder is the argument, as browsers load it. It is a program because the service would keep the 200 MB of the bundler.

const [, , sources = "studio"] = process.argv;

const files: readonly BundledFile[] = [...(await bundleModules()), await joinStyles()];
console.log(JSON.stringify(files));

/** Each part of Studio is a file, loaded when it is first shown. What several parts use is one file, because each request takes a round trip. */
async function bundleModules(): Promise<BundledFile[]> {
  const bundle = await rolldown({ input: resolve(sources, "frame/main.ts"), platform: "browser", tsconfig: false });
  const { output } = await bundle.generate({
    minify: true,
    entryFileNames: "[name].js",
    chunkFileNames: "[name].js",
    // A file of another edition then fails to load, instead of using what has another meaning there.
    minifyInternalExports: false,
    codeSplitting: { groups: [{ name: "common", minShareCount: 2 }] },
  });
  await bundle.close();
  return output
    .filter((file) => file.type === "chunk")
    .map(({ fileName, code, imports }) => ({ name: fileName, text: code, imports }));
}

/** Joins all styles; those of the whole page come first. */
async function joinStyles(): Promise<BundledFile> {
  const names = (await readdir(sources, { recursive: true })).filter((name) => name.endsWith(".css"));
  names.sort((one, other) => depthOf(one) - depthOf(other) || (one < other ? -1 : 1));
  const texts = await Promise.all(names.map((name) => readFile(join(sources, name), "utf8")));
  return { name: "studio.css", text: texts.join("\n"), imports: [] };
}

function depthOf(file: string): number {
  return file.split(/[\\/]/).length;
}
