import { hash } from "node:crypto";
import { readFileSync } from "node:fs";
import { readdir, readFile, stat } from "node:fs/promises";
import { findPackageJSON, stripTypeScriptTypes } from "node:module";
import { extname, join } from "node:path";
import { dirname, normalize } from "node:path/posix";
import { type CompressedContent, compressContent } from "#http";

export const STUDIO_PATH = "/studio";
const APP_PATH = `${STUDIO_PATH}/app`;
/** The path of a file of Studio: in the edition that a page names, or in the current one. */
const APP_FILE = /^\/studio\/app(?:@(?<edition>[\w-]+))?\/(?<name>.+)$/;
const MODULES_PATH = `${STUDIO_PATH}/modules/`;

const SOURCES = join(import.meta.dirname, "../../studio");
/** The extension of modules: `.ts` in a clone, `.js` in the built package. */
const MODULE_EXTENSION = extname(import.meta.filename);

/** The packages that Studio imports; their dependencies are served too. */
const PACKAGES = [
  "preact",
  "htm",
  ...["autocomplete", "commands", "lang-json", "lang-sql", "language", "lint", "search", "state", "view"].map(
    (name) => `@codemirror/${name}`,
  ),
  "@lezer/highlight",
];

const FILE = /^(?!.*(?:^|\/)\.)[\w@./-]+$/;
const CONTENT_TYPES: Readonly<Record<string, string>> = {
  [MODULE_EXTENSION]: "text/javascript; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".mjs": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
};

