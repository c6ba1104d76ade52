// Deno's std/path/mod.ts: Node's functions, and those for URLs of files.

export {
  basename,
  delimiter,
  dirname,
  extname,
  format,
  isAbsolute,
  join,
  normalize,
  parse,
  relative,
  resolve,
  sep,
  sep as SEP,
  sep as SEPARATOR,
  toNamespacedPath,
} from "node:path";
export { fileURLToPath as fromFileUrl, pathToFileURL as toFileUrl } from "node:url";
