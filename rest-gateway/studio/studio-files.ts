import { execFile } from "node:child_process";
import { hash } from "node:crypto";
import { readdir, readFile, stat } from "node:fs/promises";
import { extname, join } from "node:path";
import { promisify } from "node:util";
import { type CompressedContent, compressContent } from "#http";

export const STUDIO_PATH = "/studio";
const APP_PATH = `${STUDIO_PATH}/app`;
/** The path of a file of Studio: in the edition that a page names, or in the current one. */
const APP_FILE = /^\/studio\/app(?:@(?<edition>[\w-]+))?\/(?<name>[\w-]+\.\w+)$/;

const SOURCES = join(import.meta.dirname, "../../studio");
/** The bundle in Studio's folder that packages and images have. */
const PACKED_BUNDLE = "bundle.json";
/** Makes the bundle of a clone. */
const BUNDLER = join(import.meta.dirname, "bundle-studio.ts");
const MAX_BUNDLE_BYTES = 50_000_000;

const CONTENT_TYPES: Readonly<Record<string, string>> = {
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
};

/** A file that browsers load. */
export type BundledFile = {
  readonly name: string;
  readonly text: string;
  /** The names of the modules that it needs before it runs. */
  readonly imports: readonly string[];
};

/** All files of Studio at one time. */
type Edition = {
  readonly id: string;
  readonly files: ReadonlyMap<string, BundledFile>;
  /** The time of the last change of each source; empty if the bundle was packed. */
  readonly modified: ReadonlyMap<string, number>;
};

type StudioFile = {
  readonly content: CompressedContent;
  /** True if the content at the path never changes. */
  readonly isLasting: boolean;
};

/** The paths of the files that a page loads at first. */
type PageFiles = { readonly main: string; readonly modules: readonly string[]; readonly styles: string };

/** Reads Studio's bundle, or makes it from the sources, again after each change of them. */
export class StudioFiles {
  readonly #sources: string;
  #edition: Edition | null = null;
  #opening: Promise<Edition> | null = null;
  readonly #compressed = new WeakMap<BundledFile, Promise<CompressedContent>>();

  constructor(sources = SOURCES) {
    this.#sources = sources;
  }

  /** Finds a file; null if there is none at the path. */
  async find(path: string): Promise<StudioFile | null> {
    const { edition, name = "" } = APP_FILE.exec(path)?.groups ?? {};
    const current = edition !== undefined && this.#edition?.id === edition ? this.#edition : await this.#open();
    // If the edition is another gateway's, or an earlier one, the current file is sent.
    const file = current.files.get(name);
    return file === undefined ? null : { content: await this.#compress(file), isLasting: current.id === edition };
  }

  /** Returns the files of a new page that shows the part. Their paths change with their contents, so that browsers keep them without revalidation. */
  async pageFiles(part: string): Promise<PageFiles> {
    const { id, files } = await this.#open();
    const found = new Set<string>();
    const add = (name: string): void => {
      const file = found.has(name) ? undefined : files.get(name);
      if (file === undefined) return;
      found.add(name);
      file.imports.forEach(add);
    };
    for (const name of ["main", `${part}-page`]) add(`${name}.js`);
    const pathOf = (name: string) => `${APP_PATH}@${id}/${name}`;
    return { main: pathOf("main.js"), modules: [...found].map(pathOf), styles: pathOf("studio.css") };
  }

  #compress(file: BundledFile): Promise<CompressedContent> {
    let content = this.#compressed.get(file);
    if (content === undefined) {
      content = compressContent(file.text, {
        "Content-Type": CONTENT_TYPES[extname(file.name)]!,
        "Cross-Origin-Resource-Policy": "same-origin",
      });
      this.#compressed.set(file, content);
    }
    return content;
  }

  #open(): Promise<Edition> {
    this.#opening ??= openEdition(this.#sources, this.#edition)
      .then((edition) => (this.#edition = edition))
      .finally(() => {
        this.#opening = null;
      });
    return this.#opening;
  }
}

/** Returns the known edition if no source has changed since, otherwise the current one. */
async function openEdition(sources: string, known: Edition | null): Promise<Edition> {
  const packed = known ? null : await readFile(join(sources, PACKED_BUNDLE), "utf8").catch(() => null);
  if (packed !== null) return toEdition(packed, new Map());
  if (known?.modified.size === 0) return known;
  const modified = await modificationTimes(sources);
  const isSame =
    modified.size === known?.modified.size && [...modified].every(([name, time]) => known.modified.get(name) === time);
  if (known && isSame) return known;
  const words = ["--disable-sigusr1", BUNDLER, sources];
  const { stdout } = await promisify(execFile)(process.execPath, words, { maxBuffer: MAX_BUNDLE_BYTES });
  return toEdition(stdout, modified);
}

function toEdition(bundle: string, modified: Edition["modified"]): Edition {
  const files = JSON.parse(bundle) as BundledFile[];
  return {
    id: hash("sha256", JSON.stringify(files), "base64url").slice(0, 16),
    files: new Map(files.map((file) => [file.name, file])),
    modified,
  };
}

async function modificationTimes(sources: string): Promise<Map<string, number>> {
  const names = await readdir(sources, { recursive: true });
  const times = names
    .filter((name) => /\.(ts|css)$/.test(name))
    .map(async (name) => [name, (await stat(join(sources, name))).mtimeMs] as const);
  return new Map(await Promise.all(times));
}
