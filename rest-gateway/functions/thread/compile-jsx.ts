import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import type { JsxOptions } from "./messages.ts";

/** The part of esbuild that is used. */
type Compiler = {
  transformSync(source: string, options: Readonly<Record<string, unknown>>): { readonly code: string };
};

/** Compiles JSX by the esbuild that the project has installed, with the options of Deno. */
export function compileJsx(source: string, url: string, jsx: JsxOptions | null): string {
  const { transformSync } = loadCompiler(url);
  return transformSync(source, {
    loader: "tsx",
    format: "esm",
    target: "esnext",
    sourcemap: "inline",
    sourcefile: fileURLToPath(url),
    logLevel: "silent",
    ...toCompilerOptions(jsx ?? {}),
  }).code;
}

function loadCompiler(url: string): Compiler {
  try {
    return createRequire(url)("esbuild") as Compiler;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "MODULE_NOT_FOUND") throw error;
    throw new Error("JSX is compiled by the package esbuild, which is not installed: npm install esbuild");
  }
}

/** Without options, elements are made by `React.createElement`. A comment `@jsxImportSource` in the file comes first. */
function toCompilerOptions({ jsx, jsxFactory, jsxFragmentFactory, jsxImportSource }: JsxOptions) {
  if (jsx !== undefined && jsx !== "react")
    return { jsx: "automatic", ...(jsxImportSource !== undefined && { jsxImportSource }) };
  return {
    jsx: "transform",
    ...(jsxFactory !== undefined && { jsxFactory }),
    ...(jsxFragmentFactory !== undefined && { jsxFragment: jsxFragmentFactory }),
  };
}