/** An import: `from "x"`, `import "x"` or `import("x")`, which is loaded later. */
const IMPORT = /(?<keyword>\bfrom\s*|\bimport\s*(?<later>\(\s*)?)(?<quote>["'])(?<specifier>[^"'\s]+)\k<quote>/g;

/** All sources of Studio at one time. */
type Edition = {
  readonly id: string;
  /** The time of the last change of each file. */
  readonly modified: ReadonlyMap<string, number>;
};

/** The paths of Studio's files in one edition. */
type StudioFolder = {
  /** Returns the path of a module, which is named without its extension. */
  module(name: string): string;
  /** All styles; those of the whole page come first. */
  readonly styles: readonly string[];
};

export type StudioFile = {
  /** Returns the content, compressed at the first request: the page needs the imports only. */
  content(): Promise<CompressedContent>;
  /** The paths of the modules that the file needs before it runs. */
  readonly imports: readonly string[];
};

type BrowserPackage = {
  readonly folder: string;
  readonly version: string;
  readonly exports: PackageExports;
};
type PackageExports = string | { readonly [condition: string]: PackageExports };
type PackageManifest = {
  readonly version: string;
  readonly main?: string;
  readonly exports?: PackageExports;
  readonly dependencies?: Readonly<Record<string, string>>;
};

/** Reads Studio's modules and styles, and those of the packages, as browsers load them. */
export class StudioFiles {
  readonly #packages = findPackages();
  readonly #read = new Map<string, { readonly modifiedAt: number; readonly file: Promise<StudioFile> }>();
  #edition: Edition = { id: "", modified: new Map() };

  /** Finds a file; null if there is none at the path. */
  async find(requested: string): Promise<StudioFile | null> {
    const { edition, name = null } = APP_FILE.exec(requested)?.groups ?? {};
    if (edition !== undefined && this.#edition.id === "") await this.openFolder();
    const isCurrent = edition === this.#edition.id;
    // The edition is another gateway's, or an earlier one: the current file is sent.
    const path = name === null || isCurrent ? requested : `${APP_PATH}/${name}`;
    const source = name === null ? this.#locatePackageFile(path) : locateSource(name);
    if (source === null) return null;
    const stats = await stat(source).catch(() => null);
    if (!stats?.isFile()) return null;
    const known = this.#read.get(path);
    if (known?.modifiedAt === stats.mtimeMs) return known.file;
    const isKept = name === null || (isCurrent && this.#edition.modified.get(name) === stats.mtimeMs);
    const file = this.#load(path, source, isKept);
    this.#read.set(path, { modifiedAt: stats.mtimeMs, file });
    return file;
  }

  /** Returns the folder of Studio's files for a new page. Its name changes with any of them, so that browsers keep them without revalidation. */
  async openFolder(): Promise<StudioFolder> {
    const modified = await modificationTimes();
    const isSame =
      modified.size === this.#edition.modified.size &&
      [...modified].every(([name, time]) => this.#edition.modified.get(name) === time);
    if (!isSame) {
      const digests = [...modified.keys()].map(
        async (name) => `${name} ${hash("sha256", await readFile(join(SOURCES, name)))}`,
      );
      const id = hash("sha256", (await Promise.all(digests)).join("\n"), "base64url").slice(0, 16);
      this.#edition = { id, modified };
      this.#read.clear();
    }
    const path = `${APP_PATH}@${this.#edition.id}`;
    return {
      module: (name) => `${path}/${name}${MODULE_EXTENSION}`,
      styles: stylesOf(modified.keys()).map((name) => `${path}/${name}`),
    };
  }

  /** Returns the modules and all modules that they need before they run. */
  async withImports(paths: readonly string[]): Promise<string[]> {
    const found = new Set<string>();
    let next = [...paths];
    while (next.length > 0) {
      const files = await Promise.all(next.map((path) => this.find(path)));
      for (const [index, path] of next.entries()) if (files[index]) found.add(path);
      next = [...new Set(files.flatMap((file) => file?.imports ?? []))].filter((path) => !found.has(path));
    }
    return [...found];
  }

  #locatePackageFile(path: string): string | null {
    const [, name = "", version, file = ""] =
      /^((?:@[^/@]+\/)?[^/@]+)@([^/]+)\/(.+)$/.exec(path.slice(MODULES_PATH.length)) ?? [];
    const found = this.#packages.get(name);
    return found !== undefined && found.version === version && isServed(file) ? join(found.folder, file) : null;
  }

  async #load(path: string, source: string, isKept: boolean): Promise<StudioFile> {
    const text = await readFile(source, "utf8");
    const headers = {
      "Content-Type": CONTENT_TYPES[extname(path)]!,
      "Cache-Control": isKept ? "public, max-age=31536000, immutable" : "no-cache",
      "Cross-Origin-Resource-Policy": "same-origin",
    };
    const isStyle = path.endsWith(".css");
    const { body, imports } = isStyle
      ? { body: text, imports: [] }
      : this.#rewriteImports(path, path.endsWith(".ts") ? stripTypes(text) : text);
    let content: Promise<CompressedContent> | undefined;
    return { content: () => (content ??= compressContent(body, headers)), imports };
  }

  #rewriteImports(path: string, text: string): { body: string; imports: string[] } {
    const imports = new Set<string>();
    const body = text
      .replace(/^\/\/# sourceMappingURL=.*$/gm, "")
      .replace(IMPORT, (whole, keyword: string, later: string | undefined, quote: string, specifier: string) => {
        const isRelative = specifier.startsWith(".");
        const target = isRelative ? normalize(join(dirname(path), specifier)) : this.#packagePath(specifier);
        if (target === null) return whole;
        if (later === undefined) imports.add(target);
        return isRelative ? whole : `${keyword}${quote}${target}${quote}`;
      });
    return { body, imports: [...imports] };
  }

  #packagePath(specifier: string): string | null {
    const [, name = "", rest = ""] = /^((?:@[^/]+\/)?[^/]+)(.*)$/.exec(specifier) ?? [];
    const found = this.#packages.get(name);
    const target = found && exportedFile(found.exports, `.${rest}`);
    return target ? `${MODULES_PATH}${name}@${found.version}/${normalize(target)}` : null;
  }
}

/** Returns the modification time of each served file, by its path in Studio's folder. */
async function modificationTimes(): Promise<Map<string, number>> {
  const names = (await readdir(SOURCES, { recursive: true })).map((name) => name.replaceAll("\\", "/"));
  const times = names
    .filter(isServed)
    .sort()
    .map(async (name) => [name, (await stat(join(SOURCES, name))).mtimeMs] as const);
  return new Map(await Promise.all(times));
}

function locateSource(name: string): string | null {
  return isServed(name) ? join(SOURCES, name) : null;
}

function stylesOf(names: Iterable<string>): string[] {
  return [...names]
    .filter((name) => name.endsWith(".css"))
    .sort((one, other) => depthOf(one) - depthOf(other) || (one < other ? -1 : 1));
}

function isServed(file: string): boolean {
  return FILE.test(file) && CONTENT_TYPES[extname(file)] !== undefined;
}

/** Finds the packages and their dependencies, by name. */
function findPackages(): Map<string, BrowserPackage> {
  const found = new Map<string, BrowserPackage>();
  const add = (name: string, importer: string): void => {
    const file = found.has(name) ? undefined : findPackageJSON(name, importer);
    if (file === undefined) return;
    const { version, main, exports, dependencies = {} } = JSON.parse(readFileSync(file, "utf8")) as PackageManifest;
    found.set(name, { folder: join(file, ".."), version, exports: exports ?? main ?? "./index.js" });
    for (const dependency of Object.keys(dependencies)) add(dependency, file);
  };
  for (const name of PACKAGES) add(name, import.meta.url);
  return found;
}

/** Returns the file of `exports` that an `import` loads. */
function exportedFile(exports: PackageExports, subpath: string): string | null {
  if (typeof exports === "string") return subpath === "." ? exports : null;
  const hasSubpaths = Object.keys(exports).some((key) => key.startsWith("."));
  let target: PackageExports | undefined = hasSubpaths ? exports[subpath] : subpath === "." ? exports : undefined;
  while (typeof target === "object") target = target.import ?? target.default;
  return target ?? null;
}

/** Strips types. Node warns once that the function is experimental; nothing else can warn during the synchronous call. */
function stripTypes(text: string): string {
  const { emitWarning } = process;
  process.emitWarning = () => {};
  try {
    return stripTypeScriptTypes(text);
  } finally {
    process.emitWarning = emitWarning;
  }
}

function depthOf(file: string): number {
  return file.split(/[\\/]/).length;
}
